"""Encoders of all kinds as one kind of function: images -> means and log variances of q(z|x).

A run, a torch module, a transformer of scikit-learn and a plain function each want their images in their own
way. What is common to them is what comes out: codes (n, d), or a Gaussian for each image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.representation import checked_codes


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
    arrays (n, c, h, w) in [0, 1]. Each gives codes (n, d) or a pair (mean, log_var).
    """
    if hasattr(subject, "posterior") and hasattr(subject, "spec"):
        return lambda images: _as_posterior(_pair(subject.posterior(images)), len(images))
    if hasattr(subject, "state_dict") and hasattr(subject, "forward"):
        return lambda images: _as_posterior(_call_module(subject, images), len(images))
    if hasattr(subject, "transform"):
        return lambda images: _as_posterior(subject.transform(_unit(images, np.float64)), len(images))
    if callable(subject):
        return lambda images: _as_posterior(subject(_unit(images, np.float32, flat=False)), len(images))
    raise UnweaveError(
        "what is to be evaluated must be codes and factors, a run, a torch module, an object with "
        f"transform, or a function from images to codes; got {type(subject).__name__}."
    )


def _unit(images: NDArray[np.uint8], dtype: Any, flat: bool = True) -> NDArray[Any]:
    scaled: NDArray[Any] = images.astype(dtype) / dtype(255)
    return scaled.reshape(len(scaled), -1) if flat else scaled


def _call_module(module: Any, images: NDArray[np.uint8]) -> Any:
    import torch

    parameter = next(module.parameters(), torch.empty(0))
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            given = torch.from_numpy(np.ascontiguousarray(images)).to(parameter.device).float() / 255
            return _pair(module(given))
    finally:
        module.train(was_training)


def _pair(result: Any) -> Any:
    """A Gaussian of ours as a pair; anything else as it is."""
    return (result.mean, result.log_var) if hasattr(result, "log_var") else result


def _as_posterior(result: Any, n: int) -> Posterior:
    parts = list(result) if isinstance(result, tuple | list) else [result]
    if len(parts) > 2:
        raise UnweaveError(
            f"an encoder must give codes (n, d) or a pair (mean, log_var); it gave {len(parts)} things. "
            "Pass a function that picks the codes."
        )
    arrays = [part.detach().cpu().numpy() if hasattr(part, "detach") else np.asarray(part) for part in parts]
    for array in arrays:
        if array.ndim != 2 or len(array) != n or array.shape != arrays[0].shape:
            raise UnweaveError(
                f"an encoder must give codes of shape ({n}, d) for {n} images; it gave {array.shape}."
            )
        checked_codes(array, n)
    return Posterior(arrays[0], arrays[1] if len(arrays) == 2 else None)
