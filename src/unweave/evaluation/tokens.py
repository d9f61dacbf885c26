"""Codes of shape (n, k, d): k tokens or slots of d numbers each, which are measured as k blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.evaluation.inputs import read_blocks
from unweave.metrics.checks import as_array


@dataclass(frozen=True)
class Tokens:
    """The shape of the codes of one image: so many tokens of so many numbers."""

    count: int
    width: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all numbers: token0.0, token0.1, ..., token1.0, ..."""
        return tuple(f"token{token}.{place}" for token in range(self.count) for place in range(self.width))

    @property
    def obstacle(self) -> str:
        """Why a metric of single numbers cannot measure tokens, and what to do."""
        return (
            f"it measures single numbers, and these codes are {self.count} tokens of {self.width} numbers. "
            'Use metrics="blocks" to compare tokens, or evaluate(codes.reshape(len(codes), -1), factors) to '
            "measure each number"
        )

    def flat(self, values: Any, what: str) -> NDArray[Any]:
        """Values (n, k, d) as rows (n, k d)."""
        array = as_array(values)
        if array.shape[1:] != (self.count, self.width):
            raise UnweaveError(
                f"{what} must have the shape (n, {self.count}, {self.width}), like the codes; got "
                f"{array.shape}."
            )
        return array.reshape(len(array), -1)

    def blocks(self, stated: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[int, ...]]:
        """The numbers of each block: of each token, or of the tokens that a user's block names."""
        chosen = read_blocks(stated) or {f"token{token}": (token,) for token in range(self.count)}
        for name, tokens in chosen.items():
            if max(tokens) >= self.count:
                raise UnweaveError(
                    f"blocks of codes (n, {self.count}, {self.width}) must name tokens from 0 to "
                    f'{self.count - 1}; block "{name}" has {max(tokens)}.'
                )
        named = [token for tokens in chosen.values() for token in tokens]
        if len(set(named)) < len(named):
            raise UnweaveError(
                f"blocks of codes (n, {self.count}, {self.width}) must name different tokens; got {chosen}."
            )
        return {
            name: tuple(token * self.width + place for token in tokens for place in range(self.width))
            for name, tokens in chosen.items()
        }


def tokens_of(codes: Any) -> Tokens | None:
    """The shape of tokens, if codes have three axes; None for all other codes."""
    try:
        array = as_array(codes) if isinstance(codes, list | tuple) else codes
    except ValueError:  # rows of different lengths, which are refused where codes are read
        return None
    shape: tuple[int, ...] = tuple(getattr(array, "shape", ()))
    return Tokens(int(shape[1]), int(shape[2])) if len(shape) == 3 and min(shape[1:]) > 0 else None


def flat_codes(
    tokens: Tokens, codes: Any, log_var: Any, test: tuple[Any, Any] | None
) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[Any, Any] | None]:
    """Codes, log variances and test data of tokens as rows of numbers."""
    spread = None if log_var is None else tokens.flat(log_var, "log_var")
    if test is not None and isinstance(test, tuple | list) and len(test) == 2:
        test = tokens.flat(test[0], "test codes"), test[1]
    return tokens.flat(codes, "codes"), spread, test
