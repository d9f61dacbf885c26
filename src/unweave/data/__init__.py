"""Ground truths: factors of variation and the images they make.

`load("dsprites")` opens a data set by name; `from_arrays` and `from_folder` make one of your own images.
"""

from unweave.data.cache import grid_table
from unweave.data.catalogue import CATALOGUE, load
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.data.own import Collection, abilities, binned, from_arrays, from_folder

__all__ = [
    "CATALOGUE",
    "Card",
    "Collection",
    "Factor",
    "GroundTruth",
    "abilities",
    "binned",
    "from_arrays",
    "from_folder",
    "grid_table",
    "load",
]
