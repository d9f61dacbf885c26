"""Settings of an abstract reasoning task: its matrices, the network that solves them, and its training.

Defaults are those of the example configuration of disentanglement_lib for van Steenkiste et al. [1], who also
varied the learning rate (0.01 to 0.0001), the widths (128 to 512) and the dropout.

[1] van Steenkiste, Locatello, Schmidhuber, Bachem: Are disentangled representations helpful for abstract
visual reasoning? NeurIPS 2019.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

from unweave.errors import UnweaveError, did_you_mean

Alternatives: TypeAlias = Literal["hard", "easy"]
Relations: TypeAlias = Literal["mixed", "1", "2", "3"]

CHECKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
SEED, STEPS, CHECKED = "seed", "steps", "checks"


@dataclass(frozen=True)
class ReasoningSpec:
    """Settings of the matrices, of the Wild Relation Network and of its training.

    `alternatives` says how wrong answers are made, and `relations` how many factors are constant in each
    row; see `unweave.reasoning.matrices`. `edge` and `graph` are the widths of the hidden layers, `dropout`
    is the share of the last hidden units that are dropped. `tests` is the number of held-out matrices.
    The accuracy is measured after each of `checks` training steps that is not above `steps`, and at the end.
    `levels` are numbers of values by factor, such as {"shape": 3, "x": 4}; by default those of [1], or four.
    A single number is the most values that a factor may have.

    >>> ReasoningSpec(steps=1_500).checked_steps
    (100, 200, 500, 1000, 1500)
    """

    steps: int = 100_000
    batch: int = 32
    learning_rate: float = 1e-3
    edge: tuple[int, ...] = (512, 512, 512, 512)
    graph: tuple[int, ...] = (256, 256)
    dropout: float = 0.5
    alternatives: Alternatives = "hard"
    relations: Relations = "mixed"
    tests: int = 10_000
    seed: int = 0
    checks: tuple[int, ...] = CHECKS
    levels: Mapping[str, int] | int | None = None

    def __post_init__(self) -> None:
        for name in ("edge", "graph", CHECKED):
            object.__setattr__(self, name, _whole_numbers(name, getattr(self, name)))
        object.__setattr__(self, "relations", str(self.relations))  # 2 is "2", and 512 is one layer
        for name, least in ((STEPS, 1), ("batch", 1), ("tests", 1), (SEED, 0)):
            object.__setattr__(self, name, _whole_number(name, getattr(self, name), least))
        for name in ("dropout", "learning_rate"):
            object.__setattr__(self, name, _real_number(name, getattr(self, name)))
        if not 0 <= self.dropout < 1:
            raise UnweaveError(f"dropout must be at least 0 and below 1; got {self.dropout}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UnweaveError(f"learning_rate must be a number above 0; got {self.learning_rate}.")
        _check_levels(self.levels)
        for name, known in (("alternatives", get_args(Alternatives)), ("relations", get_args(Relations))):
            if getattr(self, name) not in known:
                raise UnweaveError(f"{name} must be {' or '.join(known)}; got {getattr(self, name)!r}.")

    @property
    def checked_steps(self) -> tuple[int, ...]:
        """The steps after which the accuracy is measured, in order; the last one is the end."""
        return tuple(sorted({step for step in self.checks if step < self.steps} | {self.steps}))

    @property
    def protocol(self) -> str:
        """How an accuracy is estimated: the settings that change its expectation.

        >>> ReasoningSpec().protocol
        'reasoning[wren512x4+256x2,batch32,rate0.001,dropout0.5,hard,mixed,mean]'
        """
        widths = "+".join(_widths(layers) for layers in (self.edge, self.graph))
        levels = "" if self.levels is None else f",levels:{_levels_text(self.levels)}"
        return (
            f"reasoning[wren{widths},batch{self.batch},rate{self.learning_rate:g},dropout{self.dropout:g},"
            f"{self.alternatives},{self.relations}{levels},mean]"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ReasoningSpec:
        """The spec that `to_dict` wrote."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in plain:
            if name not in known:
                raise UnweaveError(f'reasoning has no setting "{name}". {did_you_mean(name, known)}')
        return cls(**plain)


def _levels_text(levels: Mapping[str, int] | int) -> str:
    """4, or shape3+x4, whatever the order of the factors."""
    if isinstance(levels, int):
        return str(levels)
    return "+".join(f"{name}{size}" for name, size in sorted(levels.items()))


def _widths(layers: tuple[int, ...]) -> str:
    """512x4 for four layers of 512."""
    if len(set(layers)) == 1:
        return f"{layers[0]}x{len(layers)}"
    return "-".join(map(str, layers))


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    """Whole numbers above 0, of which there is at least one; a single number counts as one of them."""
    if isinstance(value, Integral):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UnweaveError(f"{name} must be whole numbers, such as {getattr(SHOWN, name)}; got {value!r}.")
    numbers = tuple(_whole_number(name, number, 1) for number in value)
    if not numbers:
        raise UnweaveError(f"{name} must have at least one number, such as {getattr(SHOWN, name)}.")
    return numbers


def _whole_number(name: str, number: Any, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise UnweaveError(f"{name} must be a whole number >= {least}; got {number!r}.")
    return int(number)


def _real_number(name: str, number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, Real):
        raise UnweaveError(f"{name} must be a number, such as {getattr(SHOWN, name)}; got {number!r}.")
    return float(number)


def _check_levels(levels: object) -> None:
    if not isinstance(levels, Mapping | int | None) or isinstance(levels, bool):
        raise UnweaveError(
            f'levels must be a number, or numbers of values by factor such as {{"shape": 3}}; got {levels!r}.'
        )


SHOWN = ReasoningSpec()  # whose values messages show
