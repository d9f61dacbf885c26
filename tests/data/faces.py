"""Small pictures in the layout of the official archives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data.sets import yale_b

LIGHTS = ("A+000E+00", "A+000E+90", "A-005E+10", "A+130E+20", "A-130E+20", "A+050E-40")


def save_colour(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (8, 8)) -> None:
    """A picture of one colour; size is (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def pgm(grey: int, width: int = yale_b.WIDTH, height: int = yale_b.HEIGHT) -> bytes:
    """A binary PGM file of one grey, with a comment in its header."""
    return b"P5\n# cropped\n%d %d\n255\n" % (width, height) + bytes([grey]) * (width * height)


def write_yale(folder: Path, people: tuple[int, ...] = (1, 39), lights: tuple[str, ...] = LIGHTS) -> None:
    """Faces whose grey is ten times the person's place plus the light's, and files that are left out."""
    for place, person in enumerate(people):
        name = f"yaleB{person:02}"
        (folder / name).mkdir(parents=True)
        for number, light in enumerate(lights):
            (folder / name / f"{name}_P00{light}.pgm").write_bytes(pgm(100 * place + 10 * number))
        (folder / name / f"{name}_P00_Ambient.pgm").write_bytes(pgm(0, 640, 480))
        (folder / name / f"{name}_P00A+020E-10.pgm.bad").write_bytes(b"lost")
        (folder / name / f"{name}_P00.info").write_text("names")


def shaded_faces(folder: Path, people: int = 4, lights: tuple[str, ...] = LIGHTS) -> None:
    """Faces with a texture for each person, bright on the side of the light."""
    rng = np.random.default_rng(0)
    sideways = np.linspace(-1, 1, yale_b.WIDTH)
    for person in range(1, people + 1):
        texture = np.kron(rng.uniform(80, 255, (8, 7)), np.ones((24, 24)))
        name = f"yaleB{person:02}"
        (folder / name).mkdir(parents=True)
        for light in lights:
            shading = 1 / (1 + np.exp(-4 * sideways * int(light[1:5]) / 130))
            grey = np.rint(texture * shading).astype(np.uint8)
            header = b"P5 %d %d 255\n" % (yale_b.WIDTH, yale_b.HEIGHT)
            (folder / name / f"{name}_P00{light}.pgm").write_bytes(header + grey.tobytes())
