"""The grammar of conditions.

    condition   = clause { ":" clause }
    clause      = "hold(" tests ")" | "only(" tests ")" | "weigh(" tests ")=" number
                | "random(" number [ "," seed ] ")"
                | factor "~" [ "-" ] ( factor | "*" ) "=" number
                | "colour" | "noise" | preset [ "=" number ]
    tests       = test { "," test }
    test        = factor ( "=" | "!=" ) values | factor ( "<" | "<=" | ">" | ">=" ) value
    values      = span { "|" span }
    span        = value [ ".." value ]
    value       = whole number | label of a value

Values are positions 0, 1, 2, ... of a factor's values. Spaces between words are ignored. Names of factors and
labels may be any text, such as "hair colour" or "18-24". Numbers are positions, also if they are
labels; a label such as "0.5" can be written if no label of the factor is a whole number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unweave.data.conditions.condition import Box, Clauses, Condition, Correlation, RandomShare, box_of
from unweave.data.conditions.cursor import NUMBER, Cursor
from unweave.data.conditions.presets import PRESETS, expanded
from unweave.data.grid import Factor
from unweave.errors import UnweaveError, did_you_mean

PAINTS = ("colour", "noise")
WHOLE = re.compile(r"[-+]?\d+")
MOST_LABELS = 6  # in an error
OPERATORS = ("<=", ">=", "!=", "<", ">", "=")


def parse(text: str, factors: Sequence[Factor]) -> Condition:
    """The condition of a text for data with these factors.

    >>> factors = [Factor("shape", 3), Factor("x", 32)]
    >>> parse("hold(x>=16, shape=2)", factors).text(factors)
    'hold(shape=2,x=16..31)'
    """
    return Condition.of(_read(text, factors), factors)


def _read(text: str, factors: Sequence[Factor]) -> Clauses:
    varied = [factor.name for factor in factors if factor.size > 1] or ["factor"]
    reader = _Reader(Cursor(text, f"hold({varied[0]}=0) or {varied[0]}~{varied[-1]}=0.2"), factors, Clauses())
    reader.clause()
    while not reader.cursor.ended:
        reader.cursor.expect(":")
        reader.clause()
    return reader.clauses


@dataclass
class _Reader:
    """Reads clauses one after another."""

    cursor: Cursor
    factors: Sequence[Factor]
    clauses: Clauses

    def clause(self) -> None:
        """Read one clause."""
        start = self.cursor.at
        word = self._name("a condition, such as hold(...), only(...) or the name of a factor")
        if self.cursor.takes("~"):
            self._correlation(self._column(word, start))
        elif self.cursor.takes("("):
            self._call(word, start)
        else:
            self._word(word, start)

    def _calls(self) -> dict[str, Callable[[], None]]:
        """Words with parentheses, and how the rest of their clause is read."""
        return {
            "hold": lambda: self.clauses.held.append(self._tests()),
            "only": lambda: self.clauses.only.append(self._tests()),
            "weigh": self._weight,
            "random": self._random,
        }

    def _call(self, word: str, start: int) -> None:
        calls = self._calls()
        if word not in calls:
            raise self.cursor.problem(f'there is no condition "{word}(...)". {_known(word, calls)}', start)
        calls[word]()

    def _word(self, word: str, start: int) -> None:
        if word in PAINTS:
            self.clauses.paints.append(word)
            return
        if word in self._calls():
            raise self.cursor.error(f'"(" after {word}')
        if word not in PRESETS:
            known = (*PRESETS, *PAINTS)
            raise self.cursor.problem(
                f'there is no condition or split "{word}". {_known(word, known)}', start
            )
        sigma = self._sigma() if self.cursor.takes("=") else None
        try:
            inner = _read(expanded(word, sigma, self.factors), self.factors)
        except UnweaveError as error:
            raise self.cursor.problem(str(error).rstrip("."), start) from error
        for name, values in vars(inner).items():
            getattr(self.clauses, name).extend(values)

    def _correlation(self, first: int) -> None:
        inverse, start = bool(self.cursor.takes("-")), self.cursor.at
        if self.cursor.takes("*"):
            others = [j for j, factor in enumerate(self.factors) if j != first and factor.size > 1]
        else:
            others = [self._column(self._name('the name of a factor or "*"'), start)]
        self.cursor.expect("=")
        sigma = self._sigma()
        for other in others:
            if other == first or 1 in (self.factors[first].size, self.factors[other].size):
                raise self.cursor.problem("two different factors that vary can be correlated", start)
            self.clauses.correlations.append(
                Correlation(min(first, other), max(first, other), sigma, inverse)
            )

    def _sigma(self) -> float:
        start, sigma = self.cursor.at, self.cursor.number("the sigma of the correlation, such as 0.2")
        if not sigma > 0:
            raise self.cursor.problem("sigma must be greater than 0", start)
        if math.isinf(sigma):
            raise self.cursor.problem("sigma must be finite", start)
        return sigma

    def _weight(self) -> None:
        box = self._tests()
        self.cursor.expect("=")
        self.clauses.weights.append((box, self._share("the weight")))

    def _random(self) -> None:
        share, seed = self._share("the share to hold out"), 0
        if self.cursor.takes(","):
            start = self.cursor.at
            whole = self.cursor.whole()
            if whole is None:
                raise self.cursor.error("the seed, a whole number", start)
            seed = whole
        self.cursor.expect(")")
        self.clauses.random.append(RandomShare(share, seed))

    def _share(self, what: str) -> float:
        start = self.cursor.at
        share = self.cursor.number(f"{what}, a number between 0 and 1")
        if not 0 < share < 1:
            raise self.cursor.error(f"{what}, a number between 0 and 1", start)
        return share

    def _tests(self) -> Box:
        start, tests = self.cursor.at, [self._test()]
        while self.cursor.expect(",", ")") == ",":
            tests.append(self._test())
        box = box_of(tests)
        for column, values in box:
            if not values:
                name = self.factors[column].name
                raise self.cursor.problem(f"no value of {name} satisfies all tests", start)
        return box

    def _test(self) -> tuple[int, frozenset[int]]:
        start = self.cursor.at
        column = self._column(self._name("the name of a factor"), start)
        operator, every = self.cursor.expect(*OPERATORS), range(self.factors[column].size)
        if operator in ("=", "!="):
            chosen = self._span(column)
            while self.cursor.takes("|"):
                chosen |= self._span(column)
            return column, chosen if operator == "=" else frozenset(every) - chosen
        bound = self._value(column)
        compared = {
            "<": every[:bound],
            "<=": every[: bound + 1],
            ">": every[bound + 1 :],
            ">=": every[bound:],
        }
        return column, frozenset(compared[operator])

    def _span(self, column: int) -> frozenset[int]:
        start, first = self.cursor.at, self._value(column)
        last = self._value(column) if self.cursor.takes("..") else first
        if last < first:
            raise self.cursor.problem(f"the range {first}..{last} has no values", start)
        return frozenset(range(first, last + 1))

    def _value(self, column: int) -> int:
        factor, start = self.factors[column], self.cursor.at
        label = self.cursor.label(_words(factor))
        if label and factor.labels:
            return factor.labels.index(label)
        expected = _values_of(factor)
        numbered = len(_words(factor)) < len(factor.labels or ())
        value = self.cursor.whole(expected) if numbered else self.cursor.whole()
        if value is None or value >= factor.size:
            raise self.cursor.error(expected, start)
        return value

    def _name(self, what: str) -> str:
        return self.cursor.name(what, (factor.name for factor in self.factors))

    def _column(self, name: str, start: int) -> int:
        names = [factor.name for factor in self.factors]
        if name not in names:
            raise self.cursor.problem(f'there is no factor "{name}". {_known(name, names)}', start)
        return names.index(name)


def _words(factor: Factor) -> list[str]:
    """The labels that can be written: not numbers, if one of them looks like a position."""
    labels = factor.labels or ()
    if not any(WHOLE.fullmatch(label) for label in labels):
        return list(labels)
    return [label for label in labels if not NUMBER.fullmatch(label.lstrip("+-"))]


def _values_of(factor: Factor) -> str:
    """What may be written for a value of a factor, for errors."""
    words, labels = _words(factor), factor.labels or ()
    positions = f" (the positions of {_shortened(labels)})" if len(words) < len(labels) else ""
    known = f" or one of {_shortened(words)}" if words else ""
    return f"a value of {factor.name}, 0 to {factor.size - 1}{positions}{known}"


def _shortened(labels: Sequence[str]) -> str:
    return ", ".join([*labels[:MOST_LABELS], *(["..."] if len(labels) > MOST_LABELS else [])])


def _known(word: str, known: Sequence[str] | dict[str, Callable[[], None]]) -> str:
    return did_you_mean(word, list(known)).rstrip(".")
