"""A check of the fused image layers before their first use: a small case against torch's own layers.

image_ends.cu is compiled on the user's machine, perhaps by a compiler or for a GPU that no test has seen. So
the first two layers, and the last two with each likelihood, are checked once in a process, for each GPU and
number of channels. If they disagree or fail, Triton kernels compute them, and a warning says so once for each
GPU.

torch computes the same case on the CPU in float32, from the same rounded pixels and weights. The numbers of
the case come from a stream of their own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.kernels import image_ends
from unweave.streams import Stream

# A block has two images or one, so that loops over images and sums over blocks are checked, too.
RUNS, IMAGES, BLOCKS = 2, 3, 4
TOLERANCE = 0.02  # of the norm of a result; rounding to bfloat16 inside of the kernels changes it by 0.003
SMALL = image_ends.SIDE // 4

_checking = Lock()
_verdicts: dict[tuple[torch.device, int, str | None], bool] = {}
_warned: set[torch.device] = set()


def are_used(image: Tensor, edge: Tensor, inner: Tensor, likelihood: str | None = None) -> bool:
    """Whether the kernels compute the first two layers, or with a likelihood the last two.

    They must fit, and have computed right numbers before.
    """
    if likelihood not in (None, *image_ends.LIKELIHOODS) or not image_ends.fits(image, edge, inner):
        return False
    return is_right(image.device, image.shape[4], likelihood)


def is_right(device: torch.device, channels: int, likelihood: str | None) -> bool:
    """Whether the first two layers, or with a likelihood the last two, compute what torch computes.

    Nothing can be checked while a CUDA graph is recorded: layers without a check are not used in it.
    """
    key = device, channels, likelihood
    with _checking:
        if key not in _verdicts:
            if _is_recording(device):
                return False
            problem = _problem(device, channels, likelihood)
            _verdicts[key] = problem is None
            if problem is not None and device not in _warned:
                _warned.add(device)
                warnings.warn(_warning(device, problem), stacklevel=2)
        return _verdicts[key]


def _is_recording(device: torch.device) -> bool:
    """Whether the work of this thread goes into a CUDA graph."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def _warning(device: torch.device, problem: str) -> str:
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    return (
        f"Fused image layers are not used on {gpu}: {problem}. Other kernels compute these layers. "
        f"Set {image_ends.SWITCH}=0 to switch all fused layers and this warning off."
    )


def _problem(device: torch.device, channels: int, likelihood: str | None) -> str | None:
    """What is wrong with the layers; None if nothing is."""
    try:
        with torch.inference_mode(False):
            case = _case(device, channels)
            with torch.cuda.device_of(case.image):
                distances = _of_start(case) if likelihood is None else _of_end(case, likelihood)
    except torch.cuda.OutOfMemoryError:
        raise  # it is no fault of the layers, and the caller may try again with fewer runs
    except Exception as error:
        _refuse_if_cuda_has_failed(device, error)
        return f"they failed with {_in_one_line(error)}"
    name, distance = max(distances.items(), key=lambda pair: pair[1])
    if distance <= TOLERANCE:
        return None
    return f"the {name} differs from torch's by {distance:.0%}, instead of at most {TOLERANCE:.0%}"


def _refuse_if_cuda_has_failed(device: torch.device, error: Exception) -> None:
    """Raise if no kernel can run in this process any more, as after an access to a wrong address."""
    if device.type != "cuda":
        return
    try:
        torch.cuda.current_stream(device).synchronize()
    except RuntimeError:
        raise UnweaveError(
            f"the fused image layers failed with {_in_one_line(error)}, after which CUDA cannot continue in "
            f"this process. Set the environment variable {image_ends.SWITCH}=0 and run the command again."
        ) from error


def _in_one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class _Case(NamedTuple):
    image: Tensor  # bytes (P, B, 64, 64, C)
    edge: Tensor
    edge_bias: Tensor  # of the layer next to the image, when it is the first one
    inner: Tensor
    bias: Tensor
    logit_bias: Tensor  # of the layer next to the image, when it is the last one
    small: Tensor  # features or gradients (P, B, 16, 16, 32)
    scale: Tensor  # (P,)


def _case(device: torch.device, channels: int) -> _Case:
    stream = Stream.of(0).child("check of the fused image layers")
    side, features = image_ends.SIDE, image_ends.FEATURES

    def normal(name: str, scale: float, *shape: int) -> Tensor:
        drawn = torch.from_numpy(stream.child(name).normal(RUNS, math.prod(shape)))
        return (scale * drawn).view(RUNS, *shape).to(device, torch.float32)

    pixels = torch.from_numpy(stream.child("image").bytes(RUNS, IMAGES * side * side * channels).copy())
    return _Case(
        pixels.view(RUNS, IMAGES, side, side, channels).to(device),
        normal("edge", 0.25, 4, 4, channels, features).bfloat16(),
        normal("edge bias", 0.1, features),
        normal("inner", 0.0625, 4, 4, features, features).bfloat16(),
        normal("bias", 0.1, features),
        normal("logit bias", 0.2, channels),
        normal("small", 1.0, IMAGES, SMALL, SMALL, features).bfloat16(),
        normal("scale", 1.0, 1).flatten().exp(),
    )


def _of_start(case: _Case) -> dict[str, float]:
    """The distance of each result of the first two layers."""
    edge, edge_bias, inner = parameters = [_exact(x) for x in (case.edge, case.edge_bias, case.inner)]
    pixels = (case.image.cpu().float() / 255).bfloat16().float()
    with torch.enable_grad():
        first = _by_run(F.conv2d, pixels, edge, edge_bias).relu()
        sums = _by_run(F.conv2d, first, inner, case.bias.cpu())
    gradient = case.small * (sums > 0).to(case.small.device)
    expected = torch.autograd.grad(sums, parameters, gradient.cpu().float())
    with torch.no_grad():
        layers = case.image, case.edge, case.edge_bias, case.inner
        out = image_ends.start(*layers, case.bias, BLOCKS)
        start = image_ends.start_gradient(case.image, gradient, *layers[1:], BLOCKS)
    return {
        "result of the first two layers": _distance(out.flatten(0, 1), sums.relu().flatten(0, 1)),
        "gradient of the first layer's weights": _distance(start[1], expected[0]),
        "gradient of the first layer's bias": _distance(start[2], expected[1]),
        "gradient of the second layer's weights": _distance(start[0], expected[2]),
    }


def _of_end(case: _Case, likelihood: str) -> dict[str, float]:
    """The distance of each result of the last two layers."""
    used = case.inner, case.bias, case.edge, case.logit_bias
    parameters, before = [_exact(x) for x in used], _exact(case.small)
    targets = case.image.cpu().float() / 255
    with torch.enable_grad():
        larger = _by_run(F.conv_transpose2d, before.relu(), *parameters[:2]).relu()
        logits = _by_run(F.conv_transpose2d, larger, *parameters[2:])
        if likelihood == "bernoulli":
            losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        else:
            losses = (logits.sigmoid() - targets).square()
        loss = losses.flatten(1).sum(1)
    expected = torch.autograd.grad(loss, [*parameters, before], case.scale.cpu())
    with torch.no_grad():
        end = image_ends.end(case.small.relu(), *used, case.image, likelihood, BLOCKS)
        mine = image_ends.end_gradients(end.parts, case.scale, case.image.shape[4])
        to_features = end.to_features * case.scale.view(-1, 1, 1, 1, 1)
    return {
        "loss": _distance(end.loss[:, None], loss[:, None]),
        "gradient of the features": _distance(to_features.flatten(0, 1), expected[4].flatten(0, 1)),
        "gradient of the third last bias": _distance(mine.sums, expected[4].sum(dim=(1, 2, 3))),
        "gradient of the second last layer's weights": _distance(mine.inner, expected[0]),
        "gradient of the second last layer's bias": _distance(mine.bias, expected[1]),
        "gradient of the last layer's weights": _distance(mine.edge, expected[2]),
        "gradient of the last layer's bias": _distance(mine.edge_bias, expected[3]),
    }


def _exact(x: Tensor) -> Tensor:
    return x.detach().cpu().float().requires_grad_()


def _by_run(convolve: Callable[..., Tensor], x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """Images (P, B, H, W, c) through a layer of stride 2; weights (P, 4, 4, big, small)."""
    results = [
        convolve(x[run].permute(0, 3, 1, 2), w[run].permute(3, 2, 0, 1), bias[run], stride=2, padding=1)
        for run in range(len(x))
    ]
    return torch.stack(results).permute(0, 1, 3, 4, 2)


def _distance(ours: Tensor, expected: Tensor) -> float:
    """The norm of the difference as a share of the expected norm: the largest of all rows.

    Reading our numbers waits for the kernels, and raises if one of them failed after its launch.
    """
    right = expected.detach().flatten(1)
    far = (ours.detach().cpu().float().flatten(1) - right).norm(dim=1) / right.norm(dim=1)
    return float(far.nan_to_num(math.inf).max())
