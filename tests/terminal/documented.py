"""The commands of the documentation: where they stand, and how a test runs each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(?:bash|console|sh|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANY_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(?:\.venv/bin/)?(unweave(?: [^`]+)?)`")
COMMAND = re.compile(r"(?:^|&& |srun )(?:\.venv/bin/)?(unweave .*)$")


@dataclass(frozen=True)
class Documented:
    """A command and the first page that has it."""

    words: tuple[str, ...]
    page: str

    @property
    def text(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.words)


def documented_commands() -> list[Documented]:
    """All commands in blocks of shell code and in running text, each once."""
    found: dict[tuple[str, ...], Documented] = {}
    for page in PAGES:
        for line in _lines(page.read_text()):
            words = tuple(shlex.split(line, comments=True))
            found.setdefault(words, Documented(words, str(page.relative_to(ROOT))))
    return list(found.values())


def _lines(text: str) -> Iterator[str]:
    for block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if match := COMMAND.search(line.strip()):
                yield match[1].removeprefix("unweave ")
    for code in INLINE.findall(ANY_FENCED.sub("", text)):
        if words := code.removeprefix("unweave").strip():
            yield " ".join(words.split())
