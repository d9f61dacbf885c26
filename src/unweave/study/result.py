"""What a study found: its table of scores, and the tasks that failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from unweave.display.notebook import heading, paragraph, table
from unweave.results import TRAINING, on_part
from unweave.study.ledger import Failure

MOST_ROWS, MOST_SCORES = 20, 8  # of the table that a notebook shows
SETTING = ["data", "method", "setting", "representation"]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """A finished study: `folder`, `table` (one row for each score of each run) and `failures`.

    `table` has the columns of `unweave.results`; `notes` say which runs have no scores.
    """

    folder: Path
    table: pd.DataFrame
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} tasks failed" if self.failures else ""
        return f"StudyResult({str(self.folder)!r}, {self._size}{failed})"

    def _repr_html_(self) -> str:
        parts = [heading(f"{self.folder.name}: {self._size}")]
        means = self.means()
        if len(means):
            parts += [_means_html(means), paragraph("Means over seeds.")]
        parts += [paragraph(note) for note in self.notes]
        parts += [
            paragraph(f"Failed: {failure.task.kind} {failure.task.id}: {failure.error}")
            for failure in self.failures
        ]
        parts.append(paragraph(f"Folder: {self.folder}"))
        return "".join(parts)

    def means(self, on: str = TRAINING) -> pd.DataFrame:
        """One row a setting, one column a score: means over seeds of the scores on a part of the data."""
        plain = on_part(self.table, on).astype(dict.fromkeys([*SETTING, "score"], str))
        means = plain.pivot_table("value", SETTING, "score", sort=False)
        return means.rename_axis(columns=None).reset_index()

    @property
    def _size(self) -> str:
        return f"{len(self.table):,} scores of {self.table['run'].nunique():,} runs"


def _means_html(means: pd.DataFrame) -> str:
    scores = [str(name) for name in means.columns if name not in SETTING][:MOST_SCORES]
    rows = [
        [*(row[name] for name in SETTING), *("" if pd.isna(row[s]) else f"{row[s]:.3f}" for s in scores)]
        for row in means.head(MOST_ROWS).to_dict("records")
    ]
    cut = f"The first {MOST_ROWS} of {len(means):,} settings." if len(means) > MOST_ROWS else ""
    return table([*SETTING, *scores], rows) + (paragraph(cut) if cut else "")
