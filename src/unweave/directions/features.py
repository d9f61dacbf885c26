"""Directions by a sparse autoencoder: its features are the codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from unweave.directions.directions import Directions, Fitted, Floats
from unweave.errors import UnweaveError
from unweave.metrics.checks import check_codes
from unweave.sparse import SparseAutoencoder, SparseSpec, train
from unweave.sparse.network import PopulationSAE


@dataclass(frozen=True, eq=False)
class SparseReader:
    """Reads the features of a sparse autoencoder, in the order of the directions."""

    model: SparseAutoencoder
    order: NDArray[np.int64]

    def read(self, codes: Floats) -> NDArray[np.float32]:
        """Codes (n, d) -> features (n, k), all >= 0."""
        return self.model.encode(codes)[:, self.order]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights and the order of the features."""
        state = {name: tensor.cpu().numpy() for name, tensor in self.model.network.state_dict().items()}
        return state | {"order": self.order}

    @property
    def record(self) -> dict[str, Any]:
        """The spec of the autoencoder."""
        return {"spec": asdict(self.model.spec)}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> SparseReader:
        """The reader that a file holds."""
        spec = SparseSpec(**record["spec"])
        network = PopulationSAE([spec], arrays["bias"].shape[1])
        state = {name: torch.from_numpy(array) for name, array in arrays.items() if name != "order"}
        try:
            network.load_state_dict(state)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        return cls(SparseAutoencoder(spec, network, []), arrays["order"])


def sparse(codes: ArrayLike, spec: SparseSpec, *, device: str = "auto") -> Directions:
    """The features of a sparse autoencoder that is trained on codes (n, d); see `unweave.sparse.train`.

    `spec.features` is the number of directions. `explained` is the variance of a feature relative to that of
    the codes; features overlap, so the shares do not add up. Moving along a direction also changes other
    features, because features are no linear function of codes.
    """
    if not isinstance(spec, SparseSpec):
        raise UnweaveError(
            f"spec must be a SparseSpec, such as SparseSpec(features=64, k=4); got {type(spec).__name__}."
        )
    table = check_codes(codes)
    model = train(table, spec, device=device)
    explained = model.encode(table).var(axis=0, dtype=np.float64) / table.var(axis=0).sum()
    order = np.argsort(-explained, kind="stable")
    return Directions(
        model.directions[order].astype(np.float64),
        model.network.bias[0].cpu().numpy().astype(np.float64),
        explained[order],
        SparseReader(model, order),
        Fitted("sparse", len(table), spec.seed, settings=_settings(spec)),
    )


def _settings(spec: SparseSpec) -> str:
    """The kind and its sparsity, and all further settings that are not the defaults: `topk4-steps100`."""
    words = [f"{spec.kind}{spec.l1:g}" if spec.k is None else f"{spec.kind}{spec.k}"]
    for field in fields(spec):
        value = getattr(spec, field.name)
        if field.name not in {"features", "k", "kind", "l1"} and value != field.default:
            words.append(f"{field.name}{value:g}")
    return "-".join(words)
