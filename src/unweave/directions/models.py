"""Encoders with their decoders and data: what directions are fitted to, and what reads along them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from unweave.data import Collection, GroundTruth
from unweave.data.opening import open_data
from unweave.evaluation.encoders import EncodeImages, encoder_of, frozen_encoder, is_run
from unweave.evaluation.evaluate import open_subject
from unweave.evaluation.frozen import EncoderOptions, is_module
from unweave.evaluation.onnx_model import OnnxModel
from unweave.evaluation.posteriors import TensorOrArrayFunction, evaluation_mode
from unweave.evaluation.read_encoder import ReadEncoder, ReadOut

Data: TypeAlias = GroundTruth | Collection


@dataclass(frozen=True, eq=False)
class Model:
    """An encoder with what is known about it: its decoder, its data, its file and its name."""

    subject: Any
    encode: EncodeImages
    decode: Any
    data: Data | None
    path: str
    name: str


def open_model(encoder: Any, decode: Any, data: str | Path | Data | None, options: EncoderOptions) -> Model:
    """Open a run, a network or a function; a run brings its decoder and its data along."""
    subject = open_subject(encoder, options.device)
    if isinstance(data, str | Path):
        data = open_data(data)
    if is_run(subject):
        decode = subject.decode if decode is None else decode
        data = subject.data if data is None else data
    encode = frozen_encoder(subject, options) or encoder_of(subject)
    has_file = is_run(subject) or isinstance(subject, OnnxModel)
    name = subject.path.name if has_file else getattr(subject, "__name__", type(subject).__name__)
    return Model(subject, encode, decode, data, str(subject.path.resolve()) if has_file else "", name)


class Reconstructing(ReadOut, Protocol):
    """Directions that can also turn their codes into codes of the encoder."""

    def reconstruct(self, codes: Any) -> NDArray[Any]:
        """Codes (n, k) -> codes (n, d)."""


Read = TypeVar("Read", bound=Reconstructing)


def read_encoder(directions: Read, model: Model, name: str) -> ReadEncoder[Read]:
    """A model whose codes are read along directions."""
    decode = None if model.decode is None else _decoder(directions, model.decode)
    return ReadEncoder(directions, model.encode, decode, model.data, name)


def _decoder(directions: Reconstructing, decode: Any) -> Callable[[NDArray[Any]], Any]:
    """Codes along the directions -> images."""
    function = TensorOrArrayFunction(
        _module_call(decode) if is_module(decode) else decode, "decoder", "codes of shape {}, float32"
    )
    return lambda codes: function(directions.reconstruct(codes).astype(np.float32))


def _module_call(module: Any) -> Callable[[Any], Any]:
    def call(codes: Any) -> Any:
        device = next(module.parameters(), codes).device
        with evaluation_mode(module):
            return module(codes.to(device))

    return call
