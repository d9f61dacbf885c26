"""The precision of products.

"float32"; "tf32", the same with the shorter products of NVIDIA's tensor cores, inside of `precision_context`;
"bf16", where activations flow in bfloat16.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Literal, TypeAlias, get_args

import torch

from unweave.errors import UnweaveError, did_you_mean

Precision: TypeAlias = Literal["float32", "tf32", "bf16"]

PRECISIONS: tuple[str, ...] = get_args(Precision)

TORCH_SETTINGS = RLock()  # whoever needs torch's settings of the process to stay as they are holds it


@contextmanager
def precision_context(precision: Precision) -> Iterator[None]:
    """Products of float32 numbers on CUDA: shortened to TF32 for "tf32", exact for the others.

    Convolutions of cuDNN always sum in the same order, so that a resumed run equals an uninterrupted one. Put
    forward *and* backward pass inside. torch keeps these as settings of the whole process, which are restored
    at the end. One thread at a time can be inside.
    """
    check_precision(precision)
    with TORCH_SETTINGS:
        yield from _with_precision(precision)


def _with_precision(precision: Precision) -> Iterator[None]:
    was_deterministic = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    before = [(owner, name, _setting(owner, name)) for owner, name in _tf32_settings()]
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = was_deterministic
        for owner, name, value in before:
            setattr(owner, name, value)


def check_precision(precision: str) -> None:
    """Refuse an unknown precision."""
    if precision not in PRECISIONS:
        raise UnweaveError(f'Unknown precision "{precision}". {did_you_mean(precision, PRECISIONS)}')


def _tf32_settings() -> list[tuple[Any, str]]:
    """The settings that decide on TF32, in the order in which they are restored."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    old: list[tuple[Any, str]] = [(matmul, "allow_tf32"), (cudnn, "allow_tf32")]
    if not hasattr(cudnn, "conv"):  # before torch 2.9
        return old
    # Setting the old ones sets the new ones too, to a value that may differ from the one before.
    return [*old, *((owner, "fp32_precision") for owner in (matmul, cudnn.conv, cudnn.rnn))]


def _setting(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except RuntimeError:
        # torch refuses to read an old setting that contradicts the new one: its value is the opposite.
        settings = owner if owner is torch.backends.cuda.matmul else owner.conv
        return settings.fp32_precision != "tf32"
