"""What encoders give: means and log variances of q(z|x), checked; and how an encoder is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.checks import as_array
from unweave.metrics.representation import checked_codes
from unweave.streams import Stream

TOO_MANY_AXES = (
    " Make them vectors with output=function, or pass codes of tokens (n, k, d) as an array: evaluate(codes, "
    'factors, metrics="blocks").'
)


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
# Factors (n, k), and a stream from whose row i image i is drawn -> posterior of their images.
EncodeFactors: TypeAlias = Callable[[NDArray[np.int64], Stream], Posterior]


class TensorOrArrayFunction:
    """A function that takes NumPy arrays or torch tensors: the first call finds out which.

    `role` and `given` say in messages what the function is and what it gets; `{}` stands for the shape.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        role: str = "encoder",
        given: str = "images of shape {}, float32 in [0, 1]",
    ) -> None:
        self.function, self.role, self.given = function, role, given
        self.call: Callable[[NDArray[np.float32]], Any] | None = None

    def __call__(self, images: NDArray[np.float32]) -> Any:
        """What the function returns."""
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
                f"the {self.role} {name} failed on {self.given.format(images.shape)}. As a NumPy array: "
                f"{_first_line(with_numpy)}. As a torch tensor: {_first_line(with_torch)}."
            ) from with_numpy

    def _on_tensor(self, images: NDArray[np.float32]) -> Any:
        import torch

        with torch.no_grad():
            return pair_of(self.function(torch.from_numpy(images)))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}{f': {text[0]}' if text else ''}".rstrip(".")


@contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """A torch module in evaluation mode and without gradients; afterwards as it was."""
    import torch

    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


@contextmanager
def explain_failure(subject: Any, given: str, role: str = "encoder") -> Iterator[None]:
    """Say which encoder or decoder failed, on what, and with which error."""
    try:
        yield
    except UnweaveError:
        raise
    except Exception as error:
        raise EncoderError(
            f"the {role} {type(subject).__name__} failed on {given}: {_first_line(error)}."
        ) from error


def pair_of(result: Any) -> Any:
    """A Gaussian of ours as a pair; anything else as it is."""
    return (result.mean, result.log_var) if hasattr(result, "log_var") else result


def as_posterior(result: Any, n: int) -> Posterior:
    """The codes of n images, or means and log variances, as arrays; anything else is refused."""
    parts = list(result) if isinstance(result, tuple | list) else [result]
    if len(parts) > 2:
        raise EncoderError(
            f"an encoder must give codes (n, d) or a pair (mean, log_var); it gave {len(parts)} things. "
            "Choose one with output=, or pass a function that picks the codes."
        )
    arrays = [as_array(part) for part in parts]
    for array in arrays:
        if array.ndim != 2 or len(array) != n or array.shape != arrays[0].shape:
            raise EncoderError(
                f"an encoder must give codes of shape ({n}, d) for {n} images; it gave {array.shape}."
                + (TOO_MANY_AXES if array.ndim > 2 else "")
            )
        try:
            checked_codes(array, n)
        except UnweaveError as error:
            raise EncoderError(str(error)) from None
    return Posterior(arrays[0], arrays[1] if len(arrays) == 2 else None)


def joined(parts: list[Posterior]) -> Posterior:
    """The posteriors of several batches as one."""
    log_vars = [part.log_var for part in parts if part.log_var is not None]
    return Posterior(
        np.concatenate([part.mean for part in parts]), np.concatenate(log_vars) if log_vars else None
    )
