"""Directions of a trained model: its images are drawn and encoded, and directions are fitted to the codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unweave.data import Factor, GroundTruth
from unweave.data.opening import open_data
from unweave.directions.components import ica, pca
from unweave.directions.directions import Directions
from unweave.directions.models import Data, Model, open_model
from unweave.directions.regression import linear
from unweave.directions.storage import load
from unweave.directions.weights import first_weights, sefa, weights_of_run
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.encoders import EncodeImages, is_run
from unweave.evaluation.frozen import EncoderOptions, is_module
from unweave.evaluation.likelihoods import CHUNK
from unweave.evaluation.onnx_model import SUFFIX as ONNX_SUFFIX
from unweave.evaluation.onnx_model import OnnxModel
from unweave.evaluation.outputs import Output
from unweave.evaluation.read_encoder import ReadEncoder
from unweave.metrics.checks import as_array
from unweave.metrics.kinds import KindLike
from unweave.progress import Progress, no_progress
from unweave.streams import Stream

if TYPE_CHECKING:
    from unweave.sparse import SparseSpec

By: TypeAlias = Literal["pca", "ica", "linear", "sefa", "sparse"]
WAYS: tuple[By, ...] = get_args(By)
IMAGES = 10_000  # whose codes directions are fitted to
LEAST_IMAGES = 10
ACTIVE = 4  # features of a sparse autoencoder that are active at once, unless a spec says so


def fit(
    encoder: Any,
    by: By = "pca",
    k: int | None = None,
    *,
    data: str | Path | Data | None = None,
    images: int = IMAGES,
    seed: int = 0,
    decode: Any = None,
    spec: SparseSpec | None = None,
    transform: Any = None,
    output: Output = None,
    device: str | None = None,
    tell: Progress = no_progress,
) -> ReadEncoder[Directions]:
    """Fit directions to the codes of a run, a network or a function, and return it as a new encoder.

    `by` is pca, ica, linear (from the factors of the data), sefa (from the first weights of the decoder, or
    those of all styles of `style_gan2`) or sparse (k features of a sparse autoencoder, 4 of them active, or
    as `spec` states). `images` images of `data` are drawn with `seed` and encoded. A run draws from the data
    that it was trained on, without what was held out of it, and brings its decoder along. `decode` is the
    decoder of other encoders: a function of codes (n, d) or a torch module. The other options are those of
    `unweave.evaluate`.

    The directions themselves are `.directions` of the result.
    """
    _check_choice(by, images)
    model = open_model(encoder, decode, data, EncoderOptions(transform, output, None, device))
    if model.data is None:
        raise UnweaveError('an encoder needs data to encode: fit(encode, data="dsprites").')
    codes, drawn = _encoded(model.encode, model.data, images, Stream.of(seed).child("directions"), tell)
    found = _fitted(by, k, codes, model, drawn, seed) if spec is None else _of_spec(by, codes, spec)
    drawn_by = None if found.fitted.rows is None else seed  # weights depend on no images
    fitted = replace(found.fitted, seed=drawn_by, encoder=model.path, data=model.data.name)
    return replace(found, fitted=fitted).along(model)


def open_encoder(
    path: str | Path,
    *,
    data: str | Path | None = None,
    data_root: str | Path | None = None,
    device: str = "cpu",
) -> ReadEncoder[Directions]:
    """The encoder that a file of `unweave directions` belongs to, read along its directions.

    `data` is the data set, if not that of the fit. The run or ONNX file is opened where it was when the file
    was written, seen from the file.
    """
    found = load(path)
    source = found.fitted.encoder
    if not source or not Path(source).exists():
        raise UnweaveError(
            f"the encoder of {path} {f'is not at {source}' if source else 'is not recorded'}. Name it in "
            "Python: unweave.directions.load(path).on(encoder)."
        )
    if Path(source).suffix.lower() == ONNX_SUFFIX:
        data = found.fitted.data if data is None else data
    subject, opened = open_path(Path(source), data=data, data_root=data_root, device=device)
    return found.on(subject, data=opened)


def open_path(
    path: Path, *, data: str | Path | None, data_root: str | Path | None, device: str
) -> tuple[Any, Data]:
    """The run in a folder, or the network in an ONNX file, and the data that it encodes."""
    if path.suffix.lower() == ONNX_SUFFIX:
        if data is None:
            raise UnweaveError(f"{path} is an encoder and needs data to encode: add --data dsprites.")
        return OnnxModel(path, None if device == "auto" else device), open_data(data, data_root)
    # Here, because torch takes seconds to import.
    from unweave.runs.run import load as load_run

    run = load_run(path, device, data_root, data)
    return run, run.data


@dataclass(frozen=True, eq=False)
class Drawn:
    """The factors of the images that were drawn, by name, and the kinds of these."""

    factors: dict[str, NDArray[Any]]
    kinds: dict[str, KindLike]


def _encoded(
    encode: EncodeImages, data: Data, images: int, stream: Stream, tell: Progress
) -> tuple[NDArray[Any], Drawn]:
    """The codes of images drawn from a data set, and their factors."""
    if isinstance(data, GroundTruth):
        factors: NDArray[Any] = data.sample_factors(images, stream)
    else:
        rows = data.sample_index(images, stream)
        factors = data.values_at(rows)
    parts = []
    for start in range(0, images, CHUNK):
        stop = min(start + CHUNK, images)
        pictures = (
            data.observe(factors[start:stop], stream.skip(start))
            if isinstance(data, GroundTruth)
            else data.images_at(rows[start:stop])
        )
        parts.append(encode(pictures).mean)
        tell(stop, images, "encoding")
    varied = [j for j, column in enumerate(factors.T) if len(np.unique(column[~np.isnan(column)])) > 1]
    named = [data.factors[j] for j in varied]
    kinds: dict[str, KindLike] = {
        factor.name: _kind(factor) if isinstance(factor, Factor) else "continuous" for factor in named
    }
    columns = {data.factors[j].name: factors[:, j] for j in varied}
    return np.concatenate(parts), Drawn(columns, kinds)


def _kind(factor: Factor) -> KindLike:
    return ("circular", float(factor.period or factor.size)) if factor.kind == "circular" else factor.kind


def _fitted(by: By, k: int | None, codes: NDArray[Any], model: Model, drawn: Drawn, seed: int) -> Directions:
    if by == "pca":
        return pca(codes, k, seed=seed)
    if by == "ica":
        return ica(codes, k, seed=seed)
    if by == "sefa":
        return sefa(_generator_weights(model, codes.shape[1]), k, mean=codes.mean(axis=0))
    if by == "linear":
        if k is not None:
            raise UnweaveError("a linear read-out has a direction for each factor. Leave k out.")
        if not drawn.factors:
            raise UnweaveError("a linear read-out needs factors, and the data have none. Use pca or ica.")
        return linear(codes, drawn.factors, kinds=drawn.kinds)
    # Here, because torch takes seconds to import.
    from unweave.sparse import SparseSpec

    features = codes.shape[1] if k is None else k
    return _of_spec(by, codes, SparseSpec(features=features, k=min(ACTIVE, features), seed=seed))


def _of_spec(by: By, codes: NDArray[Any], spec: SparseSpec) -> Directions:
    from unweave.directions.features import sparse

    if by != "sparse":
        raise UnweaveError(f'spec belongs to by="sparse"; got it with by="{by}".')
    return sparse(codes, spec)


@runtime_checkable
class HasStyles(Protocol):
    """A method whose codes enter all layers of its generator through dense layers of their own."""

    def style_weights(self, networks: Mapping[str, Any]) -> list[Any]:
        """The weights (m, d) of these layers, of the first run."""


def _generator_weights(model: Model, latents: int) -> NDArray[Any] | list[NDArray[Any]]:
    """The weights that codes meet first in the decoder, which is a torch module or belongs to a run."""
    if is_module(model.decode):
        return first_weights(model.decode, latents)
    if is_run(model.subject):
        method = model.subject.spec.method
        if isinstance(method, HasStyles):
            return [as_array(part) for part in method.style_weights(model.subject.networks)]
        return weights_of_run(model.subject.modules().decoder, latents, method.name)
    raise UnweaveError(
        "sefa needs the weights of a decoder: fit(encode, by='sefa', decode=module), or choose them yourself "
        "with unweave.directions.sefa(weights)."
    )


def _check_choice(by: str, images: int) -> None:
    if by not in WAYS:
        raise UnweaveError(f'there is no way "{by}" to find directions. {did_you_mean(str(by), WAYS)}')
    if isinstance(images, bool) or not isinstance(images, int | np.integer) or images < LEAST_IMAGES:
        raise UnweaveError(f"images must be a whole number, {LEAST_IMAGES} or more; got {images!r}.")
