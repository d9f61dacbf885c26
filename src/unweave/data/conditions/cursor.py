"""A position in a text that is read from left to right, with errors that state the position."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unweave.errors import UnweaveError

NAME = re.compile(r"[^\W\d][\w-]*")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
MOST_DIGITS = 40
SPACE = re.compile(r"\s*")
AFTER_NAME = re.compile(r"(?![\w-])")
AFTER_LABEL = re.compile(r"\s*([,)|]|\.\.|$)")


@dataclass
class Cursor:
    """The text of a condition and how far it has been read; `example` is shown in errors."""

    text: str
    example: str
    at: int = 0

    def _skip_space(self) -> None:
        match = SPACE.match(self.text, self.at)
        self.at = self.at if match is None else match.end()

    @property
    def ended(self) -> bool:
        """Whether nothing is left to read."""
        self._skip_space()
        return self.at == len(self.text)

    def takes(self, *symbols: str) -> str:
        """The first of the symbols that is next, which is then read; empty if none is."""
        self._skip_space()
        for symbol in symbols:
            if self.text.startswith(symbol, self.at):
                self.at += len(symbol)
                return symbol
        return ""

    def expect(self, *symbols: str) -> str:
        """The symbol that is next, which must be one of these."""
        found = self.takes(*symbols)
        if not found:
            raise self.error(" or ".join(f'"{symbol}"' for symbol in symbols))
        return found

    def word(self) -> str:
        """The name that is next; empty if there is none."""
        return self._match(NAME)

    def name(self, what: str, known: Iterable[str] = ()) -> str:
        """The name that is next; `what` says what it should name. Known names may be any text."""
        return self._known(known, AFTER_NAME) or self.word() or self._raise(what)

    def label(self, known: Iterable[str]) -> str:
        """The label of a value that is next, one of those known; empty if none is."""
        return self._known(known, AFTER_LABEL)

    def number(self, what: str) -> float:
        """The number that is next; `what` says what it means."""
        return float(self._match(NUMBER) or self._raise(what))

    def whole(self, expected: str = f"a whole number of at most {MOST_DIGITS} digits") -> int | None:
        """The whole number that is next, or None; another number is not what is `expected`."""
        start, text = self.at, self._match(NUMBER)
        if text and (not text.isdigit() or len(text) > MOST_DIGITS):
            self.at = start
            raise self.error(expected)
        return int(text) if text else None

    def error(self, expected: str, at: int | None = None) -> UnweaveError:
        """The error that something else was expected at this position."""
        position = self.at if at is None else at
        received = f'"{self.text[position:]}"' if position < len(self.text) else "the end"
        return self.problem(f"expected {expected}, got {received}", position)

    def problem(self, sentence: str, at: int) -> UnweaveError:
        """An error at a position."""
        return UnweaveError(
            f'cannot read the condition "{self.text}" at character {at + 1}: '
            f"{sentence}{'' if sentence.endswith('?') else '.'} Write for example {self.example}."
        )

    def _known(self, known: Iterable[str], after: re.Pattern[str]) -> str:
        """The longest of the known texts that is next, before what matches `after`."""
        self._skip_space()
        for text in sorted(known, key=len, reverse=True):
            if text and self.text.startswith(text, self.at) and after.match(self.text, self.at + len(text)):
                self.at += len(text)
                return text
        return ""

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._skip_space()
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def _raise(self, expected: str) -> str:
        raise self.error(expected)
