"""Write a report on studies and tables: the function behind `unweave.report` and the command."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unweave.display.notebook import heading, paragraph
from unweave.places import as_path
from unweave.progress import Progress
from unweave.report.inputs import RECONSTRUCTIONS, SWAPS, pictures_of_runs, read_results
from unweave.report.names import listed
from unweave.report.page import write_report
from unweave.results import Results


@dataclass(frozen=True, eq=False)
class Report:
    """A report that was written: `page` is the HTML file, `results` the table that it is about."""

    page: Path
    results: Results

    def __fspath__(self) -> str:
        return str(self.page)

    def __repr__(self) -> str:
        return f"Report({str(self.page)!r})"

    def _repr_html_(self) -> str:
        table = self.results.table
        size = f"{len(table):,} scores of {table['run'].nunique():,} runs"
        files = sorted(self.page.parent.glob("figures/*.png"))
        address = html.escape(os.path.relpath(self.page), quote=True)
        return (
            heading(f"Report on {size}")
            + f'<div><a href="{address}" target="_blank">{html.escape(str(self.page))}</a></div>'
            + paragraph(f"{len(files)} figures, in {self.page.parent / 'figures'}")
        )


def make_report(
    *subjects: str | os.PathLike[str],
    out: str | Path = "report",
    published: str | Path | None = None,
    mapping: str | Path | None = None,
    representation: str = "mean",
    scores: str | Sequence[str] | None = None,
    tell: Progress | None = None,
) -> Report:
    """Write a page with figures and tables on the results of studies.

    Parameters
    ----------
    subjects
        Folders of studies, results of `unweave.study`, or tables of results (.parquet, .csv).
    out
        Folder of the report; the page is index.html in it.
    published
        Folder of the published results (results_*.csv), to report on alone or with the others.
    mapping
        TOML file with the meaning of each column, for tables of other tools.
    representation
        Codes whose scores are compared: mean or sampled.
    scores
        Metrics to compare, as a list or separated by commas. Default: the six of the study.
    tell
        Gets done, total and what, while the report is written.
    """
    paths = [as_path(subject, "a study or a table of results") for subject in subjects]
    results = read_results(
        paths,
        None if published is None else as_path(published, "the folder of published results"),
        None if mapping is None else as_path(mapping, "the mapping of columns"),
    )
    names = [name.strip() for name in scores.split(",")] if isinstance(scores, str) else scores
    page = write_report(
        results,
        as_path(out, "the folder of the report"),
        representation=representation,
        scores=names,
        sheets=pictures_of_runs(paths, results, RECONSTRUCTIONS),
        swaps=pictures_of_runs(paths, results, SWAPS),
        study=listed([_study_name(path) for path in paths]) if paths else "",
        progress=tell,
    )
    return Report(page, results)


def _study_name(path: Path) -> str:
    """The name of a folder or a file of results, without its ending.

    >>> _study_name(Path("studies/capacity")), _study_name(Path("theirs.csv"))
    ('capacity', 'theirs')
    """
    return path.resolve().name if path.is_dir() else path.stem
