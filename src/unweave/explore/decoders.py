"""Decoders of all kinds as one kind of function: codes (n, d) -> images (n, c, h, w) as bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Images
from unweave.display.pictures import to_bytes
from unweave.errors import UnweaveError
from unweave.evaluation.frozen import is_module
from unweave.evaluation.onnx_model import TYPES, open_session, run_in_batches
from unweave.evaluation.posteriors import TensorOrArrayFunction, evaluation_mode, explain_failure
from unweave.metrics.checks import as_array

DecodeCodes: TypeAlias = Callable[[NDArray[np.float32]], Any]

# Decoders without a sigmoid leave [0, 1] a little; what is further out is no image in [0, 1].
TOLERANCE = 0.5


class OnnxDecoder:
    """A network in an ONNX file with one input of codes (n, d); its first output is the images."""

    def __init__(self, path: Path, device: str | None = None) -> None:
        self.session = open_session(path, device)
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 2 or inputs[0].type not in TYPES:
            described = ", ".join(f"{part.name} {part.shape} {part.type}" for part in inputs)
            raise UnweaveError(f"{path} must have one input of float codes (n, d); it has {described}.")
        self.name, self.kind = inputs[0].name, TYPES[inputs[0].type]
        self.batch = inputs[0].shape[0] if isinstance(inputs[0].shape[0], int) else None

    def __call__(self, codes: NDArray[np.float32]) -> Any:
        """The first output for codes (n, d)."""
        return run_in_batches(self.session, self.name, codes.astype(self.kind), self.batch)[0]


class CheckedDecoder:
    """A module, a function or an ONNX decoder whose result is checked to be images of a shape."""

    def __init__(self, subject: Any, shape: tuple[int, int, int], device: str | None = None) -> None:
        moved = copy.deepcopy(subject).to(device) if device is not None and is_module(subject) else subject
        self.subject, self.shape, self.call = moved, shape, _caller(moved)

    def check(self, codes: NDArray[np.float32]) -> None:
        """Refuse a decoder whose images of these codes, which are those of true images, are not in [0, 1]."""
        images = self._images(codes)
        low, high = (float(images.min()), float(images.max())) if images.size else (0.0, 1.0)
        if images.dtype == np.uint8 or -TOLERANCE <= low <= high <= 1 + TOLERANCE:
            return
        if low >= 0:
            remedy = "Divide them by 255."
        elif low >= -1 and high <= 1:
            remedy = "Return (images + 1) / 2."
        else:
            remedy = "If they are logits, apply a sigmoid."
        raise UnweaveError(
            f"decode must return uint8 images, or numbers in [0, 1]; got numbers from {low:.4g} to "
            f"{high:.4g}. {remedy}"
        )

    def __call__(self, codes: NDArray[np.float32]) -> Images:
        """Images of codes as bytes; numbers outside [0, 1] are clipped."""
        images = self._images(codes)
        if images.dtype == np.uint8:
            return images
        return to_bytes(images)

    def _images(self, codes: NDArray[np.float32]) -> NDArray[Any]:
        images = as_array(self.call(codes))
        expected = (len(codes), *self.shape)
        if images.shape != expected:
            raise UnweaveError(
                f"decode must return images of shape {expected} for {len(codes)} codes, as the data has "
                f"them; got {images.shape}."
            )
        if images.dtype.kind not in "buf":
            raise UnweaveError(f"decode must return numbers in [0, 1] or uint8; got {images.dtype}.")
        if images.dtype.kind == "f" and not np.isfinite(images).all():
            raise UnweaveError("decode returned NaN or infinite pixels. Check its weights and the codes.")
        return images


def _caller(subject: Any) -> DecodeCodes:
    if is_module(subject):
        return lambda codes: _call_module(subject, codes)
    if isinstance(subject, OnnxDecoder):

        def call(codes: NDArray[np.float32]) -> Any:
            with explain_failure(subject, f"codes {codes.shape}", "decoder"):
                return subject(codes)

        return call
    if callable(subject) and not isinstance(subject, type):
        return TensorOrArrayFunction(subject, "decoder", "codes of shape {}, float32")
    raise UnweaveError(
        "decode must be a function from codes (n, d) to images (n, c, h, w), a torch module or an ONNX file; "
        f"got {type(subject).__name__}."
    )


def _call_module(module: Any, codes: NDArray[np.float32]) -> Any:
    import torch

    device = next(module.parameters(), torch.empty(0)).device
    with evaluation_mode(module), explain_failure(module, f"float32 codes {codes.shape}", "decoder"):
        return module(torch.from_numpy(np.ascontiguousarray(codes)).to(device))
