"""`unweave impossibility`: codes of a run, or factors of a data set, entangled, measured and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.commands.console import console
from unweave.commands.listing import Listing
from unweave.data import CATALOGUE, GroundTruth
from unweave.data.opening import is_place, open_data
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.evaluate import Effort, source_of
from unweave.layout import SPEC_FILE
from unweave.progress import Progress
from unweave.streams import Stream
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.impossibility import Comparison
    from unweave.runs.run import Run


class Subject(NamedTuple):
    """Codes (n, d) and factors (n, k), and what they are called."""

    title: str
    codes: NDArray[Any]
    factors: NDArray[np.int64]
    code_names: tuple[str, ...]
    factor_names: tuple[str, ...]


def subject_named(
    name: str, representation: str, effort: Effort, device: str, data_root: Path | None, tell: Progress | None
) -> Subject:
    """The codes of a run, or the factors of a data set as codes of themselves."""
    folder = run_path(name)
    if (folder / SPEC_FILE).exists():
        # Here, because torch takes seconds to import and factors need none of it.
        from unweave.runs.run import load

        return codes_of_run(load(folder, device, data_root), representation, effort, tell)
    if is_place(name):
        return factors_of_own_data(name, effort)
    names = [entry.name for entry in CATALOGUE]
    if name not in names:
        raise UnweaveError(
            f'"{name}" is neither the folder of a run nor a data set. {did_you_mean(name, names)}'
        )
    return factors_of_data(name, effort)


def codes_of_run(run: Run, representation: str, effort: Effort, tell: Progress | None = None) -> Subject:
    """Codes of points that are drawn from the run's data."""
    source = source_of(run, effort, tell=tell)
    sample = source.sample(effort.points, representation, effort.stream)
    codes = np.concatenate([sample.codes, sample.test_codes])
    return Subject(
        f"{run.path}, {representation} codes",
        codes,
        np.concatenate([sample.factors, sample.test_factors]),
        tuple(f"z{i}" for i in range(codes.shape[1])),
        source.names,
    )


def factors_of_data(name: str, effort: Effort) -> Subject:
    """Uniformly drawn factors of a data set, which are perfect codes; its files are not needed."""
    [entry] = [entry for entry in CATALOGUE if entry.name == name]
    sizes, names = zip(*((factor.size, factor.name) for factor in entry.grid_factors), strict=True)
    factors = Stream.of(effort.seed).child("factors").integers(sum(effort.points), sizes)
    return Subject(f"the factors of {name} as codes", factors, factors, names, names)


def factors_of_own_data(path: str, effort: Effort) -> Subject:
    """Uniformly drawn factors of a user's data, if it is a full grid."""
    data = open_data(path)
    if not isinstance(data, GroundTruth):
        raise UnweaveError(
            f"{data.name} is not a full grid of factors, so its factors cannot be drawn as codes. Name the "
            "folder of a run that was trained on it."
        )
    factors = data.sample_factors(sum(effort.points), effort.seed)
    names = tuple(factor.name for factor in data.factors)
    return Subject(f"the factors of {data.name} as codes", factors, factors, names, names)


def show(title: str, comparison: Comparison) -> None:
    """Print what is measured before and after, and what it means."""
    screen = console()
    screen.print(f"[bold]{title}[/bold], {len(comparison.before):,} points", highlight=False)
    table = Listing("quantity", "needs labels?", "before", "after")
    for quantity, labels, before, after in comparison.table().itertuples(index=False, name=None):
        table.add_row(quantity, "yes" if labels else "no", f"{before:.4f}", f"{after:.4f}")
    screen.print(table)
    screen.print(
        "The distance of marginals is that of Kolmogorov and Smirnov; two samples of one law are less than "
        f"{comparison.chance:.3f} apart in 95 of 100 cases.",
        style="dim",
        highlight=False,
    )
