"""`unweave evaluate`: scores of runs, or of codes in a file, printed and kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.commands.console import console, progress
from unweave.commands.listing import Listing
from unweave.errors import UnweaveError
from unweave.evaluation import Scores, evaluate
from unweave.evaluation.evaluate import nothing_measured
from unweave.layout import SPEC_FILE, runs_inside
from unweave.metrics.kinds import parse_kinds
from unweave.progress import Progress
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.evaluation.evaluate import Effort
    from unweave.evaluation.parts import Part


@dataclass(frozen=True)
class Options:
    """What is measured of each subject, and where its data is."""

    metrics: str
    representations: Sequence[str]
    effort: Effort
    device: str = "auto"
    data: str | None = None
    data_root: Path | None = None
    keep_codes: bool = False
    factors: Path | None = None
    kinds: str | None = None
    standardise: bool = False
    on: Part = "training"

    def refuse_for_run(self, path: Path) -> None:
        """Refuse options that do not apply to the folder of a run."""
        values = {"--factors": self.factors, "--kinds": self.kinds, "--standardise": self.standardise}
        for name, value in values.items():
            if value:
                raise UnweaveError(f"{name} belongs to a file of codes; {path} is the folder of a run.")

    def refuse_for_codes(self, path: Path) -> None:
        """Refuse options that do not apply to a file of codes, whose factors are in a file, too."""
        values = {"--on": self.on != "training", "--data": self.data, "--keep-codes": self.keep_codes}
        for name, value in values.items():
            if value:
                raise UnweaveError(f"{name} belongs to runs and encoders; {path} is a file of codes.")


def evaluate_subjects(subjects: Sequence[Path], options: Options) -> tuple[list[Scores], list[Path]]:
    """Measure and print each subject; returns all scores, and the subjects that could not be measured.

    One that cannot be measured does not stop the others: it is skipped with one sentence on standard error.
    """
    measured: list[Scores] = []
    skipped: list[Path] = []
    paths = runs_and_files(subjects)
    for path in paths:
        try:
            with progress(f"evaluating {path.name}") as tell:
                records, kept_in = _evaluate(path, options, tell)
        except (UnweaveError, OSError) as error:
            if len(paths) == 1:
                raise
            print(f"unweave: skipped {path}: {error}", file=sys.stderr)
            skipped.append(path)
            continue
        show(path, records)
        if kept_in is not None:
            print(f"-> {kept_in}")
        measured += records
    if not measured:
        raise UnweaveError(f"none of the {len(paths)} could be measured.")
    return measured, skipped


def runs_and_files(subjects: Sequence[Path]) -> list[Path]:
    """Folders of runs and files of codes; a folder of runs, or of a study, stands for all runs in it."""
    paths: list[Path] = []
    for path in map(run_path, subjects):
        if path.is_dir() and not (path / SPEC_FILE).exists():
            inside = runs_inside(path)
            if not inside:
                raise UnweaveError(f"{path} is not the folder of a run, and there is none in it.")
            paths += inside
        elif path.exists():
            paths.append(path)
        else:
            raise UnweaveError(f"there is no {path}. Give the folder of a run, or a file codes.npz.")
    return paths


def _evaluate(path: Path, options: Options, tell: Progress | None) -> tuple[list[Scores], Path | None]:
    """The scores of a run or file, and the file that they are kept in, if any."""
    if path.suffix.lower() == ".onnx":
        return evaluate_network(path, options, tell), None
    if path.suffix.lower() == ".safetensors":
        return evaluate_directions(path, options, tell), None
    if not path.is_dir():
        options.refuse_for_codes(path)
        return evaluate_file(path, options, tell), None
    options.refuse_for_run(path)
    return evaluate_folder(path, options, tell)


def evaluate_file(path: Path, options: Options, tell: Progress | None = None) -> list[Scores]:
    """Scores of the codes and factors in a file, or in two files."""
    from unweave.evaluation.files import read_codes_and_factors

    arrays, effort = read_codes_and_factors(path, options.factors), options.effort
    test = (arrays["test_codes"], arrays["test_factors"]) if "test_codes" in arrays else None
    return [
        evaluate(
            arrays["codes"],
            arrays["factors"],
            log_var=arrays.get("log_var"),
            test=test,
            kinds=parse_kinds(options.kinds),
            standardise=options.standardise,
            metrics=options.metrics,
            representation=representation,
            points=effort.points,
            repeats=effort.repeats,
            seed=effort.seed,
            tell=tell,
        )
        for representation in options.representations
    ]


def evaluate_network(path: Path, options: Options, tell: Progress | None = None) -> list[Scores]:
    """Scores of the network in an ONNX file on a data set."""
    from unweave.data.opening import open_data

    if options.data is None:
        raise UnweaveError(f"{path} is an encoder and needs data to encode: add --data dsprites.")
    data = open_data(options.data, options.data_root)
    device = None if options.device == "auto" else options.device
    return _evaluate_encoder(path, options, tell, data=data, device=device, standardise=options.standardise)


def evaluate_directions(path: Path, options: Options, tell: Progress | None = None) -> list[Scores]:
    """Scores of a run or network, read along the directions in a file of `unweave directions`."""
    from unweave.directions import open_encoder

    encoder = open_encoder(path, data=options.data, data_root=options.data_root, device=options.device)
    return _evaluate_encoder(encoder, options, tell)


def _evaluate_encoder(encoder: Any, options: Options, tell: Progress | None, **how: Any) -> list[Scores]:
    effort = options.effort
    return [
        evaluate(
            encoder,
            on=options.on,
            metrics=options.metrics,
            representation=representation,
            points=effort.points,
            repeats=effort.repeats,
            seed=effort.seed,
            tell=tell,
            **how,
        )
        for representation in options.representations
    ]


def evaluate_folder(path: Path, options: Options, tell: Progress | None) -> tuple[list[Scores], Path | None]:
    """Scores of a run, and the file in its folder that they are kept in.

    If nothing can be written there, the reason is printed and the scores are returned all the same.
    """
    # Here, because torch takes seconds to import and files of codes need none of it.
    from unweave.evaluation.score_store import evaluate_run, scores_path
    from unweave.runs.run import load
    from unweave.runs.store import RunFolder

    if not RunFolder(path).ended:
        raise UnweaveError(
            f"the run in {path} is not finished. Run the command that trains it again: it goes on from the "
            "last checkpoint."
        )
    run = load(path, options.device, options.data_root, options.data)
    failures: list[UnweaveError] = []
    records = evaluate_run(
        run,
        options.metrics,
        options.representations,
        options.effort,
        on=options.on,
        keep=options.keep_codes,
        on_unwritable=failures.append,
        tell=tell,
    )
    if not any(records):
        raise nothing_measured(records[0].notes)
    for failure in failures:
        print(f"unweave: {failure}", file=sys.stderr)
    return records, None if failures else scores_path(run.folder, options.on)


def show(path: Path, records: Sequence[Scores]) -> None:
    """Print scores, what they cost and what they mean."""
    from rich.markup import escape

    screen = console()
    for record in records:
        train, test = record.points
        screen.print(f"[bold]{path}[/bold], {record.representation} codes, {train:,} + {test:,} points")
        columns = ["score", "value", "95% interval", "protocol"]
        repeated = any(score.low is not None for score in record.scores)
        table = Listing(*(columns if repeated else [*columns[:2], columns[3]]), below="protocol")
        for score in record.scores:
            interval = "" if score.low is None else f"{score.low:.4f} to {score.high:.4f}"
            cells = [score.name, f"{score.value:.4f}", interval, escape(score.protocol)]
            table.add_row(*(cells if repeated else [*cells[:2], cells[3]]))
        screen.print(table)
        for note in record.notes:
            screen.print(escape(note), style="dim")
        measuring = sum(seconds for name, seconds in record.seconds.items() if name != "encoding")
        encoding = record.seconds.get("encoding", 0.0)
        cost = f"{record.images:,} images encoded in {encoding:.1f} s; " if record.images else ""
        screen.print(f"{cost}metrics took {measuring:.1f} s, all together", style="dim")


def write(records: Sequence[Scores], path: Path) -> None:
    """Write scores as JSON atomically."""
    from unweave.files import write_text

    write_text(path, json.dumps([record.to_dict() for record in records], indent=1) + "\n")
