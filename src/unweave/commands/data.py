"""`unweave data`: list data sets, look at them, fetch their files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from unweave.commands.console import console, print_problem, progress
from unweave.commands.listing import Listing
from unweave.errors import UnweaveError
from unweave.progress import Progress

if TYPE_CHECKING:
    from unweave.data.collection import Collection, Continuous
    from unweave.data.grid import Factor, GroundTruth

data_app = App(name="data", help="Ground truths: list them, look at them, fetch their files.")


@Parameter(name="*")
@dataclass(frozen=True)
class Files:
    """Where the official files of data sets are."""

    data_root: Path | None = None
    """Folder of the files. Default: $UNWEAVE_DATA, or data in the cache folder."""

    check: bool = True
    """Compare files with their published checksums."""


@data_app.command(name="list")
def list_data(*, files: Files | None = None) -> None:
    """List all data sets: what they hold, whether they need a file, and whether it is available."""
    from unweave.data.catalogue import CATALOGUE, plugin_entries
    from unweave.places import data_root

    root = data_root((files or Files()).data_root)
    table = Listing("name", "images", "channels", "factors", "needs a file?", "is it here?", below="factors")
    for entry in (*CATALOGUE, *plugin_entries(print_problem)):
        factors = ", ".join(_factor_words(factor) for factor in entry.factors)
        present = "yes" if entry.is_here(root) else f"no: unweave data fetch {entry.name}"
        need = "yes" if entry.wanted else "no"
        table.add_row(entry.name, f"{entry.images:,}", str(entry.channels), factors, need, present)
    console().print(table)
    console().print(f"Files are looked for in {root}", style="dim")


@data_app.command
def show(
    name: str,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed: int = 0,
    table: Path | None = None,
    files: Files | None = None,
) -> None:
    """Draw images of a data set: a row for each factor, and some at random.

    Parameters
    ----------
    name
        A data set of `unweave data list`, or your own: a folder or table of pictures, an .npz or .npy file.
    output
        File of the picture. Default: NAME.png in this folder.
    seed
        Random seed.
    table
        For a folder: the table of factors (.csv, .tsv, .parquet, .jsonl). Default: factors.csv in the folder.
    """
    from unweave.data.grid import GroundTruth
    from unweave.display.pictures import collection_sheet, data_sheet, save

    with progress(f"preparing {name}") as tell:
        data = _open(name, files or Files(), tell, table)
    path = output or Path(re.sub(r"[^\w.-]+", "-", data.name) + ".png")
    sheet = data_sheet(data, seed) if isinstance(data, GroundTruth) else collection_sheet(data, seed)
    save(sheet, path)
    print(f"{data.name} ({data.source})\n-> {path}")


@data_app.command
def fetch(name: str, *, files: Files | None = None) -> None:
    """Download and check the official files of a data set.

    Parameters
    ----------
    name
        The data set, as in `unweave data list`.
    """
    from unweave.data.catalogue import entry_of
    from unweave.data.fetch import fetch as fetch_files
    from unweave.places import data_root

    entry = entry_of(name)
    if not entry.wanted:
        print(f"{name} needs no file: unweave renders it.")
        return
    root = data_root((files or Files()).data_root)
    folder = root / entry.folders[0]
    public = any(file.urls for file in entry.files)
    if not entry.files or not (public or entry.is_here(root)):
        wanted = " and ".join(file.name for file in entry.files) or " or ".join(entry.wanted)
        raise UnweaveError(
            f"the files of {name} cannot be downloaded. Get them from {entry.card.homepage}, and put "
            f"them into {folder} so that there is {wanted}."
        )
    with progress(f"fetching {name}") as tell:
        paths = fetch_files(name, entry.files, folder, tell)
    print(f"{name}: {len(paths)} files in {folder}")


@data_app.command
def render(name: str, *, files: Files | None = None) -> None:
    """Write all images of a data set into one table in the cache, for the fastest access.

    Parameters
    ----------
    name
        The data set, as in `unweave data list`.
    """
    from unweave.data.cache import grid_table
    from unweave.places import cache_folder

    with progress(f"rendering {name}") as tell:
        table = grid_table(_load(name, files or Files(), tell), tell)
    print(f"{name}: {len(table):,} images, {table.nbytes / 1e6:,.0f} MB\n-> {cache_folder() / 'tables'}")


@data_app.command
def inspect(name: str, *, table: Path | None = None, files: Files | None = None) -> None:
    """List what can be done with a data set, or with your own images.

    Parameters
    ----------
    name
        A data set of `unweave data list`, or your own: a folder or table of pictures, an .npz or .npy file.
    table
        For a folder: the table of factors (.csv, .tsv, .parquet, .jsonl). Default: factors.csv in the folder.
    """
    from unweave.data.own.abilities import abilities, counted_images

    with progress(f"reading {name}") as tell:
        data = _open(name, files or Files(), tell, table)
    sheet = Listing("what", "possible?", "why", below="why")
    for what, possible, why in abilities(data):
        sheet.add_row(what, "yes" if possible else "no", why)
    print(f"{data.name}: {counted_images(data)} of {data.shape} ({data.source})")
    console().print(sheet)


def _factor_words(factor: Factor | Continuous) -> str:
    return f"{factor.name} {getattr(factor, 'size', 'continuous')}"


def _open(name: str, files: Files, tell: Progress, table: Path | None) -> GroundTruth | Collection:
    from unweave.data.opening import open_data

    return open_data(name, files.data_root, table=table, check=files.check, progress=tell)


def _load(name: str, files: Files, tell: Progress) -> GroundTruth:
    from unweave.data.catalogue import load

    return load(name, files.data_root, check=files.check, progress=tell)
