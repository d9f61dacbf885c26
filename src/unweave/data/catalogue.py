"""All data sets by name: one line each."""

from __future__ import annotations

from pathlib import Path

from unweave.data.cache import Progress
from unweave.data.entry import Entry
from unweave.data.grid import GroundTruth
from unweave.data.sets import cars3d, dsprites, mpi3d, rooms, shapes3d, smallnorb, sprite_variants
from unweave.errors import UnweaveError, did_you_mean
from unweave.places import data_root

CATALOGUE = (
    dsprites.ENTRY,
    sprite_variants.COLOR,
    sprite_variants.NOISY,
    sprite_variants.SCREAM,
    sprite_variants.NOSHAPE,
    rooms.ENTRY,
    smallnorb.ENTRY,
    cars3d.ENTRY,
    shapes3d.ENTRY,
    mpi3d.TOY,
    mpi3d.REALISTIC,
    mpi3d.REAL,
)


def entry_of(name: str) -> Entry:
    """What is known of the data set of that name."""
    names = [entry.name for entry in CATALOGUE]
    if name not in names:
        raise UnweaveError(f'there is no data set "{name}". {did_you_mean(name, names)}')
    return CATALOGUE[names.index(name)]


def load(
    name: str, root: str | Path | None = None, *, check: bool = True, progress: Progress | None = None
) -> GroundTruth:
    """Open a data set by name.

    Official files are looked for under root, or under $UNWEAVE_DATA, or in the cache folder, and compared
    with their published checksums unless check is False. `progress` is told how far it has come where a
    file must be decoded into the cache first.
    """
    return entry_of(name).load(data_root(root), check=check, progress=progress)
