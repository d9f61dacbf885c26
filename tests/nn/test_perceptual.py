"""Perceptual distances: known pyramids, one written out by hand, and VGG-16 built from layers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nn.small_vgg import install
from unweave.errors import UnweaveError
from unweave.nn.networks import perceptual
from unweave.nn.networks.perceptual import VGG_FILE, distance, laplacian_distance, vgg_distance
from unweave.streams import Stream


def images(name: str, *shape: int) -> Tensor:
    drawn = Stream.of(0).child(name).uniform(1, int(np.prod(shape)))
    return torch.from_numpy(drawn.reshape(shape)).float()


def test_a_uniform_difference_is_in_the_last_level_alone() -> None:
    first = images("first", 2, 3, 1, 16, 16)
    moved = first + torch.tensor([0.25, -0.5]).view(2, 1, 1, 1, 1)
    torch.testing.assert_close(laplacian_distance(moved, first), torch.tensor([0.25, 0.5]))


def test_stripes_are_in_the_level_of_their_width() -> None:
    """Stripes of +-0.3 and 2 pixels: level 0 is 0, level 1 is +-0.3, nothing is left below."""
    stripes = torch.tensor([0.3, 0.3, -0.3, -0.3]).repeat(4).expand(1, 1, 1, 16, 16)
    assert laplacian_distance(stripes, torch.zeros_like(stripes)).item() == pytest.approx(0.3)


def slow_pyramid(image: np.ndarray) -> float:
    """The sum of mean sizes of one (h, w) image's levels, pixel by pixel."""
    total = 0.0
    for _ in range(4):
        height, width = image.shape
        if height % 2 or width % 2:
            break
        coarse = np.array(
            [
                [image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in range(width // 2)]
                for i in range(height // 2)
            ]
        )
        detail = [abs(image[i, j] - coarse[i // 2, j // 2]) for i in range(height) for j in range(width)]
        total += float(np.mean(detail))
        image = coarse
    return total + float(np.abs(image).mean())


@pytest.mark.parametrize("size", [(32, 16), (12, 20), (7, 8)])
def test_the_pyramid_is_that_of_each_image(size: tuple[int, int]) -> None:
    first, second = (images(name, 2, 3, 2, *size) for name in ("first", "second"))
    distances = [[slow_pyramid(x) for x in run.flatten(0, 1).double().numpy()] for run in first - second]
    expected = torch.tensor(distances).mean(-1)
    torch.testing.assert_close(laplacian_distance(first, second), expected.float())
    torch.testing.assert_close(distance(second, first, "laplacian"), expected.float())


@pytest.fixture
def vgg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Sequential:
    """A small VGG, stored where the weights are expected."""
    return install(tmp_path, monkeypatch)


@pytest.mark.parametrize("channels", [1, 3])
def test_vgg_compares_the_features_of_five_layers(vgg: nn.Sequential, channels: int) -> None:
    first, second = (images(name, 2, 3, channels, 32, 32) for name in ("first", "second"))
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])

    def compared_features(image: Tensor) -> list[Tensor]:
        colours = image.repeat(3 // channels, 1, 1)
        x, features = ((colours - mean[:, None, None]) / deviation[:, None, None])[None], []
        for number, layer in enumerate(vgg):
            x = layer(x)
            if number in (3, 8, 13, 22, 30):  # after the ReLU of layers 2, 7, 12 and 21, and the last pooling
                features.append(x)
        return features

    for run, value in enumerate(vgg_distance(first, second)):
        distances = [
            sum(
                float((a - b).abs().mean())
                for a, b in zip(compared_features(one), compared_features(two), strict=True)
            )
            for one, two in zip(first[run], second[run], strict=True)
        ]
        assert value.item() == pytest.approx(np.mean(distances), rel=1e-5)
    torch.testing.assert_close(distance(first, first, "vgg"), torch.zeros(2))


def test_gradients_of_the_pyramid() -> None:
    image = images("first", 1, 2, 1, 8, 8).double().requires_grad_()
    other = images("second", 1, 2, 1, 8, 8).double()
    assert torch.autograd.gradcheck(lambda x: laplacian_distance(x, other), (image,))


def test_missing_vgg_weights_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    perceptual._vgg.cache_clear()
    picture = images("first", 1, 1, 1, 32, 32)
    with pytest.raises(UnweaveError, match=r'needs the weights of.*vgg16-397923af\.pth.*perceptual="laplaci'):
        vgg_distance(picture, picture)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / VGG_FILE).write_bytes(b"something else")
    with pytest.raises(UnweaveError, match="its SHA-256 does not begin with 397923af"):
        vgg_distance(picture, picture)
    with pytest.raises(UnweaveError, match="images of at least 32 x 32 pixels; got 16 x 32"):
        vgg_distance(picture[..., :16, :], picture[..., :16, :])
