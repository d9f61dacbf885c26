"""The parts of the reference that are generated from the code while the pages are built."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name

from cyclopts import App
from sphinx.ext.napoleon import Config, NumpyDocstring

DOCS = Path(__file__).parent
COMMANDS = "<!-- commands -->"
MODULE = re.compile(r"<!-- public names of ([\w.]+) -->")
STATED = re.compile(r"^\| `([\w.]+)` \| (.+) \|$", re.MULTILINE)
CONTENTS = re.compile(r"^## Table of Contents\n.*?(?=^\*\*Commands\*\*|^#)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[(`\w+`)\]\(#[\w-]+\)")


def fill_page(text: str) -> str:
    """Replace the marks of a page by what they stand for."""
    if COMMANDS in text:
        text = text.replace(COMMANDS, commands())
    return MODULE.sub(lambda mark: public_names(mark[1]), text)


def commands() -> str:
    """All commands with their options, as Markdown with headings of level 2 and below."""
    from unweave.cli import app

    with _called_as("unweave"):
        whole = app.generate_docs(heading_level=1)
        sections = re.split(r"^(?=## unweave )", whole, flags=re.MULTILINE)[1:]
        return "\n".join(_section(section) for section in sections)


@contextmanager
def _called_as(name: str) -> Iterator[None]:
    """Let usage lines start with this name; cyclopts takes it from the command that is running."""
    before = sys.argv[0]
    sys.argv[0] = name
    try:
        yield
    finally:
        sys.argv[0] = before


def _section(section: str) -> str:
    """One command; those that are loaded when they are used are loaded."""
    from unweave.commands.metrics import metrics_app
    from unweave.commands.study import study_app
    from unweave.commands.train import train_app

    loaded = {"train": lambda: train_app("beta_vae"), "study": study_app, "metrics": metrics_app}
    name = section.split()[2]
    return _without_contents(loaded[name]()) if name in loaded else section


def _without_contents(group: App) -> str:
    text = LINK.sub(r"\1", CONTENTS.sub("", group.generate_docs(heading_level=2)))
    return re.sub(r"\n```console\n.*? COMMAND\n```\n", "", text, count=1)


def stated_names() -> dict[str, list[str]]:
    """The public names of each module, as docs/api.md states them."""
    rows = STATED.findall((DOCS / "api.md").read_text(encoding="utf-8"))
    return {module: re.findall(r"`(\w+)`", names) for module, names in rows}


def public_names(path: str) -> str:
    """A table of the public names of a module, then each with its docstring."""
    module = resolve_name(path)
    values = {name: getattr(module, name) for name in stated_names()[path]}
    documented = {name: value for name, value in values.items() if callable(value)}
    lines = [f".. currentmodule:: {module.__name__}", "", ".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {name}" for name in documented]
    for name, value in documented.items():
        lines += ["", f".. {'autoclass' if inspect.isclass(value) else 'autofunction'}:: {name}"]
        if path != "unweave" and inspect.isclass(value) and name in stated_names()["unweave"]:
            lines.append("   :no-index:")  # it is indexed under its shorter name
    for name, value in values.items():
        if isinstance(value, Mapping | tuple):
            lines += [
                "",
                f".. py:data:: {name}",
                f"   :type: {type(value).__name__}",
                "",
                f"   {_entries(value)}",
            ]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def _entries(table: Mapping[str, object] | tuple[object, ...]) -> str:
    """What a public table holds."""
    if isinstance(table, Mapping):
        return "Keys: " + ", ".join(f"``{key}``" for key in table) + "."
    return f"{len(table)} entries."


def restructure(what: str, lines: list[str]) -> None:
    """Turn the plain text of a docstring, with code in single backquotes, into reStructuredText."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>> ") or (in_example and bool(line.strip()))
        if not in_example:
            lines[number] = _escaped(line)
    if what in ("class", "function", "method"):  # in a property, the text before a colon would become a type
        lines[:] = str(NumpyDocstring(lines, Config(napoleon_use_rtype=False), what=what)).splitlines()


def _escaped(line: str) -> str:
    parts = re.split(r"(`+[^`]+`+)", line)
    parts[1::2] = [f"``{code.strip('`')}``" for code in parts[1::2]]
    parts[::2] = [re.sub(r"([|*])|(?<=\w)_(?!\w)", lambda mark: "\\" + mark[0], text) for text in parts[::2]]
    return "".join(parts)
