"""The scripts of the pages: which there are, and several of them as one for a page without a server."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from unweave.errors import UnweaveError

IMPORT = re.compile(r"^import\s*\{([^}]*)\}\s*from\s*\"([^\"]+)\";\n", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def pages() -> Traversable:
    """The folder of the pages."""
    return files("unweave.explore") / "pages"


@cache
def script_names() -> tuple[str, ...]:
    """All scripts, by their paths in the folder of the pages."""
    return tuple(sorted(_below(pages(), "")))


def _below(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".js"):
            yield prefix + entry.name


def bundle(first: str) -> str:
    """A script and all that it imports as one script; each module keeps a scope of its own.

    A module becomes a function that returns what it exports, and an import takes its names from there. The
    first script stands as it is, at the end.
    """
    modules: dict[str, str] = {}
    text = _with_imports(first, modules)
    return "\n".join([*modules.values(), text])


def _add(name: str, modules: dict[str, str]) -> None:
    """Add a module as a function, after those that it imports."""
    if name not in modules:
        text = _with_imports(name, modules)
        source = pages().joinpath(name).read_text("utf-8")
        exported = ", ".join(export for _, export in EXPORT.findall(source))
        modules[name] = f"const {_scope(name)} = (() => {{\n{text}return {{ {exported} }};\n}})();"


def _with_imports(name: str, modules: dict[str, str]) -> str:
    """The text of a script whose imports have been added and are taken from there."""
    text = pages().joinpath(name).read_text(encoding="utf-8")
    for _, place in IMPORT.findall(text):
        _add(_resolved(name, place), modules)
    text = IMPORT.sub(lambda m: f"const {{{m[1]}}} = {_scope(_resolved(name, m[2]))};\n", text)
    text = EXPORT.sub(r"\1 \2", text)
    if left := LEFT_OVER.search(text):
        raise UnweaveError(
            f"{name} has an import or export that cannot be bundled: {left[0]!r}. Import names in braces, "
            "and export functions or constants where they are defined."
        )
    return text


def _resolved(name: str, place: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), place))


def _scope(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))
