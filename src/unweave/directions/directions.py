"""What every fit returns: directions in codes, and codes read along them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from unweave.directions.models import Model, open_model, read_encoder
from unweave.errors import UnweaveError
from unweave.evaluation.frozen import EncoderOptions
from unweave.evaluation.read_encoder import ReadEncoder
from unweave.files import write_bytes
from unweave.metrics.checks import as_array

if TYPE_CHECKING:
    from unweave.data import Collection, GroundTruth
    from unweave.evaluation.outputs import Output

Floats = NDArray[np.float64]
DEPENDENT = 1e-8  # singular values of a read-out below this share of the largest are rounding errors
RECORD = "directions"  # the entry of a file's header that says how the directions were fitted


class Reader(Protocol):
    """How codes (n, k) are read from codes (n, d)."""

    def read(self, codes: Floats) -> NDArray[Any]:
        """Codes (n, d) -> codes (n, k)."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file needs to hold, by name."""

    @property
    def record(self) -> dict[str, Any]:
        """What the header of the file needs to say, by name."""


@dataclass(frozen=True, eq=False)
class LinearReader:
    """Reads codes by a matrix (k, d): (x - mean) matrix^T."""

    matrix: Floats
    mean: Floats

    def read(self, codes: Floats) -> Floats:
        """Codes (n, d) -> codes (n, k)."""
        return np.asarray((codes - self.mean) @ self.matrix.T)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The matrix."""
        return {"matrix": self.matrix}

    @property
    def record(self) -> dict[str, Any]:
        """Nothing: the matrix says it all."""
        return {}


@dataclass(frozen=True)
class Fitted:
    """How directions were fitted: by what, on how many codes (None: on weights), with which seed.

    `encoder` is the path of the run or ONNX file whose codes they belong to, and `data` the name of its data
    set; both are empty if they are not known. `remark` says what to know about the fit. `settings` are those
    of the way that other fits may not share, for protocols.
    """

    by: str
    rows: int | None = None
    seed: int | None = None
    encoder: str = ""
    data: str = ""
    remark: str = ""
    settings: str = ""


@dataclass(frozen=True, eq=False)
class Directions:
    """k directions in codes of d numbers, sorted by how much they explain; linear ones as the factors are.

    - `directions` (k, d): what one unit of each new code adds to a code of d numbers.
    - `mean` (d,): the code whose new codes are all 0.
    - `explained` (k,): how much each direction explains. This is the share of the variance of the codes; for
      `sefa`, the share of the squared weights; for `linear`, R2 of the factor, leaving one row out.
    - `names`: what each direction stands for; empty if that is not known.
    """

    directions: Floats
    mean: Floats
    explained: Floats
    reader: Reader
    fitted: Fitted
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.directions)

    def __repr__(self) -> str:
        k, d = self.directions.shape
        return f"Directions(by={self.fitted.by!r}, k={k}, d={d}, rows={self.fitted.rows})"

    @property
    def word(self) -> str:
        """What protocols say: `read:pca10-n10000-seed0` is PCA, 10 directions, 10,000 codes, seed 0."""
        settings = self.fitted.settings and f"-{self.fitted.settings}"
        rows = "" if self.fitted.rows is None else f"-n{self.fitted.rows}"
        seed = "" if self.fitted.seed is None else f"-seed{self.fitted.seed}"
        return f"read:{self.fitted.by}{len(self)}{settings}{rows}{seed}"

    @property
    def note(self) -> str:
        """The same in words."""
        way = self.fitted.by + (self.fitted.settings and f" ({self.fitted.settings})")
        rows = "" if self.fitted.rows is None else f", fitted on {self.fitted.rows:,} codes"
        seed = "" if self.fitted.seed is None else f" (seed {self.fitted.seed})"
        remark = f" {self.fitted.remark}" if self.fitted.remark else ""
        return f"Codes were read along {len(self)} directions found by {way}{rows}{seed}.{remark}"

    @property
    def code_names(self) -> tuple[str, ...]:
        """The names of the codes that are read."""
        return self.names

    def codes(self, codes: Any) -> NDArray[Any]:
        """Codes along the directions, (n, k), of codes (n, d)."""
        return self.reader.read(self._checked(codes))

    def reconstruct(self, codes: Any) -> Floats:
        """Codes (n, d) of codes along the directions (n, k): mean + codes directions.

        What no direction describes is set to its mean.
        """
        table = as_array(codes)
        if table.ndim != 2 or table.shape[1] != len(self):
            raise UnweaveError(
                f"codes along {len(self)} directions must be (n, {len(self)}); got {table.shape}."
            )
        return np.asarray(self.mean + table.astype(np.float64) @ self.directions)

    def move(self, codes: Any, direction: int, step: float) -> NDArray[Any]:
        """Codes (n, d), or one code (d,), moved by `step` units along one direction.

        Of linear read-outs, only this one of the new codes changes, and it changes by `step`, unless codes
        depend on each other, as those of the values of one categorical factor do.
        """
        whole = isinstance(direction, int | np.integer) and not isinstance(direction, bool)
        if not whole or not -len(self) <= direction < len(self):
            raise UnweaveError(
                f"direction must be a whole number from 0 to {len(self) - 1}; got {direction!r}."
            )
        array = as_array(codes)
        moved = self._checked(array if array.ndim == 2 else array[None]) + step * self.directions[direction]
        result = moved.astype(array.dtype if array.dtype.kind == "f" else np.float64)
        return np.reshape(result, array.shape)

    def on(
        self,
        encoder: Any,
        decode: Any = None,
        *,
        data: str | Path | GroundTruth | Collection | None = None,
        transform: Any = None,
        output: Output = None,
        device: str | None = None,
    ) -> ReadEncoder[Directions]:
        """An encoder of images to codes along the directions, for `unweave.evaluate` and `unweave.explore`.

        `encoder` gives codes of d numbers: a run, its folder, a network or a function, as for
        `unweave.evaluate`, which also describes `transform`, `output` and `device`. A run brings its decoder
        and its data along; `decode` and `data` are those of other encoders.
        """
        model = open_model(encoder, decode, data, EncoderOptions(transform, output, None, device))
        return self.along(model)

    def along(self, model: Model) -> ReadEncoder[Directions]:
        """The same for a model that is open already."""
        return read_encoder(self, model, f"{self.fitted.by}{len(self)} of {model.name}")

    def save(self, path: str | Path) -> None:
        """Write the directions to a file in safetensors format, which `unweave.directions.load` reads."""
        target = Path(path)
        fitted = self.fitted
        if fitted.encoder:
            fitted = replace(fitted, encoder=os.path.relpath(fitted.encoder, target.parent))
        record = {"fitted": asdict(fitted), "names": self.names, "reader": self.reader.record}
        arrays = {"directions": self.directions, "mean": self.mean, "explained": self.explained}
        content = {
            name: np.ascontiguousarray(array)
            for name, array in (arrays | {f"reader.{k}": v for k, v in self.reader.arrays.items()}).items()
        }
        write_bytes(target, to_bytes(content, {RECORD: json.dumps(record)}))

    def _checked(self, codes: Any) -> Floats:
        table = as_array(codes)
        width = len(self.mean)
        if table.ndim != 2 or table.shape[1] != width or table.dtype.kind not in "biuf":
            raise UnweaveError(
                f"codes must be numbers of shape (n, {width}), like those of the fit; got "
                f"{table.dtype} of shape {table.shape}."
            )
        return table.astype(np.float64)


def linear_directions(
    matrix: Floats, mean: Floats, explained: Floats, fitted: Fitted, names: tuple[str, ...] = ()
) -> Directions:
    """Directions of a linear read-out (k, d): moving along one changes no other code, where this is possible.

    They are the rows of the transposed pseudo-inverse: the shortest such moves. Codes whose sum is constant,
    such as those of the values of a category, cannot move alone. The others then move as little as possible.
    """
    directions = np.asarray(np.linalg.pinv(matrix, rcond=DEPENDENT).T, np.float64)
    return Directions(directions, mean, explained, LinearReader(matrix, mean), fitted, names)


def signs(directions: Floats) -> Floats:
    """(k, 1) signs that make the largest entry of each direction positive."""
    largest = np.abs(directions).argmax(axis=1)[:, None]
    return np.where(np.take_along_axis(directions, largest, axis=1) < 0, -1.0, 1.0)


def checked_count(k: int | None, most: int, reason: str) -> int:
    """The number of directions, at most `most`; all of them if k is None."""
    if k is None:
        return most
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= most:
        raise UnweaveError(f"k must be a whole number from 1 to {most}, because {reason}; got {k!r}.")
    return int(k)
