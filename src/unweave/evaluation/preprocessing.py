"""From images of a data set to what a network was trained on: size, channels and normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unweave.errors import UnweaveError
from unweave.evaluation.posteriors import EncoderError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Preprocessing:
    """What is done to images in [0, 1] before they are encoded; None leaves that as it is.

    `size` is the height and width that whole images are resized to, bilinearly and with antialiasing. With
    `channels` 3 grey images are repeated; with 1 the mean of the colours is taken. `mean` and `std` normalise
    each channel.
    """

    size: int | tuple[int, int] | None = None
    channels: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.size, int):
            object.__setattr__(self, "size", (self.size, self.size))
        if self.channels not in (None, 1, 3):
            raise UnweaveError(f"channels must be 1, 3 or None; got {self.channels!r}.")
        for name in ("mean", "std"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, tuple(float(value) for value in values))
        if self.std is not None and min(self.std) <= 0:
            raise UnweaveError(f"std must be greater than 0 in each channel; got {self.std}.")

    def __call__(self, images: Tensor) -> Tensor:
        """Images (n, c, h, w) in [0, 1] as the network takes them."""
        channels = images.shape[1]
        if self.channels == 1 and channels > 1:
            images = images.mean(dim=1, keepdim=True)
        elif self.channels is not None and self.channels > channels:
            images = images.expand(-1, self.channels, -1, -1)
        if self.size is not None and tuple(images.shape[2:]) != self.size:
            from torch.nn.functional import interpolate

            images = interpolate(images, self.size, mode="bilinear", antialias=True)
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and len(values) not in (1, images.shape[1]):
                raise EncoderError(
                    f"{name} must have a value for each of the {images.shape[1]} channels; got {values}."
                )
        if self.mean is not None:
            images = images - images.new_tensor(self.mean).view(1, -1, 1, 1)
        return images if self.std is None else images / images.new_tensor(self.std).view(1, -1, 1, 1)

    def sentence(self, shape: tuple[int, ...]) -> str:
        """What is done to images (c, h, w), for the notes of an evaluation; empty if nothing is."""
        done = []
        if isinstance(self.size, tuple) and self.size != shape[1:]:
            done.append(f"resized to {self.size[0]} x {self.size[1]} pixels")
        if self.channels is not None and self.channels != shape[0]:
            done.append(f"turned into {self.channels} channel{'s' if self.channels > 1 else ''}")
        if self.mean is not None or self.std is not None:
            done.append(f"normalised by mean {self.mean} and standard deviation {self.std}")
        words = " and ".join([*filter(None, [", ".join(done[:-1])]), *done[-1:]])
        return f"Images were {words} before encoding." if done else ""


def preprocessing_of(model: Any) -> Preprocessing:
    """What a model, or the image processor of one, says about its images; nothing where it says nothing.

    Known are `pretrained_cfg` and `default_cfg` of timm (input_size, mean, std), `config` of transformers
    (image_size, num_channels, also in vision_config), and image processors (size, image_mean, image_std).
    """
    if hasattr(model, "image_mean"):
        return _of_processor(model)
    for name in ("pretrained_cfg", "default_cfg"):
        fields = _fields(getattr(model, name, None))
        if fields.get("input_size"):
            channels, height, width = fields["input_size"]
            return Preprocessing(
                (height, width), known_channels(channels), fields.get("mean"), fields.get("std")
            )
    config = _fields(getattr(model, "config", None))
    config = _fields(config.get("vision_config")) or config
    size = config.get("image_size")
    if not isinstance(size, int | tuple | list):
        return Preprocessing()
    sides = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
    return Preprocessing(sides, known_channels(config.get("num_channels")))


def known_channels(channels: Any) -> int | None:
    """Grey or colour; None for other numbers of channels, which images are not turned into."""
    return channels if channels in (1, 3) else None


def _of_processor(processor: Any) -> Preprocessing:
    fields = getattr(processor, "crop_size", None) or getattr(processor, "size", None)
    sides = _fields(fields)
    edge = sides.get("shortest_edge")
    height, width = sides.get("height", edge), sides.get("width", edge)
    size = (int(height), int(width)) if height and width else None
    channels = known_channels(len(processor.image_mean))
    return Preprocessing(size, channels, processor.image_mean, processor.image_std)


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a dictionary or an object by name."""
    if isinstance(record, Mapping):
        return dict(record)
    return dict(getattr(record, "__dict__", {}))
