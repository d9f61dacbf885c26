"""A trained sparse autoencoder, as functions of plain arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.metrics.checks import as_array, check_codes
from unweave.runs.store import write_tensors
from unweave.sparse.network import PopulationSAE
from unweave.sparse.spec import SparseSpec
from unweave.training.trainer import pick_device

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROWS = 4096  # encoded at a time


class SparseAutoencoder:
    """Codes (n, d) -> sparse features (n, m) -> codes, all in the units of the codes.

    `network` is a population of one. `log` has the losses, one row every 100 steps.
    """

    def __init__(self, spec: SparseSpec, network: PopulationSAE, log: list[dict[str, float]]) -> None:
        self.spec, self.log = spec, log
        self.network = network.requires_grad_(False)

    def __repr__(self) -> str:
        return f"SparseAutoencoder(d={self.dimensions}, {self.spec})"

    @property
    def dimensions(self) -> int:
        """The number d of dimensions of the codes."""
        return self.network.bias.shape[1]

    @property
    def directions(self) -> NDArray[np.float32]:
        """The unit vector that each feature adds to the reconstruction, (m, d)."""
        return _array(self.network.decoder[0])

    @overload
    def encode(self, codes: ArrayLike, *, sparse: Literal[False] = False) -> NDArray[np.float32]: ...

    @overload
    def encode(self, codes: ArrayLike, *, sparse: Literal[True]) -> csr_array[np.float32]: ...

    def encode(
        self, codes: ArrayLike, *, sparse: bool = False
    ) -> NDArray[np.float32] | csr_array[np.float32]:
        """Features of codes, (n, m), all >= 0; with `sparse` as a SciPy array in CSR format."""
        blocks = (self.network.encode(part[None], inference=True).features[0] for part in self._parts(codes))
        if not sparse:
            return np.concatenate([_array(block) for block in blocks])
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([csr_array(_array(block)) for block in blocks], format="csr"))

    def decode(self, features: Any) -> NDArray[np.float32]:
        """Codes of features, (n, d); features may be a sparse array of SciPy."""
        table = as_array(features)
        if table.ndim != 2 or table.shape[1] != self.spec.features:
            raise UnweaveError(f"features must be (n, {self.spec.features}); got {table.shape}.")
        tensor = torch.from_numpy(np.array(table, np.float32)).to(self.network.bias.device)
        return np.concatenate([_array(self.network.decode(part[None])[0]) for part in tensor.split(ROWS)])

    def unexplained(self, codes: ArrayLike) -> float:
        """The share of the variance of codes that the reconstruction misses.

            sum_i |x_i - reconstruction_i|^2 / sum_i |x_i - mean|^2

        0 is perfect; predicting the mean gives 1.
        """
        error, truth = 0.0, check_codes(codes)
        for part in self._parts(codes):
            features = self.network.encode(part[None], inference=True).features
            error += float((self.network.decode(features)[0] - part).double().square().sum())
        return error / float(np.square(truth - truth.mean(axis=0)).sum())

    def save(self, path: str | Path) -> None:
        """Write the model to a file in safetensors format, which `load` reads."""
        record = {"spec": json.dumps(asdict(self.spec)), "log": json.dumps(self.log)}
        write_tensors(Path(path), self.network.state_dict(), record)

    def _parts(self, codes: ArrayLike) -> Iterator[Tensor]:
        table = as_array(codes)
        if table.ndim != 2 or table.shape[1] != self.dimensions or table.dtype.kind not in "biuf":
            raise UnweaveError(
                f"codes must be (n, {self.dimensions}) like those that were trained on; got {table.shape}."
            )
        values = table.astype(np.float64)
        if not np.isfinite(values).all():
            raise UnweaveError("codes must be finite; some are NaN or infinite. Leave those rows out.")
        yield from torch.from_numpy(values).float().to(self.network.bias.device).split(ROWS)


def load(path: str | Path, device: str = "cpu") -> SparseAutoencoder:
    """Read a model that `SparseAutoencoder.save` wrote."""
    try:
        with safe_open(Path(path), "pt") as file:
            record: dict[str, str] = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dictionary
        spec = SparseSpec(**json.loads(record["spec"]))
        network = PopulationSAE([spec], state["bias"].shape[1])
        network.load_state_dict(state)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UnweaveError(
            f"{path} must be a file that SparseAutoencoder.save wrote; reading it failed: {error}"
        ) from error
    return SparseAutoencoder(spec, network.to(pick_device(device)), json.loads(record.get("log", "[]")))


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().cpu().numpy()
    return array
