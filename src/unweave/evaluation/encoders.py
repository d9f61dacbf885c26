"""Encoders of all kinds as one kind of function: images -> means and log variances of q(z|x).

A run, a torch module, an ONNX file, a transformer of scikit-learn and a plain function each take their images
in their own way. What is common to them is what comes out: codes (n, d), or a Gaussian for each image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.data import GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.frozen import EncoderOptions, FrozenEncoder, is_module
from unweave.evaluation.onnx_model import OnnxModel
from unweave.evaluation.posteriors import (
    EncodeFactors,
    EncodeImages,
    EncoderError,
    Posterior,
    TensorOrArrayFunction,
    as_posterior,
    explain_failure,
    pair_of,
)
from unweave.evaluation.read_encoder import ReadEncoder

__all__ = ["EncodeImages", "EncoderError", "Posterior", "encoder_of", "factor_encoder", "frozen_encoder"]


def encoder_of(subject: Any) -> EncodeImages:
    """How a run, a network, a transformer or a function encodes images.

    A torch module gets float32 tensors (n, c, h, w) in [0, 1] on its own device, in evaluation mode, without
    gradients; an object with `transform` gets float64 rows (n, c h w) in [0, 1]; a function gets float32
    arrays (n, c, h, w) in [0, 1], of NumPy or, if it fails with those, of torch. Each gives codes (n, d) or a
    pair (mean, log_var). What a model says about its images, and options of `frozen_encoder`, change what it
    gets.
    """
    if isinstance(subject, FrozenEncoder):
        return subject
    if isinstance(subject, ReadEncoder):
        return subject.posterior
    if is_run(subject):
        return lambda images: as_posterior(pair_of(subject.posterior(images)), len(images))
    if is_module(subject) or isinstance(subject, OnnxModel):
        return FrozenEncoder(subject, EncoderOptions(cache=False))
    if hasattr(subject, "transform"):
        return lambda images: as_posterior(_call_transform(subject, images), len(images))
    if _is_function(subject):
        function = TensorOrArrayFunction(subject)
        return lambda images: as_posterior(function(_unit(images, np.float32, flat=False)), len(images))
    raise UnweaveError(
        "what is to be evaluated must be codes and factors, a run, a torch module, an ONNX file, an object "
        f"with transform, or a function from images to codes; got {type(subject).__name__}."
    )


def factor_encoder(subject: Any, truth: GroundTruth) -> EncodeFactors | None:
    """How a run on a GPU makes and encodes images of stochastic data there; None if the host makes them.

    The grid of other data is encoded once, so a table of it on the GPU would be read once only.
    """
    if not truth.stochastic or not is_run(subject) or subject.device.type != "cuda":
        return None
    # Here, because torch takes seconds to import; a run has imported it already.
    from unweave.evaluation.device_encoder import DeviceEncoder, can_make_images

    return DeviceEncoder(subject, truth) if can_make_images(truth, subject.device) else None


def frozen_encoder(subject: Any, options: EncoderOptions) -> FrozenEncoder | None:
    """A network as an encoder with options, or None for what has none: codes, runs and transformers."""
    if is_module(subject) or isinstance(subject, OnnxModel):
        return FrozenEncoder(subject, options)
    if not options.given:
        return None
    if _is_function(subject) and not is_run(subject):
        return FrozenEncoder(subject, options)
    raise UnweaveError(
        f"{' and '.join(options.given)} can be set for a torch module, an ONNX file or a function; got "
        f"{type(subject).__name__}."
    )


def is_run(subject: Any) -> bool:
    """Whether something is a trained run."""
    return hasattr(subject, "posterior") and hasattr(subject, "spec")


def _is_function(subject: Any) -> bool:
    return callable(subject) and not isinstance(subject, type)


def _unit(images: NDArray[np.uint8], dtype: Any, flat: bool = True) -> NDArray[Any]:
    scaled: NDArray[Any] = images.astype(dtype) / dtype(255)
    return scaled.reshape(len(scaled), -1) if flat else scaled


def _call_transform(subject: Any, images: NDArray[np.uint8]) -> Any:
    rows = _unit(images, np.float64)
    with explain_failure(subject, f"float64 rows {rows.shape} in [0, 1]"):
        return subject.transform(rows)
