"""Figures and tables as files and as parts of a page; the same content gives the same bytes."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from unweave.report.names import DATA, METHODS, SCORES, label
from unweave.report.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 160
PIXELS = 130  # of an inch on the page, so that text has the same size in all figures
_LABELS = {
    "data": DATA,
    "method": METHODS,
    "highest mean": METHODS,
    "closest rival": METHODS,
    "score": SCORES,
    "chooser": SCORES,
    "first": {**SCORES, **DATA},
    "second": {**SCORES, **DATA},
}
# Without these, files would hold the time at which they were made.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as a pdf, svg or png file."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=_METADATA[kind])
    return buffer.getvalue()


def write_figure(figure: Figure, stem: Path, alt: str) -> str:
    """Write stem.pdf and stem.png, and return an element of a page that holds the smaller of PNG and SVG."""
    contents = {kind: figure_bytes(figure, kind) for kind in ("pdf", "png", "svg")}
    for kind in ("pdf", "png"):
        stem.with_suffix(f".{kind}").write_bytes(contents[kind])
    kind, name = min([("png", "png"), ("svg", "svg+xml")], key=lambda pair: len(contents[pair[0]]))
    address = f"data:image/{name};base64,{base64.b64encode(contents[kind]).decode()}"
    width = round(figure.get_figwidth() * PIXELS)
    return f'<img src="{address}" width="{width}" alt="{html.escape(alt)}">'


def write_table(table: pd.DataFrame, stem: Path, caption: str) -> None:
    """Write stem.csv and stem.tex."""
    table.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g", lineterminator="\n")
    stem.with_suffix(".tex").write_text(table_latex(table, caption, stem.name), encoding="utf-8")


def labelled(table: pd.DataFrame) -> tuple[list[str], list[tuple[str, ...]]]:
    """The head and the rows of a table as texts: names as people write them, three decimals."""
    columns = []
    for name in table:
        labels = _LABELS.get(str(name), {})
        columns.append([_text(value, labels) for value in table[name].tolist()])
    return [str(name).replace("_", " ") for name in table], list(zip(*columns, strict=True))


def _text(value: Any, labels: dict[str, str]) -> str:
    if isinstance(value, str):
        several = value.split(", ") if labels else [value]  # methods with the same mean
        return ", ".join(label(name, labels) if labels else name for name in several)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if pd.isna(value):
        return ""
    if isinstance(value, int) or (value == round(value) and abs(value) >= 1):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.1f}"


def _numeric(table: pd.DataFrame) -> list[bool]:
    return [pd.api.types.is_numeric_dtype(table[name]) for name in table]


def table_html(table: pd.DataFrame, most: int) -> str:
    """The first rows of a table for a page."""
    names, rows = labelled(table.head(most))
    marks = [' class="number"' if number else "" for number in _numeric(table)]
    head = "".join(f"<th{mark}>{html.escape(name)}</th>" for name, mark in zip(names, marks, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{m}>{html.escape(v)}</td>" for v, m in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


LONGEST = 45  # rows of a table that fits on a page


def table_latex(table: pd.DataFrame, caption: str, name: str) -> str:
    """A table for LaTeX with the package booktabs; one that is longer than a page needs longtable too."""
    (names, texts), long = labelled(table), len(table) > LONGEST
    columns = "".join("r" if number else "l" for number in _numeric(table))
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in texts]
    head = " & ".join(map(_latex, names)) + r" \\"
    title = rf"\caption{{{_latex(caption)}}}\label{{tab:{name}}}"
    rows = [r"\toprule", head, r"\midrule", *([r"\endhead"] if long else []), *lines, r"\bottomrule"]
    if long:
        begin, end = [rf"\begin{{longtable}}{{{columns}}}", title + r"\\"], [r"\end{longtable}"]
    else:
        begin = [r"\begin{table}", r"\centering", title, rf"\begin{{tabular}}{{{columns}}}"]
        end = [r"\end{tabular}", r"\end{table}"]
    return "\n".join([*begin, *rows, *end]) + "\n"


def _latex(text: str) -> str:
    """The text with what LaTeX would take for a command written out."""
    escaped = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    return escaped.replace("β", r"$\beta$").replace("|", r"\textbar{}").replace("~", r"\textasciitilde{}")
