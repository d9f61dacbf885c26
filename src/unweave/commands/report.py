"""`unweave report`: which results to read, and what the terminal shows of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from unweave.commands.console import console
from unweave.commands.listing import Listing
from unweave.errors import UnweaveError
from unweave.layout import RESULTS_FILE, SPEC_FILE, STUDY_FILE
from unweave.progress import Progress
from unweave.report.agreement import agreement, agreement_sentence
from unweave.report.names import DATA, label, setting_label
from unweave.report.page import PUBLISHED
from unweave.report.writing import make_report as write_report_on
from unweave.results import Results


def make_report(
    subjects: Sequence[Path],
    output: Path,
    *,
    published_folder: Path | None,
    mapping: Path | None,
    representation: str,
    scores: Sequence[str] | None,
    progress: Progress | None,
) -> Path:
    """Write the report, and print whether own runs agree with published ones."""
    for subject in subjects:
        _refuse_plain_runs(subject)
    made = write_report_on(
        *subjects,
        out=output,
        published=published_folder,
        mapping=mapping,
        representation=representation,
        scores=scores,
        tell=progress,
    )
    show_agreement(made.results)
    return made.page


def _refuse_plain_runs(folder: Path) -> None:
    """Refuse runs that were trained one by one: only a study has a table of results."""
    if any((folder / name).exists() for name in (RESULTS_FILE, STUDY_FILE)):
        return
    if (folder / SPEC_FILE).is_file() or next(folder.glob(f"*/{SPEC_FILE}"), None) is not None:
        raise UnweaveError(
            f"a report needs a study, whose runs are in one table; {folder} has runs that were trained one "
            f"by one. Compare them with unweave explore {folder}, or train them with unweave study run."
        )


def show_agreement(results: Results) -> None:
    """Print one line for each setting that own and published runs share."""
    is_published = results.table["source"] == PUBLISHED
    if is_published.all() or not is_published.any():
        return
    screen = console()
    table = agreement(results.table[~is_published], results.table[is_published])
    if table.empty:
        screen.print("Own and published runs share no setting and score under the same protocol.")
        return
    differences = "do not agree (own, published)"
    lines = Listing("data", "setting", "own seeds", "agree", differences, below=differences)
    for key, group in table.groupby(["data", "method", "setting", "strength"], sort=False):
        data, method, setting, strength = map(str, key)
        name = setting_label(method, float(strength), setting)
        lines.add_row(
            label(data, DATA),
            name,
            str(group["own_runs"].max()),
            f"{group['agrees'].sum()} of {len(group)}",
            _differences(group[~group["agrees"]]),
        )
    screen.print(lines)
    screen.print(agreement_sentence(table))


def _differences(rows: pd.DataFrame) -> str:
    return ", ".join(
        f"{row['score']} {row['own']:.3f}, {row['published']:.3f}" for row in rows.to_dict("records")
    )
