"""The bindings of a gin file, the format of the settings of disentanglement_lib."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from unweave.errors import UnweaveError

# Names such as "vae.beta" or "vae/AdamOptimizer.learning_rate", and their values as gin writes them.
Bindings: TypeAlias = Mapping[str, Any]

_BINDING = re.compile(r"([\w./]+)\s*=\s*(.+)", re.DOTALL)
_OPENING, _CLOSING = "([{", ")]}"


def parse_gin(text: str) -> dict[str, str]:
    r"""The bindings of a gin file, with macros filled in; values stay as they are written.

    >>> parse_gin("size = 10\nencoder.num_latent = %size\nmodel.model = \\\n    @vae()\n")
    {'encoder.num_latent': '10', 'model.model': '@vae()'}
    """
    bindings: dict[str, str] = {}
    macros: dict[str, str] = {}
    for statement in _statements(text):
        match = _BINDING.fullmatch(statement)
        if match:
            place = bindings if "." in match[1] else macros
            place[match[1]] = match[2].strip()
        elif statement.startswith("include"):
            raise UnweaveError(
                f"a gin file with `{statement}` is not complete. Use the operative configuration that "
                "disentanglement_lib writes next to its results: results/gin/train.gin."
            )
    return {name: macros.get(value.removeprefix("%"), value) for name, value in bindings.items()}


def _statements(text: str) -> list[str]:
    """The statements of a gin file, each on one line; comments are left out."""
    statements: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if statements and (line[0].isspace() or _is_open(statements[-1])):
            begun = statements[-1].removesuffix("\\").rstrip()
            statements[-1] = f"{begun} {line.strip()}"
        else:
            statements.append(line.strip())
    return statements


def _is_open(statement: str) -> bool:
    """Whether a statement goes on in the next line."""
    depth = sum(statement.count(mark) for mark in _OPENING) - sum(statement.count(mark) for mark in _CLOSING)
    return depth > 0 or statement.endswith("\\")


def gin_value(written: Any) -> Any:
    """A value of a binding as a plain one; a reference such as @vae() is its name.

    >>> [gin_value(text) for text in ("'dsprites_full'", "16.0", "[10, 100]", "@vae/AdamOptimizer", "@vae()")]
    ['dsprites_full', 16.0, [10, 100], 'AdamOptimizer', 'vae']
    """
    if not isinstance(written, str):
        return written
    text = written.strip()
    if text.startswith("@"):
        return re.split(r"[/.]", text[1:].removesuffix("()"))[-1]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def bound(bindings: Bindings, name: str) -> Any:
    """The value of a binding that must be there."""
    if name not in bindings:
        raise UnweaveError(
            f"the settings of disentanglement_lib do not bind {name}. Use the operative configuration of the "
            "training: results/gin/train.gin."
        )
    return gin_value(bindings[name])
