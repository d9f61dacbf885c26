"""Encoders of all kinds as one kind of function: images -> means and log variances of q(z|x).

A run, a torch module, a transformer of scikit-learn and a plain function each want their images in their own
way. What is common to them is what comes out: codes (n, d), or a Gaussian for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import as_array
from unweave.metrics.representation import checked_codes


class EncoderError(UnweaveError):
    """An encoder failed, or gave something that is no codes: nothing can be measured."""


class Posterior(NamedTuple):
    """Means (n, d) and, where the encoder has them, log variances (n, d)."""

    mean: NDArray[Any]
    log_var: NDArray[Any] | None

    def draw(self, noise: NDArray[np.float64]) -> NDArray[Any]:
        """One code of each posterior, from standard normal noise (n, d)."""
        if self.log_var is None:
            raise UnweaveError(
                "a sampled representation needs the log variances of q(z|x). Let the encoder return a pair "
                "(mean, log_var), or give log_var=."
            )
        return self.mean + np.exp(0.5 * self.log_var) * noise


# uint8 images (n, c, h, w) -> posterior.
EncodeImages: TypeAlias = Callable[[NDArray[np.uint8]], Posterior]


def encoder_of(subject: Any) -> EncodeImages:
    """How a run, a torch module, a transformer or a function encodes images.

    A torch module gets float32 tensors (n, c, h, w) in [0, 1] on its own device, in evaluation mode, without
    gradients; an object with `transform` gets float64 rows (n, c h w) in [0, 1]; a function gets float32
    arrays (n, c, h, w) in [0, 1], of NumPy or, if it fails with those, of torch. Each gives codes (n, d) or a
    pair (mean, log_var).
    """
    if hasattr(subject, "posterior") and hasattr(subject, "spec"):
        return lambda images: _as_posterior(_pair(subject.posterior(images)), len(images))
    if hasattr(subject, "state_dict") and hasattr(subject, "forward"):
        return lambda images: _as_posterior(_call_module(subject, images), len(images))
    if hasattr(subject, "transform"):
        return lambda images: _as_posterior(_call_transform(subject, images), len(images))
    if callable(subject) and not isinstance(subject, type):
        function = _Function(subject)
        return lambda images: _as_posterior(function(_unit(images, np.float32, flat=False)), len(images))
    raise UnweaveError(
        "what is to be evaluated must be codes and factors, a run, a torch module, an object with "
        f"transform, or a function from images to codes; got {type(subject).__name__}."
    )


class _Function:
    """A function that takes images as NumPy arrays or as torch tensors: the first call finds out which."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.call: Callable[[NDArray[np.float32]], Any] | None = None

    def __call__(self, images: NDArray[np.float32]) -> Any:
        if self.call is not None:
            return self.call(images)
        try:
            result, self.call = self.function(images), self.function
        except UnweaveError:
            raise
        except Exception as with_numpy:  # any error: a function that wants tensors may fail in many ways
            result, self.call = self._with_tensor(images, with_numpy), self._on_tensor
        return result

    def _with_tensor(self, images: NDArray[np.float32], with_numpy: Exception) -> Any:
        try:
            return self._on_tensor(images)
        except Exception as with_torch:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            raise EncoderError(
                f"the encoder {name} failed on images of shape {images.shape}, float32 in [0, 1]. As a NumPy "
                f"array: {_first_line(with_numpy)}. As a torch tensor: {_first_line(with_torch)}."
            ) from with_numpy

    def _on_tensor(self, images: NDArray[np.float32]) -> Any:
        import torch

        with torch.no_grad():
            return _pair(self.function(torch.from_numpy(images)))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}{f': {text[0]}' if text else ''}".rstrip(".")


def _unit(images: NDArray[np.uint8], dtype: Any, flat: bool = True) -> NDArray[Any]:
    scaled: NDArray[Any] = images.astype(dtype) / dtype(255)
    return scaled.reshape(len(scaled), -1) if flat else scaled


def _call_module(module: Any, images: NDArray[np.uint8]) -> Any:
    import torch

    parameter = next(module.parameters(), torch.empty(0))
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad(), _explained(module, f"float32 tensors {images.shape} in [0, 1]"):
            given = torch.from_numpy(np.ascontiguousarray(images)).to(parameter.device).float() / 255
            return _pair(module(given))
    finally:
        module.train(was_training)


def _call_transform(subject: Any, images: NDArray[np.uint8]) -> Any:
    rows = _unit(images, np.float64)
    with _explained(subject, f"float64 rows {rows.shape} in [0, 1]"):
        return subject.transform(rows)


@contextmanager
def _explained(subject: Any, given: str) -> Iterator[None]:
    """Say which encoder failed, on what, and with which error."""
    try:
        yield
    except UnweaveError:
        raise
    except Exception as error:
        raise EncoderError(
            f"the encoder {type(subject).__name__} failed on {given}: {_first_line(error)}."
        ) from error


def _pair(result: Any) -> Any:
    """A Gaussian of ours as a pair; anything else as it is."""
    return (result.mean, result.log_var) if hasattr(result, "log_var") else result


def _as_posterior(result: Any, n: int) -> Posterior:
    parts = list(result) if isinstance(result, tuple | list) else [result]
    if len(parts) > 2:
        raise EncoderError(
            f"an encoder must give codes (n, d) or a pair (mean, log_var); it gave {len(parts)} things. "
            "Pass a function that picks the codes."
        )
    arrays = [as_array(part) for part in parts]
    for array in arrays:
        if array.ndim != 2 or len(array) != n or array.shape != arrays[0].shape:
            raise EncoderError(
                f"an encoder must give codes of shape ({n}, d) for {n} images; it gave {array.shape}."
            )
        try:
            checked_codes(array, n)
        except UnweaveError as error:
            raise EncoderError(str(error)) from None
    return Posterior(arrays[0], arrays[1] if len(arrays) == 2 else None)
