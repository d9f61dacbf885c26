"""Small tables of results with known numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from unweave.results import Results, check_table, long_table, wide


class At(NamedTuple):
    """The places of a run's data set, method and strength in their lists, and its seed."""

    data: int
    method: int
    strength: int
    seed: int


Rule = Callable[[At], float]

STRENGTHS = (1.0, 2.0, 4.0)


def settings(
    data: Sequence[str] = ("dsprites", "cars3d"),
    methods: Sequence[str] = ("beta_vae", "factor_vae"),
    strengths: Sequence[float] = STRENGTHS,
    seeds: int = 3,
    source: str = "own",
) -> pd.DataFrame:
    """All runs of a small study, without scores; `at` is their place."""
    rows = [
        (source, f"{source}-{d}-{m}-{s:g}-{seed}", d, m, f"strength={s:g}", s, seed, At(i, j, k, seed))
        for i, d in enumerate(data)
        for j, m in enumerate(methods)
        for k, s in enumerate(strengths)
        for seed in range(seeds)
    ]
    columns = ["source", "run", "data", "method", "setting", "strength", "seed", "at"]
    return pd.DataFrame(rows, columns=columns)


def table(
    runs: pd.DataFrame, rules: Mapping[str, Rule], representation: str = "mean", **protocols: str
) -> Results:
    """The table of results of runs with a rule for each score."""
    values = [[rule(at) for rule in rules.values()] for at in runs["at"]]
    scores = pd.DataFrame(values, columns=list(rules))
    names = {name: protocols.get(name, f"{name}[made-up]") for name in rules}
    plain = runs.drop(columns="at").assign(representation=representation)
    return check_table(long_table(plain, scores, names))


SIX: dict[str, Rule] = {
    "mig": lambda at: 0.1 + 0.2 * at.method + 0.05 * at.strength + 0.01 * at.seed,
    "sap": lambda at: 0.9 - 0.2 * at.method - 0.05 * at.strength - 0.01 * at.seed,
    "modularity": lambda at: 0.5 + 0.1 * ((7 * at.data + 5 * at.method + 3 * at.strength + 2 * at.seed) % 4),
}


def small_runs(
    seeds: int = 3, rules: Mapping[str, Rule] = SIX, strengths: Sequence[float] = STRENGTHS
) -> pd.DataFrame:
    """One row a run: two data sets, two methods, three strengths."""
    return wide(table(settings(seeds=seeds, strengths=strengths), rules).table)
