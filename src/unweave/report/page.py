"""The report: one page that needs nothing but itself, and all its figures and tables as files.

The page has a policy that forbids it to load anything, so it shows the same without a network.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

from unweave import __version__
from unweave.display.theme import BUTTON, theme_script
from unweave.errors import UnweaveError
from unweave.files import replacing
from unweave.progress import Progress
from unweave.report import interactive
from unweave.report.findings import CANNOT_TELL
from unweave.report.formats import table_html, write_figure, write_table
from unweave.report.names import (
    DATA,
    METHODS,
    PUBLISHED_METHODS,
    choosers_of,
    counted,
    data_sets,
    label,
    listed,
    methods,
    score_label,
)
from unweave.report.published import STUDY_SCORES
from unweave.report.sections import agreement_with_published, choice_by_agreement, content_and_style
from unweave.report.sections.section import Drawing, Material, Section, Sheet, material
from unweave.report.sections.table import SECTIONS
from unweave.results import Results

PUBLISHED = "published"
MOST_ROWS = 300  # of a table on the page; the file has all
POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'"
)


@dataclass(frozen=True)
class Page:
    """The parts of the page as they come; `names` says how sources of results are called."""

    folder: Path
    title: str = "Report"
    names: Mapping[str, str] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)

    def name(self, source: str) -> str:
        """How a source of results is called on the page."""
        return self.names.get(source, source)


def write_report(
    results: Results,
    folder: str | Path,
    *,
    representation: str = "mean",
    scores: Sequence[str] | None = None,
    sheets: Sequence[tuple[str, Path]] = (),
    swaps: Sequence[tuple[str, Path]] = (),
    study: str = "",
    progress: Progress | None = None,
) -> Path:
    """Write index.html, figures/ and tables/ into a folder, and return the path of the page.

    Each source of the results has its sections; where one is "published", each other one is compared with it.
    `sheets` are pictures of reconstructions with their titles, and `swaps` of content and style swapped.
    `study` is the name of the runs whose source is "own". `progress` gets the sections that are done.
    """
    sources = sorted(map(str, results.table["source"].unique()), key=lambda name: (name == PUBLISHED, name))
    names = {"own": study or "own runs", PUBLISHED: "the published study"}
    title = f"Report on {listed([names.get(source, source) for source in sources])}"
    page, failure = Page(Path(folder), title, names), ""
    try:
        for kind in ("figures", "tables"):
            (page.folder / kind).mkdir(parents=True, exist_ok=True)
        if PUBLISHED in sources:
            _add_agreement(page, results, sources[:-1])
        usable = 0
        for i, source in enumerate(sources):
            runs = material(results, source, representation, scores, sheets if source != PUBLISHED else ())
            if isinstance(runs, str):
                failure = f"{page.name(source)}: {runs}."
                page.bodies.append(f'<p class="note">{html.escape(failure)}</p>')
                continue
            usable += 1
            runs = replace(runs, swaps=swaps if source != PUBLISHED else ())
            prefix = f"{file_name(source)}-" if len(sources) > 1 else ""
            notes = [note for note in results.notes if note.startswith(f"{source}:")]
            _add_source(page, runs, prefix, notes, _SourceProgress(progress, source, i, len(sources)))
        if not usable:
            raise UnweaveError(f"no report can be made: {failure}")
        with replacing(page.folder / "index.html") as part:
            part.write_text(document(page), encoding="utf-8")
    except OSError as error:
        raise UnweaveError(
            f"cannot write the report into {folder}: {error}. Choose another folder."
        ) from error
    return page.folder / "index.html"


def file_name(name: str) -> str:
    """The name of a source or a data set as a part of names of files.

    >>> file_name("my tool/2")
    'my-tool-2'
    """
    return re.sub(r"[^\w.-]+", "-", name)


@dataclass(frozen=True)
class _SourceProgress:
    """Reports the sections of one source as a part of the sections of all sources."""

    progress: Progress | None
    source: str
    position: int
    sources: int

    def __call__(self, done: int, total: int, what: str = "") -> None:
        if self.progress:
            self.progress(self.position * total + done, self.sources * total, f"{self.source}: {what}")


def _add_source(page: Page, runs: Material, prefix: str, notes: Sequence[str], progress: Progress) -> None:
    page.contents.append(f'<li class="source">{html.escape(page.name(runs.source))}</li>')
    page.bodies.append(_overview(page, runs, prefix, [*_not_of_the_study(runs), *notes]))
    for i, question in enumerate(SECTIONS):
        progress(i, len(SECTIONS), question.name)
        _add(page, question.answer(runs), question.name, question.text, prefix)
    if runs.swaps:
        _add(page, content_and_style.content_and_style(runs), "swaps", content_and_style.QUESTION, prefix)
    if choosers_of(runs.runs):
        answer = choice_by_agreement.choice_by_agreement(runs)
        _add(page, answer, "chosen", choice_by_agreement.QUESTION, prefix)
    _add_charts(page, runs, prefix)
    progress(len(SECTIONS), len(SECTIONS), "done")


def _add_agreement(page: Page, results: Results, own: Sequence[str]) -> None:
    published = results.table[results.table["source"] == PUBLISHED]
    for source in own:
        table = results.table[results.table["source"] == source]
        answer = agreement_with_published.agreement_with_published(table, published)
        prefix = f"{file_name(source)}-" if len(own) > 1 else ""
        _add(page, answer, "agreement", agreement_with_published.QUESTION, prefix)


def _add(page: Page, section: Section | str, name: str, question: str, prefix: str) -> None:
    """Put a section on the page: an answer, or what the runs lack to give one."""
    page.contents.append(f'<li><a href="#{prefix}{name}">{html.escape(question)}</a></li>')
    if isinstance(section, str):
        section = Section(name, question, f"{CANNOT_TELL}: {section}.")
    page.bodies.append("\n".join(_section(page, section, prefix)))


def _section(page: Page, section: Section, prefix: str) -> Iterator[str]:
    yield f'<section id="{prefix}{section.name}"><h2>{html.escape(section.question)}</h2>'
    yield f'<p class="finding">{html.escape(section.finding)}</p>'
    for lack in section.missing:
        yield f'<p class="note">Missing: {html.escape(lack)}.</p>'
    for drawing in section.drawings:
        yield _figure(drawing, page.folder / "figures" / f"{prefix}{file_name(drawing.name)}")
    for sheet in section.sheets:
        yield _table(sheet, page.folder / "tables" / f"{prefix}{sheet.name}")
    yield "</section>"


def _figure(drawing: Drawing, stem: Path) -> str:
    links = f'<a href="figures/{stem.name}.pdf">PDF</a>, <a href="figures/{stem.name}.png">PNG</a>'
    caption = html.escape(drawing.caption)
    return (
        f'<figure id="figure-{stem.name}">{write_figure(drawing.draw(), stem, drawing.caption)}'
        f"<figcaption>{caption} {links}</figcaption></figure>"
    )


def _table(sheet: Sheet, stem: Path) -> str:
    write_table(sheet.table, stem, sheet.caption)
    links = f'<a href="tables/{stem.name}.csv">CSV</a>, <a href="tables/{stem.name}.tex">LaTeX</a>'
    rows = len(sheet.table)
    cut = f" The first {MOST_ROWS} of {rows:,} rows." if rows > MOST_ROWS else ""
    return (
        f'<details id="table-{stem.name}"{" open" if rows <= 12 else ""}>'
        f"<summary>{html.escape(sheet.caption)} ({rows:,} rows)</summary>"
        f'<p class="note">{links}.{cut}</p>'
        f'<div class="scroll" role="group" tabindex="0" aria-label="{html.escape(sheet.caption)}">'
        f"{table_html(sheet.table, MOST_ROWS)}</div></details>"
    )


def _overview(page: Page, runs: Material, prefix: str, notes: Sequence[str]) -> str:
    data, names = data_sets(runs.runs), methods(runs.runs)
    settings = len(runs.runs.drop_duplicates(["method", "setting"]))
    scores = listed([score_label(name) for name in runs.scores]) or "none"
    words = (
        f"{counted(len(runs.runs), 'run')} of {_named(names, METHODS, 'method')}, "
        f"{counted(settings, 'setting')} and up to {counted(runs.seeds, 'seed')}, on "
        f"{_named(data, DATA, 'data set')}. Metrics compared: {scores}, of {runs.representation} codes."
    )
    title = f"Runs of {page.name(runs.source)}"
    return (
        f'<section id="{prefix}runs"><h2>{html.escape(title)}</h2><p>{html.escape(words)}</p>'
        f"{_notes(notes)}</section>"
    )


def _notes(notes: Sequence[str]) -> str:
    """What is missing as a list that can be opened; figures say it too where they need it."""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    summary = f"What is missing: {counted(len(notes), 'note')}"
    return f'<details class="missing"><summary>{summary}</summary><ul>{items}</ul></details>' if notes else ""


def _named(names: Sequence[str], labels: Mapping[str, str], what: str) -> str:
    return f"{counted(len(names), what)} ({listed([label(name, labels) for name in names])})"


def _not_of_the_study(runs: Material) -> list[str]:
    """What the published study has and these runs do not."""
    lacks = {
        "Data sets": [label(name, DATA) for name in DATA if name not in set(runs.runs["data"])],
        "Methods": [
            words for name, words in PUBLISHED_METHODS.items() if name not in set(runs.runs["method"])
        ],
        "Metrics": [score_label(name) for name in STUDY_SCORES if name not in runs.runs],
    }
    return [
        f"{what} of the published study that these runs lack: {', '.join(names)}."
        for what, names in lacks.items()
        if names
    ]


def _add_charts(page: Page, runs: Material, prefix: str) -> None:
    parts = []
    if interactive.can_draw():
        for name, (caption, description) in interactive.charts(runs).items():
            chart = f"{prefix}chart-{name}"
            parts.append(
                f'<figure><div class="chart" data-chart="{chart}"></div>'
                f"<figcaption>{html.escape(caption)}</figcaption></figure>"
                f'<script type="application/json" id="{chart}">{description}</script>'
            )
        if not parts:
            return
    else:
        parts.append(f'<p class="note">{interactive.ADVICE}</p>')
    page.contents.append(f'<li><a href="#{prefix}explore">Look for yourself</a></li>')
    page.bodies.append(f'<section id="{prefix}explore"><h2>Look for yourself</h2>{"".join(parts)}</section>')


def document(page: Page) -> str:
    """The page as HTML."""
    css = files("unweave.report").joinpath("page.css").read_text(encoding="utf-8")
    needs_scripts = any("data-chart=" in body for body in page.bodies)
    script = f'<script type="module">{interactive.scripts()}</script>' if needs_scripts else ""
    body = "\n".join(page.bodies)
    contents = "".join(page.contents)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="generator" content="unweave {__version__}">
<title>{html.escape(page.title)} &ndash; unweave</title>
<style>
{css}</style>
<script>
{theme_script()}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>{BUTTON}</header>
<div class="layout">
<nav aria-label="Contents"><strong>Contents</strong>
<ol>{contents}</ol></nav>
<main id="main">
<h1>{html.escape(page.title)}</h1>
<p class="dim">Written by unweave {__version__}. All figures and tables are also files, in the folders
figures and tables next to this page.</p>
{body}
</main>
</div>
{script}
</body>
</html>
"""
