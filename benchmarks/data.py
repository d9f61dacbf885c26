"""How fast images and factors are made, compared with the plain way: `python benchmarks/data.py`.

One thread, everything warm; a rate is the best of five rounds, a ratio is ours over the plain way's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from unweave.data import load
from unweave.data.sets.dsprites import _COSINES, _OUTLINES, _SINES
from unweave.data.sets.rooms import ONE, maps, palette

BATCH = 64


def rate(make: Callable[[], object], items: int) -> float:
    """Items a second."""
    make()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        make()
        best = min(best, time.perf_counter() - start)
    return items / best


def report(what: str, ours: float, plain: float, plain_way: str) -> None:
    """Print one line of the table."""
    print(f"{what:34s} {ours:12,.0f}/s {plain:12,.0f}/s {ours / plain:8.1f} x   {plain_way}")


def pillow_sprite(shape: int, scale: int, turn: int, x: int, y: int) -> np.ndarray:
    """One image by Pillow's polygon filler: alike, but not the same pixels."""
    outline = _OUTLINES[shape, scale, : (4, 100, 150)[shape]]
    matrix = np.array([[_COSINES[turn], -_SINES[turn]], [_SINES[turn], _COSINES[turn]]])
    corners = outline @ matrix.T + 16 + 32 * np.array([x, y]) / 31
    image = Image.new("1", (64, 64))
    ImageDraw.Draw(image).polygon([tuple(corner) for corner in corners], fill=1)
    return np.asarray(image)


def main() -> None:
    """Print the table."""
    print(f"{'':34s} {'unweave':>14s} {'plain':>14s}    ratio   the plain way")
    sprites, rooms = load("dsprites"), load("rooms")
    factors, generator = sprites.sample_factors(BATCH, 0), np.random.default_rng(0)
    plain = rate(lambda: np.stack([pillow_sprite(*row) for row in factors]), BATCH)
    report("dSprites, images", rate(lambda: sprites.observe(factors), BATCH), plain, "Pillow polygons")

    noisy, images = load("noisy_dsprites"), sprites.observe(factors)
    plain = rate(lambda: np.minimum(images / 255 + generator.random((BATCH, 3, 64, 64)), 1), BATCH)
    report("noisy dSprites, images", rate(lambda: noisy.observe(factors, 0), BATCH), plain, "NumPy, float64")

    room_factors = rooms.sample_factors(BATCH, 0)

    def plain_rooms() -> object:
        shares = maps()[tuple(room_factors[:, 3:].T)] / ONE
        colours = palette()[np.hstack([room_factors[:, :3], np.full((BATCH, 1), 10)])]
        return np.rint(np.einsum("nmp,nmc->ncp", shares, colours)).astype(np.uint8)

    report(
        "rooms, images",
        rate(lambda: rooms.observe(room_factors), BATCH),
        rate(plain_rooms, BATCH),
        "NumPy einsum of the same maps",
    )
    million = 1_000_000
    plain = rate(lambda: np.stack([generator.integers(s, size=million) for s in sprites.sizes], 1), million)
    report(
        "factors, draws", rate(lambda: sprites.sample_factors(million, 0), million), plain, "NumPy generator"
    )


if __name__ == "__main__":
    main()
