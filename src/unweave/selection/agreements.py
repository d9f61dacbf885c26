"""How well runs agree, two at a time: what UDR and ModelCentrality are averages of.

The score of a run depends on the others only through its agreement with each of them. So agreements are kept,
in agreements.parquet: comparing can be stopped at any time, another pool of the same runs needs few new ones,
and a further run adds its own only. A run is known there by its codes: if they change, it is compared again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.locks import hold
from unweave.metrics import model_centrality, udr
from unweave.progress import Progress
from unweave.results import read_frame
from unweave.selection.codes import Codes
from unweave.study.table import write_table

Floats = NDArray[np.float64]

# Each is computed for two runs at a time; of two, a score is the agreement with the other one.
AGREEMENTS: Mapping[str, Callable[..., Floats]] = {
    "udr.lasso": partial(udr, method="lasso"),
    "udr.spearman": partial(udr, method="spearman"),
    "model_centrality": model_centrality,
}
# Columns of the file. A score whose formula changes gets another column, and old values are not read.
COLUMNS = {"model_centrality": "model_centrality_above_chance"}
OLD_COLUMNS = ("model_centrality",)
KEEP_EVERY = 30.0  # seconds
DECIMALS = 12  # beyond them is rounding, which must not decide between runs that agree alike


def agreements(
    runs: Mapping[str, Codes],
    pools: Sequence[Sequence[int]],
    names: Sequence[str],
    path: Path,
    tell: Progress | None = None,
) -> dict[str, Floats]:
    """For each name an (r, r) table: the agreement of run j (column) with run i, NaN where not asked for.

    `pools` are places of runs that are compared with each other; `path` is the file of what is known.
    """
    tables = _stored_agreements(path, list(runs))
    codes = list(runs.values())
    wanted = [(i, j) for pool in pools for i, j in combinations(pool, 2)]
    missing = [(i, j) for i, j in wanted if any(np.isnan(tables[name][i, j]) for name in names)]
    last = time.monotonic()
    try:
        for done, (i, j) in enumerate(missing, 1):
            pair, kl = [codes[i].mean, codes[j].mean], [codes[i].kl, codes[j].kl]
            for name in names:
                tables[name][j, i], tables[name][i, j] = np.round(AGREEMENTS[name](pair, kl=kl), DECIMALS)
            if tell:
                tell(done, len(missing), "comparing")
            if time.monotonic() - last > KEEP_EVERY:
                _keep(path, list(runs), tables)
                last = time.monotonic()
    finally:
        if missing:
            _keep(path, list(runs), tables)
    return {name: tables[name] for name in names}


def _stored_agreements(path: Path, runs: Sequence[str]) -> dict[str, Floats]:
    tables = {name: np.full((len(runs), len(runs)), np.nan) for name in AGREEMENTS}
    if path.exists():
        frame, place = _read(path), pd.Index(runs)
        i, j = (place.get_indexer(pd.Index(frame[name])) for name in ("other", "run"))
        known = (i >= 0) & (j >= 0)
        for name, table in tables.items():
            table[i[known], j[known]] = frame[COLUMNS.get(name, name)].to_numpy(float)[known]
    return tables


def _keep(path: Path, runs: Sequence[str], tables: Mapping[str, Floats]) -> None:
    """Write the known agreements, merged with those that other processes have written since."""
    i, j = np.nonzero(~np.isnan(np.stack(list(tables.values()))).all(axis=0))
    names = np.asarray(runs, object)
    columns: dict[str, Any] = {"other": names[i], "run": names[j]}
    frame = pd.DataFrame(columns | {COLUMNS.get(name, name): table[i, j] for name, table in tables.items()})
    with hold(path):
        if path.exists():
            frame = pd.concat([_read(path), frame]).groupby(["other", "run"], sort=False).last().reset_index()
        write_table(frame, path)


def _read(path: Path) -> pd.DataFrame:
    frame = read_frame(path)
    wanted = ["other", "run", *(COLUMNS.get(name, name) for name in AGREEMENTS)]
    if not {"other", "run", "udr.lasso"} <= set(frame.columns) <= {*wanted, *OLD_COLUMNS}:
        raise UnweaveError(f"{path} is not a table of agreements. Delete it, and it is computed again.")
    return frame.reindex(columns=wanted)
