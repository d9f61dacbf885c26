"""Image sizes: which ones the convolutional networks take, and how images are brought to another size.

Images are padded with black, resized with a Lanczos filter, or cropped to their middle.
"""

from __future__ import annotations

from collections.abc import Collection as Sized
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError, did_you_mean

if TYPE_CHECKING:
    from PIL.Image import Image

Fit: TypeAlias = Literal["resize", "pad", "crop"]
HeightWidth: TypeAlias = tuple[int, int]
Size: TypeAlias = int | HeightWidth | Literal["auto"]

FITS = get_args(Fit)
PIXELS = 4  # the least height and width; a smaller axis looks like an axis of channels
# Heights and widths that all convolutional networks take: `unweave.nn.networks.published` has the same.
SMALLEST, MULTIPLE = 32, 16
LARGEST, STANDARD = 128, 64  # larger images are shrunk to the standard size where the size is "auto"
_PAST = {"resize": "resized", "crop": "scaled and cropped"}


def suits_networks(size: HeightWidth) -> bool:
    """Whether the convolutional networks take images of that height and width."""
    return all(side >= SMALLEST and side % MULTIPLE == 0 for side in size)


def check_size(size: object, fit: object) -> None:
    """Refuse what is no size or no way to reach it."""
    sides = (size, size) if isinstance(size, int) else size
    if size is not None and size != "auto" and not _are_sides(sides):
        raise UnweaveError(
            f"size must be a whole number of pixels, {PIXELS} or more, (height, width) or "
            f'"auto"; got {size!r}.'
        )
    if fit is not None and fit not in FITS:
        raise UnweaveError(f'there is no fit "{fit}". {did_you_mean(str(fit), FITS)}')


def size_named(text: str) -> HeightWidth:
    """The height and width that a user writes as 64 or 64x96."""
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(side.strip().isdecimal() for side in sides):
        raise UnweaveError(
            f'an image size is a number of pixels, or height x width, as in 64x96; got "{text}".'
        )
    return int(sides[0]), int(sides[-1])


def chosen_size(sizes: Sized[HeightWidth], size: Size | None, fit: Fit | None) -> tuple[HeightWidth, Fit]:
    """The height and width that images of some sizes are brought to, and how.

    "auto": images of one size up to 128 x 128 are padded to the next multiples of 16, at least 32. Others are
    shrunk to 64 x 64, with black bars where they are not square. None: as they are.
    """
    check_size(size, fit)
    first = next(iter(sizes))
    if size is None:
        return first, fit or "resize"
    if size != "auto":
        height, width = (size, size) if isinstance(size, int) else size
        return (int(height), int(width)), fit or "resize"
    if len(sizes) == 1 and max(first) <= LARGEST:
        height, width = (max(SMALLEST, -(-side // MULTIPLE) * MULTIPLE) for side in first)
        return (height, width), fit or "pad"
    return (STANDARD, STANDARD), fit or "pad"


def description(sizes: Sized[HeightWidth], size: HeightWidth, fit: Fit) -> str:
    """What was done to images of some sizes, such as "28 x 28 padded to 32 x 32"; "" if nothing."""
    if set(sizes) == {size}:
        return ""
    before = _named(next(iter(sizes))) if len(sizes) == 1 else f"{len(sizes)} sizes"
    done = _PAST.get(fit)
    if done is None:
        shrunk = any(before > after for old in sizes for before, after in zip(old, size, strict=True))
        done = "shrunk and padded" if shrunk else "padded"
    return f"{before} {done} to {_named(size)}"


def fit_picture(picture: Image, size: HeightWidth, fit: Fit) -> Image:
    """A picture brought to height and width."""
    from PIL import Image, ImageOps

    height, width = size
    if picture.size == (width, height):
        return picture
    if fit == "resize":
        return picture.resize((width, height), Image.Resampling.LANCZOS)
    if fit == "crop":
        return ImageOps.fit(picture, (width, height), Image.Resampling.LANCZOS)
    scale = min(1.0, height / picture.height, width / picture.width)
    if scale < 1:
        shrunk = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(shrunk, Image.Resampling.LANCZOS)
    padded = Image.new(picture.mode, (width, height))
    padded.paste(picture, ((width - picture.width) // 2, (height - picture.height) // 2))
    return padded


def is_padding(before: HeightWidth, size: HeightWidth, fit: Fit) -> bool:
    """Whether images only get a border, if anything."""
    return before == size or (fit == "pad" and before[0] <= size[0] and before[1] <= size[1])


def padded(images: NDArray[Any], size: HeightWidth) -> NDArray[Any]:
    """(n, c, h, w) images in the middle of larger black ones."""
    (height, width), (tall, wide) = images.shape[2:], size
    if (height, width) == size:
        return images
    top, left = (tall - height) // 2, (wide - width) // 2
    return np.pad(images, ((0, 0), (0, 0), (top, tall - height - top), (left, wide - width - left)))


def fit_image(image: NDArray[np.uint8], size: HeightWidth, fit: Fit) -> NDArray[np.uint8]:
    """A (c, h, w) image brought to height and width."""
    from PIL import Image

    plain = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    made = np.asarray(fit_picture(Image.fromarray(np.ascontiguousarray(plain)), size, fit))
    return made.reshape(*size, len(image)).transpose(2, 0, 1)


def _are_sides(sides: object) -> bool:
    return (
        isinstance(sides, tuple | list)
        and len(sides) == 2
        and all(isinstance(side, int) and not isinstance(side, bool) and side >= PIXELS for side in sides)
    )


def _named(size: HeightWidth) -> str:
    return f"{size[0]} x {size[1]}"
