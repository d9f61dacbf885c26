"""Scores of codes that come batch by batch: an object with update, compute and reset, as in torchmetrics."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.evaluation.evaluate import evaluate
from unweave.evaluation.scores import Scores
from unweave.metrics.lookup import Asked, metrics_named


@final
class DisentanglementScores:
    """Scores of all codes and factors since the last reset.

    `metrics` and `options` are those of `unweave.evaluate`. Batches are kept as NumPy arrays until `reset`:
    the scores are the same as if all rows had been given at once.

    >>> scores = DisentanglementScores("mig")
    >>> codes = np.stack(np.meshgrid(np.arange(4), np.arange(5)), -1).reshape(-1, 2)
    >>> for batch in np.array_split(codes, 3):
    ...     scores.update(batch.astype(float), batch)
    >>> {name: round(value, 2) for name, value in scores.compute().items()}
    {'mig': 1.0}
    """

    def __init__(self, metrics: Asked = "headline", **options: Any) -> None:
        metrics_named(metrics)  # refuses unknown names now, not at the end of an epoch
        self.metrics, self.options = metrics, options
        self._codes: list[NDArray[Any]] = []
        self._factors: list[NDArray[Any]] = []

    def update(self, codes: Tensor | NDArray[Any], factors: Tensor | NDArray[Any]) -> None:
        """Add a batch: codes (n, d) and factors (n, k), as tensors on any device or as arrays."""
        new_codes, new_factors = _array(codes), _array(factors)
        if new_codes.ndim != 2 or new_factors.ndim != 2 or len(new_codes) != len(new_factors):
            raise UnweaveError(
                f"a batch is codes (n, d) and factors (n, k); got {new_codes.shape} and {new_factors.shape}."
            )
        for name, new, kept in (("codes", new_codes, self._codes), ("factors", new_factors, self._factors)):
            if kept and kept[0].shape[1] != new.shape[1]:
                raise UnweaveError(
                    f"the {name} of this batch have {new.shape[1]} columns, those before {kept[0].shape[1]}. "
                    "Call reset() before scores of another model."
                )
        self._codes.append(new_codes)
        self._factors.append(new_factors)

    def compute(self) -> Scores:
        """The scores of all batches, by name."""
        if not self._codes:
            raise UnweaveError("there is nothing to score: call update(codes, factors) before compute().")
        return evaluate(
            np.concatenate(self._codes),
            np.concatenate(self._factors),
            metrics=self.metrics,
            **self.options,
        )

    def reset(self) -> None:
        """Forget all batches."""
        self._codes.clear()
        self._factors.clear()


def _array(values: Tensor | NDArray[Any]) -> NDArray[Any]:
    """A copy as a NumPy array: the caller may overwrite its batch."""
    return values.detach().cpu().numpy().copy() if isinstance(values, Tensor) else np.array(values)
