"""`unweave compare`: differences of the scores of two runs on the same points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unweave.commands.command_app import check_output
from unweave.commands.console import console, progress
from unweave.errors import UnweaveError
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.evaluation import Comparison


def compare_runs(
    a: Path,
    b: Path,
    /,
    *,
    metrics: str = "headline",
    representation: Literal["mean", "sampled"] = "mean",
    repeats: int = 20,
    seed: int = 0,
    points: Annotated[tuple[int, int], Parameter(negative=())] = (10_000, 5_000),
    csv: Path | None = None,
    device: str = "auto",
    data: str | None = None,
    data_root: Path | None = None,
) -> None:
    """Compare two runs on the same points: differences of scores with 95% intervals, and verdicts.

    Parameters
    ----------
    a
        Folder of the first run.
    b
        Folder of the second run.
    metrics
        Names separated by commas, or quick, headline, study or all. See `unweave metrics list`.
    representation
        Codes to measure: means of q(z|x), or samples from it.
    repeats
        Number of further measurements for the intervals.
    seed
        Seed of the points and of everything else that is random.
    points
        Number of points to train on and to test on.
    csv
        Also write the table to this file.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data
        The data set to compare on, if not that of the runs: a name, or the path of your own.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.data.opening import open_data
    from unweave.evaluation import compare
    from unweave.metrics.lookup import metrics_named
    from unweave.runs.run import load

    metrics_named(metrics)  # a wrong name is an error before anything takes time
    check_output(csv)
    a, b = run_path(a), run_path(b)
    for path in (a, b):
        if not path.is_dir():
            raise UnweaveError(f"there is no folder {path}. Give the folders of two runs.")
    runs = [load(path, device, data_root) for path in (a, b)]
    with progress(f"comparing {a.name} and {b.name}") as tell:
        comparison = compare(
            *runs,
            data=None if data is None else open_data(data, data_root),
            metrics=metrics,
            representation=representation,
            points=points,
            repeats=repeats,
            seed=seed,
            tell=tell,
        )
    show(comparison)
    if csv is not None:
        comparison.table().to_csv(csv, index=False)
        print(f"-> {csv}")


def show(comparison: Comparison) -> None:
    """Print a comparison as a table."""
    from rich.markup import escape

    from unweave.commands.listing import Listing

    screen = console()
    screen.print(f"[bold]a[/bold]: {escape(comparison.a)}")
    screen.print(f"[bold]b[/bold]: {escape(comparison.b)}")
    table = Listing(*comparison.columns, whole=("verdict",))
    for row in comparison.rows():
        table.add_row(*row)
    screen.print(table)
    for note in comparison.notes:
        screen.print(escape(note), style="dim")
