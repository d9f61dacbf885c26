"""Ground truths: factors of variation and the images they make.

`load("dsprites")` opens a data set by name, `load("dsprites:hold(x>=16)")` one with a condition;
`from_arrays`, `from_file` and `from_folder` make one of your own images; `open_data` opens whatever a name or
path stands for.
"""

from typing import TYPE_CHECKING

from unweave.data.cache import grid_table
from unweave.data.catalogue import CATALOGUE, load
from unweave.data.conditions.naming import conditioned
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.opening import open_data
from unweave.data.own.construct import Collection, abilities, binned, from_arrays, from_file, from_folder
from unweave.data.sets.rooms_continuous import rooms_continuous
from unweave.lazy import lazy_names

__all__ = [
    "CATALOGUE",
    "Card",
    "Collection",
    "Factor",
    "GroundTruth",
    "abilities",
    "binned",
    "conditioned",
    "from_arrays",
    "from_file",
    "from_folder",
    "grid_table",
    "load",
    "open_data",
    "rooms_continuous",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
