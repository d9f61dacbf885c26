"""Folders of pictures, and tables of factors in files.

Pictures are decoded once, into a cached table of images; as long as no picture changes its name, size or
time, later loads open none of them. What identifies the images is a fingerprint of the decoded pixels: a
folder that was copied, moved or touched holds the same data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.data.cache import Table, cached_table, content_digest, fingerprint
from unweave.data.grid import Images
from unweave.data.own.sizing import Fit, HeightWidth, Size, chosen_size, description, fit_picture
from unweave.errors import MissingFileError, UnweaveError
from unweave.progress import Progress

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")
FACTOR_FILES = tuple(f"factors{suffix}" for suffix in TABLE_SUFFIXES)
FILE_COLUMNS = ("file", "filename", "path", "image")
# Part of the name of a cached table: a change to how pictures are decoded must change this too.
DECODER = "pictures-1"
CHUNK = 256
GREY_MODES = ("1", "L", "LA", "La", "I", "F")
ORIENTATION, TURNED = 0x0112, (5, 6, 7, 8)  # the EXIF tag, and its values that swap height and width


class Pictures(NamedTuple):
    """Decoded pictures (n, c, h, w), a fingerprint of their pixels, and how they came to their size."""

    pixels: Images
    digest: str
    fit: Fit
    sizing: str  # what was done to their size; "" if nothing


def find_pictures(folder: Path) -> list[str]:
    """Paths of all pictures in the folder and below, relative to it, with /, sorted; hidden ones left out."""
    if not folder.is_dir():
        raise MissingFileError(f"there is no folder {folder}.")
    paths = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(place).relative_to(folder)
        pictures = (name for name in files if name.lower().endswith(SUFFIXES) and not name.startswith("."))
        paths += [(below / name).as_posix() for name in pictures]
    if not paths:
        raise MissingFileError(f"no picture found in {folder}; looked for {', '.join(SUFFIXES)}.")
    return sorted(paths)


def read_pictures(
    folder: Path,
    files: Sequence[str],
    size: Size,
    fit: Fit | None,
    channels: int | None,
    progress: Progress | None,
) -> Pictures:
    """All pictures as one (n, c, h, w) table from the cache."""
    states = "\n".join(_state(folder, file) for file in files)
    mark = fingerprint(f"{DECODER}\n{folder.resolve()}\n{states}")
    # Kept in the cache too: asking each picture again would open them all.
    headers = _table(f"folder-{mark}-headers", folder, files, (5,), _header, None)
    channels = channels or (3 if headers[:, 0].any() else 1)
    sides = headers[:, 1::2].astype(np.int64) * 256 + headers[:, 2::2]
    sizes = {(int(height), int(width)) for height, width in np.unique(sides, axis=0)}
    chosen, fit = chosen_size(sizes, size, fit)

    def read(picture: Image) -> Images:
        return decode(picture, chosen, fit, channels)

    name = f"folder-{mark}-{channels}x{chosen[0]}x{chosen[1]}-{fit}"
    pixels = _table(name, folder, files, (channels, *chosen), read, progress)
    digest = content_digest(name, lambda: _chunks_of(pixels))
    return Pictures(pixels, digest, fit, description(sizes, chosen, fit))


def read_factor_table(
    folder: Path, files: Sequence[str], table: str | Path | Mapping[str, Any] | pd.DataFrame | None
) -> pd.DataFrame | None:
    """The factors of the files, in their order; None where no table is given and none lies in the folder."""
    if table is None:
        table = next((folder / name for name in FACTOR_FILES if (folder / name).is_file()), None)
    if table is None:
        return None
    if isinstance(table, str | Path):
        path = Path(table).expanduser()
        return _match_rows(_read_file(path), files, path.name)
    import pandas as pd

    try:
        frame = pd.DataFrame(table)
    except ValueError as error:
        raise UnweaveError("the columns of the table must all have the same number of rows.") from error
    return _match_rows(frame, files, "the table")


def _read_file(path: Path) -> pd.DataFrame:
    """A CSV, TSV, Parquet or JSON lines file as a frame."""
    import pandas as pd

    if not path.is_file():
        raise MissingFileError(f"there is no table {path}.")
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise UnweaveError(f"a table of factors is a .csv, .tsv, .parquet or .jsonl file; got {path.name}.")
    try:
        if suffix == ".parquet":
            frame = pd.read_parquet(path)
        elif suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            frame = pd.DataFrame([json.loads(line) for line in lines if line.strip()])
        else:
            # Names of files stay text: 007 is not 7.
            text = dict.fromkeys(FILE_COLUMNS, str)
            separator = "," if suffix == ".csv" else "\t"
            frame = pd.read_csv(path, sep=separator, dtype=text, encoding="utf-8-sig", skipinitialspace=True)
    except ImportError as error:
        raise UnweaveError(
            f"reading {path.name} needs pyarrow; install it, or save the table as CSV."
        ) from error
    except (ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UnweaveError(f"cannot read the table {path}: {reason}.") from error
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    # What to_csv writes for the row numbers of a frame is no factor.
    return frame[[name for name in frame.columns if not name.startswith("Unnamed: ")]]


def _match_rows(frame: pd.DataFrame, files: Sequence[str], what: str) -> pd.DataFrame:
    """The columns of factors, one row a file and in the order of the files."""
    frame = frame.rename(columns=str)
    column = _file_column(frame, what)
    rows = [_relative(cell, row, what) for row, cell in enumerate(frame[column])]
    at: dict[str, int] = {}
    twice = []
    for row, file in enumerate(rows):
        if file in at:
            twice.append(file)
        at[file] = row
    known = set(files)
    _refuse(twice, f"row(s) of {what} name a file that has a row already", "Keep one row a file.")
    _refuse(
        [file for file in rows if file not in known],
        f"row(s) of {what} name a file that is not there",
        "Write paths as they are below the folder of pictures, or leave these rows out.",
    )
    _refuse([file for file in files if file not in at], f"picture(s) have no row in {what}", "Add the rows.")
    return frame.drop(columns=column).iloc[[at[file] for file in files]]


def _file_column(frame: pd.DataFrame, what: str) -> str:
    columns = [name for name in frame.columns if name.lower() in FILE_COLUMNS]
    if len(columns) != 1:
        hint = " Separate columns by commas." if len(frame.columns) == 1 and ";" in frame.columns[0] else ""
        raise UnweaveError(
            f"{what} must have one column with the files' paths, called {', '.join(FILE_COLUMNS[:-1])} or "
            f"{FILE_COLUMNS[-1]}; its columns are {', '.join(frame.columns)}.{hint}"
        )
    return columns[0]


def _relative(cell: Any, row: int, what: str) -> str:
    if not isinstance(cell, str):
        raise UnweaveError(f"row {row} of {what} names no file; got {cell!r}.")
    return str(PurePosixPath(cell.strip().replace("\\", "/")))


def _state(folder: Path, file: str) -> str:
    """What changes when a file is rewritten."""
    try:
        state = (folder / file).stat()
    except OSError as error:
        raise UnweaveError(f"cannot read the picture {folder / file}: {error.strerror}.") from error
    return f"{file} {state.st_size} {state.st_mtime_ns}"


def _refuse(bad: list[str], what: str, cure: str) -> None:
    if bad:
        raise UnweaveError(f"{len(bad)} {what}; the first is {bad[0]}. {cure}".strip())


def _table(
    name: str,
    folder: Path,
    files: Sequence[str],
    row_shape: tuple[int, ...],
    read: Callable[[Image], Any],
    progress: Progress | None,
) -> Table:
    """What `read` makes of each picture, as a table from the cache."""

    def read_file(file: str) -> Any:
        from PIL import Image

        try:
            with Image.open(folder / file) as picture:
                return read(picture)
        except UnweaveError as error:
            raise UnweaveError(f"cannot read the picture {folder / file}: {error}") from error
        # Pillow's decoders raise almost anything on a damaged file: OSError, SyntaxError, struct.error...
        except Exception as error:
            reason = str(error).removesuffix(".")
            raise UnweaveError(
                f"cannot read the picture {folder / file}: {reason}. Replace the file, or leave it out."
            ) from error

    def chunks() -> Iterator[Table]:
        with ThreadPoolExecutor() as pool:
            for start in range(0, len(files), CHUNK):
                yield np.array(list(pool.map(read_file, files[start : start + CHUNK])), np.uint8)

    return cached_table(name, (len(files), *row_shape), chunks, progress)


def _chunks_of(pixels: Images) -> Iterator[bytes]:
    yield f"{pixels.shape}".encode()
    for start in range(0, len(pixels), CHUNK):
        yield pixels[start : start + CHUNK].tobytes()


def _header(picture: Image) -> list[int]:
    """Whether a picture has colour, its height and its width when it stands upright, two bytes each."""
    width, height = (min(side, 65535) for side in picture.size)
    if picture.getexif().get(ORIENTATION) in TURNED:
        height, width = width, height
    coloured = not picture.mode.startswith(GREY_MODES)
    return [int(coloured), height // 256, height % 256, width // 256, width % 256]


def decode(picture: Image, size: HeightWidth, fit: Fit, channels: int) -> Images:
    """(c, h, w): upright, transparent parts on black, brought to height and width."""
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith(("I", "F")):
        picture = _to_8_bits(picture)
    if picture.has_transparency_data:
        black = Image.new("RGBA", picture.size, "black")
        picture = Image.alpha_composite(black, picture.convert("RGBA"))
    picture = fit_picture(picture.convert("L" if channels == 1 else "RGB"), size, fit)
    return np.asarray(picture).reshape(*size, channels).transpose(2, 0, 1)


def _to_8_bits(picture: Image) -> Image:
    """Grey of 16 bits as grey of 8; Pillow itself would cut off what is above 255."""
    from PIL import Image

    grey = np.asarray(picture)
    if grey.dtype.kind == "f" or grey.min() < 0 or grey.max() > 65535:
        raise UnweaveError("its pixels are not of 8 or 16 bits; save it as an 8-bit PNG.")
    return Image.fromarray(np.rint(grey / 257).astype(np.uint8))
