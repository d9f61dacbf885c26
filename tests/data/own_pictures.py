"""A folder of small pictures with a table of factors, as a user has it."""

from pathlib import Path

import numpy as np
import pandas as pd
import PIL.Image

FACTORS = [(size, x, y) for size in ("large", "small") for x in range(3) for y in range(2)]


def write_pictures(
    folder: Path, height: int = 28, width: int = 28, table: str | None = "factors.csv"
) -> Path:
    """White squares of 2 sizes at 3 x 2 places, one picture for each combination."""
    folder.mkdir(parents=True)
    rows = []
    for size, x, y in FACTORS:
        picture = np.zeros((height, width), np.uint8)
        half, down, across = 2 + (size == "large"), height // 4 + y * height // 2, (2 * x + 1) * width // 6
        picture[down - half : down + half + 1, across - half : across + half + 1] = 255
        name = f"{size}-{x}-{y}.png"
        PIL.Image.fromarray(picture).save(folder / name)
        rows.append((name, size, x, y))
    if table is not None:
        frame = pd.DataFrame(rows, columns=["file", "size", "x", "y"])
        if table.endswith(".jsonl"):
            frame.to_json(folder / table, orient="records", lines=True)
        else:
            frame.to_csv(folder / table, index=False)
    return folder
