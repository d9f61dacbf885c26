"""What a sparse autoencoder is and how it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from unweave.errors import UnweaveError, did_you_mean
from unweave.streams import Stream

Kind: TypeAlias = Literal["topk", "batch_topk", "relu"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class SparseSpec:
    """Settings of a sparse autoencoder.

    - `features`: the number of features m.
    - `kind`: "topk" keeps the `k` largest activations of each code (Gao et al., 2024). "batch_topk" keeps the
      k B largest of a batch of B codes (Bussmann et al., 2024), so that some codes have more than others.
      "relu" keeps all positive activations and penalises their sum by `l1` (Bricken et al., 2023).
    - `steps`, `batch`, `learning_rate`: Adam; the rate falls linearly to 0 over the last fifth of the steps.
      With 0 steps the autoencoder stays untrained, which is a control.
    - `dead_after`: a feature that did not fire on so many codes is dead. `auxiliary` is the weight of the
      loss that revives dead features; 0 turns it off, and "relu" does not have it. It helps codes with
      hundreds of dimensions. With about ten dimensions it can increase the number of dead features.
    - `seed`: of the initial weights and the batches.
    """

    features: int
    k: int | None = None
    kind: Kind = "topk"
    l1: float = 0.0
    steps: int = 5000
    batch: int = 1024
    learning_rate: float = 1e-3
    auxiliary: float = 1 / 32
    dead_after: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnweaveError(
                f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}. "
                f"{did_you_mean(str(self.kind), KINDS)}"
            )
        for name, least in (("features", 1), ("steps", 0), ("batch", 1), ("dead_after", 1)):
            _check_count(name, getattr(self, name), least)
        for name in ("l1", "learning_rate", "auxiliary"):
            _check_number(name, getattr(self, name))
        Stream.of(self.seed)  # refuses what is no seed
        self._check_sparsity()

    def _check_sparsity(self) -> None:
        if self.kind == "relu":
            if self.k is not None or self.l1 <= 0:
                raise UnweaveError(
                    f'kind "relu" needs l1 > 0 and no k; got l1={self.l1:g}, k={self.k}. Pass for example '
                    "l1=0.01, or choose the number of active features with kind 'topk'."
                )
            return
        if self.l1 != 0:
            raise UnweaveError(f'l1 belongs to kind "relu"; got l1={self.l1:g} with kind "{self.kind}".')
        if self.k is None:
            raise UnweaveError(
                f'kind "{self.kind}" needs k, how many features are active; got none. Pass for example k=4.'
            )
        _check_count("k", self.k, 1)
        if self.k > self.features:
            raise UnweaveError(f"k must be at most the {self.features} features; got k={self.k}.")

    @property
    def active(self) -> int:
        """How many features stay active for each code: k, or all of them."""
        return self.features if self.k is None else self.k


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UnweaveError(f"{name} must be a whole number >= {least}; got {value!r}.")


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UnweaveError(f"{name} must be a number >= 0; got {value!r}.")
