"""All data sets by name: one line each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from unweave.data.collection import Collection
from unweave.data.conditions.naming import conditioned_entry, preset_of, split_name
from unweave.data.entry import Entry
from unweave.data.grid import GroundTruth
from unweave.data.own.plugin import entry_at
from unweave.data.sets import (
    cars3d,
    celeba,
    chairs3d,
    dsprites,
    faces3d,
    falcor3d,
    glyphs,
    mnist,
    mpi3d,
    rooms,
    shapes3d,
    smallnorb,
    sprite_variants,
    three_d_ident,
    yale_b,
)
from unweave.places import data_root
from unweave.plugins.loading import (
    check_entry_name,
    installed,
    installed_parts,
    plugin_place,
    refuse_built_in,
)
from unweave.progress import Progress

CATALOGUE = (
    dsprites.ENTRY,
    sprite_variants.COLOR,
    sprite_variants.NOISY,
    sprite_variants.SCREAM,
    sprite_variants.NOSHAPE,
    rooms.ENTRY,
    glyphs.ENTRY,
    glyphs.CENTRED,
    smallnorb.ENTRY,
    cars3d.ENTRY,
    shapes3d.ENTRY,
    mpi3d.TOY,
    mpi3d.REALISTIC,
    mpi3d.REAL,
    chairs3d.ENTRY,
    faces3d.ENTRY,
    falcor3d.LIVING_ROOM,
    falcor3d.KITCHEN,
    mnist.DIGITS,
    mnist.ARTICLES,
    celeba.ENTRY,
    yale_b.ENTRY,
    three_d_ident.ENTRY,
    three_d_ident.CAUSAL_ENTRY,
)
LONG = 20  # characters of a condition, above which the name of a preset is shorter


def entry_of(name: str) -> Entry:
    """What is known of the data set of that name: built in, of an installed plug-in, or `file.py:Name`.

    A name of the first two kinds may have a condition: "dsprites:hold(shape=2,x>=16)".
    """
    names = [entry.name for entry in CATALOGUE]
    if name in names:
        return CATALOGUE[names.index(name)]
    if has_condition(name):
        base, text = split_name(name)
        return conditioned_entry(entry_of(base), text)
    place = plugin_place("data", name, names)
    entry = entry_at(place)
    refuse_built_in("data", entry.name, names, place)
    check_entry_name("data", name, entry.name)
    return entry


def has_condition(name: str) -> bool:
    """Whether a name is that of a data set of the catalogue, or of an installed plug-in, with a condition."""
    base, colon, _ = name.partition(":")
    return bool(colon) and (
        any(entry.name == base for entry in CATALOGUE) or installed("data", base) is not None
    )


def canonical_name(name: str) -> str:
    """The name of a data set, whose condition, if it has one, is in its canonical form.

    >>> canonical_name("dsprites:hold(x>=16,shape=heart)")
    'dsprites:hold(shape=2,x=16..31)'
    """
    return entry_of(name).name if has_condition(name) else name


@cache
def short_name(name: str) -> str:
    """The name of a data set, whose condition is called by the name of a preset if it is long.

    >>> short_name("dsprites:hold(shape=1,scale=2..5,orientation=14..25,x=21..31,y=21..31)")
    'dsprites:montero_element'
    """
    base, text = split_name(name)
    if len(text) <= LONG or not has_condition(name):
        return name
    preset = preset_of(text, entry_of(base).grid_factors)
    return f"{base}:{preset}" if preset else name


def plugin_entries(problem: Callable[[str], None]) -> list[Entry]:
    """The data sets of installed plug-ins; `problem` gets a sentence on each that cannot be used."""
    names = [entry.name for entry in CATALOGUE]
    return list(installed_parts("data", names, entry_of, problem))


def load(
    name: str, root: str | Path | None = None, *, check: bool = True, progress: Progress | None = None
) -> GroundTruth:
    """Open a data set by name, if it is a full grid of factors; `open_data` opens the others, too.

    Official files are looked for under root, or under $UNWEAVE_DATA, or in the cache folder, and compared
    with their published checksums unless check is False. `progress` is called while a file is
    decoded into the cache.
    """
    return entry_of(name).load_grid(data_root(root), check=check, progress=progress)


def load_any(
    name: str, root: str | Path | None = None, *, check: bool = True, progress: Progress | None = None
) -> GroundTruth | Collection:
    """Open a data set by name, as `load` does; one without a full grid of factors is a collection."""
    return entry_of(name).load(data_root(root), check=check, progress=progress)
