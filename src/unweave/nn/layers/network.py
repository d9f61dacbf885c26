"""Operations on all layers of a network: choose runs, set the precision, lay weights out for kernels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.kernels.dispatch import has_kernel, has_triton
from unweave.nn.layers.convolution import Conv2d, ConvTranspose2d
from unweave.nn.layers.dense import Linear
from unweave.nn.layers.layer import ROUNDED_COPY, Layer
from unweave.nn.layers.precision import Precision, check_precision


def set_precision(module: nn.Module, precision: Precision) -> None:
    """Set how all layers of a network compute: "float32", "tf32" or "bf16".

    In "bf16", parameters of dense layers are replaced by rounded ones: attach them to the optimiser.
    """
    check_precision(precision)
    for part in module.modules():
        if isinstance(part, Layer):
            part.precision = precision
        if isinstance(part, Linear) and precision == "bf16":
            part.weight = nn.Parameter(part.weight.detach().bfloat16())
            part.bias = nn.Parameter(part.bias.detach().bfloat16())


def lay_out_for_kernels(module: nn.Module) -> None:
    """Lay out the weights of convolutions as the kernels expect them; attach them to the optimiser."""
    for part in module.modules():
        if isinstance(part, Conv2d | ConvTranspose2d):
            taps_first = part.weight.detach().permute(0, 3, 4, 2, 1).contiguous()
            part.weight = nn.Parameter(taps_first.permute(0, 4, 3, 1, 2))


def keep_rounded_copies(module: nn.Module) -> None:
    """Give the weights of convolutions that bf16 kernels compute a copy in bfloat16.

    Only for networks whose weights are changed by an optimiser alone, which then updates the copies, too.
    """
    for part in module.modules():
        if not isinstance(part, Conv2d | ConvTranspose2d) or part.precision != "bf16":
            continue
        if part.weight.is_cuda and has_triton() and has_kernel(part.weight, part.padding):
            setattr(part.weight, ROUNDED_COPY, part.weight.detach().bfloat16())


def num_runs(module: nn.Module) -> int:
    """How many runs there are in a network: the P of its parameters."""
    sizes = {len(parameter) for parameter in module.parameters()}
    if len(sizes) != 1:
        raise UnweaveError(f"All parameters must have one leading axis of runs; got lengths {sorted(sizes)}.")
    return sizes.pop()


def select_runs(module: nn.Module, index: Sequence[int]) -> None:
    """Keep only the runs with these numbers, in this order.

    The parameters of the module are replaced, without gradients: attach them to the optimiser.
    """
    runs = num_runs(module)
    if not index or not all(0 <= number < runs for number in index):
        raise UnweaveError(f"The runs to keep must be numbers from 0 to {runs - 1}; got {list(index)}.")
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            remaining = chosen(parameter.detach(), torch.as_tensor(list(index), device=parameter.device))
            setattr(part, name, nn.Parameter(remaining, parameter.requires_grad))


def chosen(tensor: Tensor, index: Tensor) -> Tensor:
    """The runs with these numbers, with the same memory layout."""
    return torch.empty_like(tensor[: len(index)]).copy_(tensor[index])
