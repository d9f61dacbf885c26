"""Perceptual distances of images: by a Laplacian pyramid, or by features of a network trained on photographs.

Images are (P, B, c, h, w), numbers in [0, 1]; distances are (P,), means over images, channels and pixels.

[1] Burt, Adelson: The Laplacian pyramid as a compact image code, IEEE Transactions on Communications, 1983.
[2] Bojanowski, Joulin, Lopez-Paz, Szlam: Optimizing the latent space of generative networks, ICML 2018.
[3] Simonyan, Zisserman: Very deep convolutional networks for large-scale image recognition, ICLR 2015.
[4] Gabbay, Hoshen: Demystifying inter-class disentanglement, ICLR 2020.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import UnweaveError

Perceptual: TypeAlias = Literal["laplacian", "vgg"]

HALVINGS = 4  # levels of detail of a pyramid

# torchvision's VGG-16 for ImageNet: the file's name ends in the beginning of its SHA-256.
VGG_FILE, VGG_CHECKSUM = "vgg16-397923af.pth", "397923af"
# Numbers of the convolutions in it, between poolings, and after which of them images are compared.
VGG_BLOCKS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
VGG_COMPARED = (2, 7, 12, 21)
IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def distance(first: Tensor, second: Tensor, kind: Perceptual) -> Tensor:
    """(P,): how different the images of two batches look."""
    return vgg_distance(first, second) if kind == "vgg" else laplacian_distance(first, second)


def laplacian_distance(first: Tensor, second: Tensor) -> Tensor:
    """sum_j mean |L_j(first) - L_j(second)| over the levels of a Laplacian pyramid; [2], with means for sums.

    Level j is an image that was halved j times, less its coarser version; the last level is the remaining
    image. A halved image is the mean over squares of 2 x 2 pixels. It is halved 4 times, or as often as both
    sides are even. Differs from [1], whose filter is wider.
    """
    image = first - second  # the pyramid is linear
    levels = []
    for _ in range(HALVINGS):
        if any(side % 2 for side in image.shape[-2:]):
            break
        squares = image.unflatten(-1, (-1, 2)).unflatten(-3, (-1, 2))
        coarse = squares.mean((-3, -1), keepdim=True)
        levels.append(squares - coarse)
        image = coarse.squeeze(-1).squeeze(-2)
    return _mean_distances([*levels, image], len(first))


def vgg_distance(first: Tensor, second: Tensor) -> Tensor:
    """sum_l mean |f_l(first) - f_l(second)|, f_l features of VGG-16 [3]: those that [4] compares.

    They are those after the second convolution of the first four blocks, with its ReLU, and after the last
    pooling. Differs from [4]: images are scaled to the mean and deviation that VGG-16 was trained with.
    """
    if min(first.shape[-2:]) < 2 ** len(VGG_BLOCKS):
        raise UnweaveError(
            f'perceptual="vgg" needs images of at least {2 ** len(VGG_BLOCKS)} x {2 ** len(VGG_BLOCKS)} '
            f'pixels; got {first.shape[-2]} x {first.shape[-1]}. Take perceptual="laplacian".'
        )
    features = zip(_vgg_features(first), _vgg_features(second), strict=True)
    return _mean_distances([one - other for one, other in features], len(first))


def _mean_distances(differences: list[Tensor], runs: int) -> Tensor:
    """(P,): the sum of mean absolute differences, whose rows are sorted by runs."""
    means = [difference.abs().reshape(runs, -1).mean(-1) for difference in differences]
    return torch.stack(means).sum(0)


def _vgg_features(images: Tensor) -> list[Tensor]:
    """Features (P B, channels, h, w), the same network for all runs."""
    weights, mean, deviation = _vgg(images.device)
    x = images.flatten(0, 1)
    x = (x.expand(-1, 3, -1, -1) - mean) / deviation
    compared = []
    for block in VGG_BLOCKS:
        for number in block:
            x = F.relu(F.conv2d(x, *weights[number], padding=1))
            if number in VGG_COMPARED:
                compared.append(x)
        x = F.max_pool2d(x, 2)
    return [*compared, x]


@cache  # once per device, before a CUDA graph is recorded
def _vgg(device: torch.device) -> tuple[dict[int, tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Weights and biases of the convolutions by number, and mean and deviation of their images."""
    path = Path(torch.hub.get_dir()) / "checkpoints" / VGG_FILE
    if not path.exists():
        raise UnweaveError(
            f'perceptual="vgg" needs the weights of torchvision\'s VGG-16, {VGG_FILE}, in {path.parent}, and '
            'they are not downloaded for you. Put them there, or take perceptual="laplacian".'
        )
    if not hashlib.sha256(path.read_bytes()).hexdigest().startswith(VGG_CHECKSUM):
        raise UnweaveError(
            f"{path} does not match its name: its SHA-256 does not begin with {VGG_CHECKSUM}. "
            "Download it again."
        )
    # With weights_only torch loads tensors only, and the checksum identifies the file.
    stored = torch.load(path, map_location=device, weights_only=True)
    weights = {
        number: (stored[f"features.{number}.weight"], stored[f"features.{number}.bias"])
        for block in VGG_BLOCKS
        for number in block
    }
    mean, deviation = (
        torch.tensor(values, device=device).view(3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_DEVIATION)
    )
    return weights, mean, deviation
