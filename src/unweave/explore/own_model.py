"""A user's model in the explorer: functions, torch modules or ONNX files that encode and decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from unweave.data import Collection, GroundTruth, from_file
from unweave.data.grid import Images
from unweave.data.opening import open_data
from unweave.data.own import array_file
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import encoder_of, frozen_encoder
from unweave.evaluation.frozen import EncoderOptions, is_module
from unweave.evaluation.onnx_model import SUFFIX, OnnxModel
from unweave.evaluation.posteriors import EncodeImages, Posterior
from unweave.explore.decoders import CheckedDecoder, OnnxDecoder
from unweave.explore.model import ModelCard, own_card
from unweave.plugins.loading import is_reference, load_reference
from unweave.streams import Stream

PROBES = 8  # true images on which a model is tried before its page is served


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A user's encoder and, perhaps, decoder, on images of a shape."""

    card: ModelCard
    shape: tuple[int, int, int]
    latents: int
    has_prior: bool
    content: int
    scores: Mapping[str, float]
    _encode: EncodeImages = field(repr=False)
    _decode: CheckedDecoder | None = field(repr=False)

    @property
    def has_decoder(self) -> bool:
        """Whether codes can be decoded."""
        return self._decode is not None

    @property
    def decoder(self) -> Any:
        """The user's decoder: a torch module, a function or an ONNX decoder; None if there is none."""
        return None if self._decode is None else self._decode.subject

    def posterior(self, images: Images) -> Posterior:
        """Means and, if the encoder returns them, log variances of the codes of images."""
        posterior = self._encode(images)
        if posterior.mean.shape[1] != self.latents:
            raise UnweaveError(
                f"encode must return codes (n, d) with the same d for all images; got d = "
                f"{posterior.mean.shape[1]} after d = {self.latents}."
            )
        return posterior

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Mean images of codes, as bytes."""
        if self._decode is None:
            raise UnweaveError(f"{self.card.name} has no decoder.")
        return self._decode(codes)


@dataclass(frozen=True, eq=False)
class OwnParts:
    """What a user gives of a model, before it is tried.

    `encode` and `decode` are functions of arrays, torch modules, paths of ONNX files or `file.py:Name`.
    `content` is how many of the first latents are content, for swaps. `options` say how images are prepared.
    """

    encode: Any
    decode: Any = None
    name: str = ""
    content: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    options: EncoderOptions = field(default_factory=lambda: EncoderOptions(cache=False))

    def on(self, data: GroundTruth | Collection) -> OwnModel:
        """The model, tried on a few images of a data set."""
        encoder, decoder = _encoder_and_decoder(self.encode, self.decode, self.options.device)
        encode = frozen_encoder(encoder, self.options) or encoder_of(encoder)
        posterior = encode(data.sample_images(PROBES, Stream.of(0).child("explore", "probe")))
        latents = posterior.mean.shape[1]
        checked = None if decoder is None else CheckedDecoder(decoder, data.shape, self.options.device)
        if checked is not None:
            checked.check(posterior.mean.astype(np.float32))
        if isinstance(self.content, bool) or not 0 <= self.content < latents:
            raise UnweaveError(
                f"content must be how many of the {latents} latents are content, from 0 to {latents - 1}; "
                f"got {self.content!r}."
            )
        return OwnModel(
            card=own_card(self.name or _name_of(encoder), data.name),
            shape=data.shape,
            latents=latents,
            has_prior=posterior.log_var is not None,
            content=self.content,
            scores=_finite(self.scores),
            _encode=encode,
            _decode=checked,
        )


def opened_data(data: Any, root: Path | None = None) -> GroundTruth | Collection:
    """The data set that a user names, or gives as an object; images of an array file keep their size."""
    if data is None:
        raise UnweaveError(
            "a model needs images to encode: name a data set, such as data='dsprites', or your own folder or "
            "file of images."
        )
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        is_array_file = path.suffix.lower() in array_file.SUFFIXES and path.is_file()
        return from_file(path) if is_array_file else open_data(data, root)
    if not isinstance(data, GroundTruth | Collection):
        raise UnweaveError(
            "data must be the name of a data set, the path of your own, or what "
            f"unweave.data.from_arrays(images, factors) returns; got {type(data).__name__}."
        )
    return data


def _encoder_and_decoder(encode: Any, decode: Any, device: str | None) -> tuple[Any, Any]:
    """Encoder and decoder as objects; an encoder that also has `decode` is both."""
    model = _loaded(encode, device, OnnxModel)
    if callable(getattr(model, "encode", None)):
        own_decode = getattr(model, "decode", None)
        if decode is None and callable(own_decode):
            return _method_of(model, "encode"), _method_of(model, "decode")
        model = _method_of(model, "encode")
    return model, _loaded(decode, device, OnnxDecoder)


def _loaded(part: Any, device: str | None, onnx: type[OnnxModel] | type[OnnxDecoder]) -> Any:
    """The object behind an ONNX file or `file.py:Name`; a class is called without arguments."""
    if is_reference(part):
        part = load_reference(part, "model")
    elif isinstance(part, str | Path):
        path = Path(part).expanduser()
        if path.suffix.lower() != SUFFIX:
            raise UnweaveError(f"a model is an ONNX file or path/to/file.py:Name; got {part}.")
        return onnx(path, device)
    return part() if isinstance(part, type) else part


def _method_of(model: Any, name: str) -> Any:
    """A method of an object; that of a torch module as a module, so that it runs in evaluation mode."""
    return ModuleMethod(model, name) if is_module(model) else getattr(model, name)


class ModuleMethod(nn.Module):
    """A method of a torch module, such as `encode`, as a module."""

    def __init__(self, module: nn.Module, name: str) -> None:
        super().__init__()
        self.module, self.name = module, name

    def forward(self, values: Any) -> Any:
        """What the method returns."""
        return getattr(self.module, self.name)(values)


def _name_of(encoder: Any) -> str:
    if isinstance(encoder, OnnxModel):
        return encoder.path.stem
    if isinstance(encoder, ModuleMethod):
        return type(encoder.module).__name__
    owner = getattr(encoder, "__self__", encoder)
    name = str(getattr(owner, "__name__", type(owner).__name__))
    return "model" if name == "<lambda>" else name


def _finite(scores: Mapping[str, float]) -> dict[str, float]:
    numbers = {str(name): float(value) for name, value in scores.items()}
    return {name: value for name, value in numbers.items() if np.isfinite(value)}
