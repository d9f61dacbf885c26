"""A narrow VGG-16 with random weights where the weights of torchvision's are looked for."""

from pathlib import Path

import pytest
import torch
from torch import nn

from unweave.nn.networks import perceptual
from unweave.streams import Stream


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Sequential:
    """Write it into a folder, which is torch's from then on; its layers have torchvision's numbers."""
    layers, channels = list[nn.Module](), 3
    for width, convolutions in zip((2, 3, 3, 4, 4), (2, 2, 3, 3, 3), strict=True):
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    network = nn.Sequential(*layers).requires_grad_(False)
    for name, weights in network.named_parameters():
        drawn = Stream.of(0).child(name).normal(1, weights.numel()).reshape(weights.shape)
        weights.copy_(torch.from_numpy(drawn) / 3)
    (folder / "checkpoints").mkdir()
    state = {f"features.{name}": weights for name, weights in network.state_dict().items()}
    torch.save(state | {"classifier.0.weight": torch.zeros(2)}, folder / "checkpoints" / perceptual.VGG_FILE)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(folder))
    monkeypatch.setattr(perceptual, "VGG_CHECKSUM", "")
    perceptual._vgg.cache_clear()
    return network
