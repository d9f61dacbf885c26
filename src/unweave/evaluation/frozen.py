"""Any trained network as an encoder: torch modules, also of timm and transformers, ONNX files, functions."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.evaluation.encoding_cache import EncodingCache, prune
from unweave.evaluation.onnx_model import OnnxModel
from unweave.evaluation.outputs import Output, pick_codes, pooled
from unweave.evaluation.posteriors import (
    EncoderError,
    Posterior,
    TensorOrArrayFunction,
    as_posterior,
    evaluation_mode,
    explain_failure,
    joined,
)
from unweave.evaluation.preprocessing import Preprocessing, preprocessing_of

RESIZED_BATCH = 128  # images of the size of photographs that are encoded at once


@dataclass(frozen=True)
class EncoderOptions:
    """How images are prepared, and what of an encoder's result is the codes; see `evaluate`."""

    transform: Any = None
    output: Output = None
    batch: int | None = None
    device: str | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        if self.batch is not None and (not isinstance(self.batch, int) or self.batch < 1):
            raise UnweaveError(f"batch must be a whole number, 1 or more, or None; got {self.batch!r}.")

    @property
    def given(self) -> list[str]:
        """The names of the options that are set; `cache` changes no codes."""
        options = [field.name for field in fields(self) if field.name != "cache"]
        return [name for name in options if getattr(self, name) is not None]

    def prepare(self, model: Any) -> Callable[[Any], Any]:
        """What is done to images: the user's function, or what the options or the model say."""
        if hasattr(self.transform, "image_mean"):  # an image processor of transformers
            return preprocessing_of(self.transform)
        transform: Callable[[Any], Any] | None = self.transform
        if callable(transform):
            return transform
        if transform is not None:
            raise UnweaveError(
                "transform must be a Preprocessing, a function of images (n, c, h, w) in [0, 1], or an image "
                f"processor; got {type(self.transform).__name__}."
            )
        return model.preprocessing if isinstance(model, OnnxModel) else preprocessing_of(model)


class FrozenEncoder:
    """Images -> posteriors, by a network whose weights stay as they are."""

    def __init__(self, model: Any, options: EncoderOptions) -> None:
        self.model, self.options = model, options
        self.prepare = options.prepare(model)
        self.call = self._caller()
        self.shape: tuple[int, ...] = ()  # of the images that were encoded last
        self.cache: EncodingCache | None = None
        key = None
        if options.cache:
            with contextlib.suppress(RuntimeError):  # tensors without plain bytes, such as quantised ones
                key = _fingerprint(model, options, self.prepare)
        if key is not None:
            prune()
            self.cache = EncodingCache(self._encode, key)

    def __call__(self, images: NDArray[np.uint8]) -> Posterior:
        """Posteriors of uint8 images (n, c, h, w)."""
        self.shape = images.shape[1:]
        return self._encode(images) if self.cache is None else self.cache(images)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the images, and how many codes were not computed."""
        sentence = self.prepare.sentence(self.shape) if isinstance(self.prepare, Preprocessing) else ""
        found = self.cache.images if self.cache is not None else 0
        read = f"The codes of {found:,} images were read from the cache." if found else ""
        return tuple(filter(None, (sentence, read)))

    def _encode(self, images: NDArray[np.uint8]) -> Posterior:
        resized = isinstance(self.prepare, Preprocessing) and self.prepare.size is not None
        batch = self.options.batch or (RESIZED_BATCH if resized else len(images))
        parts = [images[start : start + batch] for start in range(0, len(images), batch)]
        return joined([as_posterior(self.call(part), len(part)) for part in parts])

    def _caller(self) -> Callable[[NDArray[np.uint8]], Any]:
        if is_module(self.model):
            return _ModuleCall(self.model, self.prepare, self.options)
        function: Any = self.model if isinstance(self.model, OnnxModel) else TensorOrArrayFunction(self.model)

        def call(images: NDArray[np.uint8]) -> Any:
            with explain_failure(self.model, f"images {images.shape}"):
                prepared = self.prepare(_unit_tensor(images, None)).numpy()
                return pick_codes(function(prepared), self.options.output)

        return call


def is_module(subject: Any) -> bool:
    """Whether something is a torch module; torch is not imported to find out."""
    return hasattr(subject, "state_dict") and hasattr(subject, "forward")


class _ModuleCall:
    """Calls a torch module in evaluation mode, without gradients, on its device or a copy on another."""

    def __init__(self, module: Any, prepare: Callable[[Any], Any], options: EncoderOptions) -> None:
        if options.device is not None:
            with explain_failure(module, f'moving to the device "{options.device}"'):
                module = copy.deepcopy(module).to(options.device)
        self.module, self.prepare, self.output = module, prepare, options.output
        name = options.output if isinstance(options.output, str) else None
        self.layer = dict(module.named_modules()).get(name) if name else None

    def __call__(self, images: NDArray[np.uint8]) -> Any:
        """What the module returns, or what its layer does."""
        import torch

        parameter = next(self.module.parameters(), torch.empty(0))
        given = f"float32 tensors {images.shape} in [0, 1]"
        with evaluation_mode(self.module), explain_failure(self.module, given):
            prepared = self.prepare(_unit_tensor(images, parameter.device))
            if self.layer is None:
                return pick_codes(self.module(prepared), self.output)
            seen: list[Any] = []
            hook = self.layer.register_forward_hook(lambda _layer, _inputs, result: seen.append(result))
            try:
                self.module(prepared)
            finally:
                hook.remove()
            if not seen:
                raise EncoderError(f'the layer "{self.output}" is not part of the forward pass.')
            return pooled(pick_codes(seen[-1]))


def _unit_tensor(images: NDArray[np.uint8], device: Any) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(images)).to(device).float() / 255


def _fingerprint(model: Any, options: EncoderOptions, prepare: Callable[[Any], Any]) -> str | None:
    """A hash of weights, structure and options; None for what has no weights to hash."""
    digest = hashlib.blake2b(digest_size=16)
    if isinstance(model, OnnxModel):
        digest.update(model.digest.encode())
    elif is_module(model) and (tensors := [*model.named_parameters(), *model.named_buffers()]):
        digest.update(repr(model).encode())
        for name, tensor in tensors:
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(_bytes_of(tensor))
    else:
        return None
    for part in (prepare, options.output):
        digest.update(_described(part).encode())
    return digest.hexdigest()


def _bytes_of(tensor: Any) -> Any:
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _described(part: Any) -> str:
    if not callable(part) or isinstance(part, Preprocessing):
        return repr(part)
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):
        return getattr(part, "__qualname__", type(part).__qualname__)
