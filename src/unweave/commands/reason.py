"""`unweave reason`: how quickly a network learns to solve matrices from the codes of runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unweave.commands.console import console, progress, say
from unweave.errors import UnweaveError
from unweave.layout import STUDY_FILE

if TYPE_CHECKING:
    from unweave.reasoning import Reasoning

SHOWN = 4  # checks in the table, which fits a terminal
INTERVAL = "95% interval"  # of the last accuracy
AGAIN = "run the same command again. It keeps complete results; other runs start from the beginning."


def reason_runs(
    *subjects: Path,
    steps: int = 100_000,
    batch: int = 32,
    learning_rate: float = 1e-3,
    edge: str = "512,512,512,512",
    graph: str = "256,256",
    dropout: float = 0.5,
    alternatives: Literal["hard", "easy"] = "hard",
    relations: Literal["mixed", "1", "2", "3"] = "mixed",
    levels: int | None = None,
    tests: int = 10_000,
    seed: int = 0,
    csv: Path | None = None,
    device: str = "auto",
    data: str | None = None,
    data_root: Path | None = None,
) -> None:
    """Train a network to solve Raven-like matrices from the codes of runs, and measure how quickly it learns.

    Results are stored in the folders of the runs and not computed again.

    Parameters
    ----------
    subjects
        Folders of runs, folders of studies, or trained models (zoo:NAME, see `unweave zoo list`).
    steps
        Number of training steps.
    batch
        Number of matrices of a step.
    learning_rate
        Learning rate of Adam.
    edge
        Widths of the layers that compare two panels, separated by commas.
    graph
        Widths of the layers that score an answer, separated by commas.
    dropout
        Share of the last hidden units that are dropped.
    alternatives
        Wrong answers: hard ones are close to the right answer, easy ones are random.
    relations
        Number of factors that are constant in each row; mixed means 1 to 3.
    levels
        The most values that a factor has in the matrices; fewer values mean fewer images to encode.
    tests
        Number of held-out matrices that the accuracy is measured on.
    seed
        Seed of the matrices, of the initial weights and of dropout.
    csv
        Also write the accuracies with their 95% intervals to this file.
    device
        Device that encodes and trains: auto, cpu, cuda or cuda:1.
    data
        The new path of your own data, if it has moved since the runs were trained.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.commands.command_app import check_device, check_output

    if not subjects:
        raise UnweaveError("unweave reason needs the folder of a run or of a study.")
    check_device(device)
    check_output(csv)
    # Here, because torch takes seconds to import.
    from unweave.reasoning import ReasoningSpec, reason

    spec = ReasoningSpec(
        steps=steps,
        batch=batch,
        learning_rate=learning_rate,
        edge=_widths("--edge", edge),
        graph=_widths("--graph", graph),
        dropout=dropout,
        alternatives=alternatives,
        relations=relations,
        levels=levels,
        tests=tests,
        seed=seed,
    )
    try:
        with progress("reasoning") as tell:
            result = reason(list(subjects), spec, data=data, device=device, data_root=data_root, tell=tell)
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"{str(stop) or 'stopped'}: {AGAIN}\n")
        sys.exit(130)
    show(result)
    if csv is not None:
        result.frame().to_csv(csv, index=False)
        print(f"-> {csv}")
    for study in (path for path in subjects if (path / STUDY_FILE).exists()):
        say(f"in the report: unweave study collect {study}, then unweave report {study}")


def show(result: Reasoning) -> None:
    """Print the accuracy of each run at some of the checks."""
    from rich.markup import escape

    from unweave.commands.listing import Listing
    from unweave.reasoning.curves import CHANCE

    counts = _spaced(sorted({check.matrices for curve in result.curves for check in curve.checks}))
    table = Listing(*(f"{count:,}" for count in counts), INTERVAL, "run", below="run", whole=(INTERVAL,))
    for curve in result.curves:
        accuracies = {check.matrices: f"{check.accuracy:.3f}" for check in curve.checks}
        low, high = curve.checks[-1].interval
        cells = (accuracies.get(count, "") for count in counts)
        table.add_row(*cells, f"{low:.3f} to {high:.3f}", escape(curve.subject))
    screen = console()
    screen.print("[bold]Accuracy[/bold] on held-out matrices, by the number of training matrices")
    screen.print(table)
    screen.print(f"chance: {CHANCE:.3f}", style="dim", highlight=False)
    for note in result.notes:
        sys.stderr.write(f"unweave: {note}\n")


def _spaced(counts: Sequence[int]) -> list[int]:
    """At most four numbers of matrices from the first to the last."""
    if len(counts) <= SHOWN:
        return list(counts)
    return [counts[round(i * (len(counts) - 1) / (SHOWN - 1))] for i in range(SHOWN)]


def _widths(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UnweaveError(f'{option} takes widths such as 512,512; got "{text}".') from None
