"""`unweave migrate`: results and settings of other tools, as those of unweave."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from unweave.commands.command_app import TABLE, check_output
from unweave.commands.console import print_problem, say, say_next, working
from unweave.errors import UnweaveError

if TYPE_CHECKING:
    from unweave.runs.spec import RunSpec

GIN = ".gin"
SUBJECTS = {  # by tool
    "disentanglement_lib": "folders, aggregated JSON files, or one .gin file",
    "disentangling_vae": "its folder results/, or folders of models in it",
}
STATED = ("data", "seed", "steps")  # options of a training command that are always shown


def migrate(
    tool: Literal["disentanglement_lib", "disentangling_vae"],
    *subjects: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("results.parquet"),
) -> None:
    """Read results of another tool into a table for `unweave report`, or turn its settings into a command.

    Parameters
    ----------
    tool
        The tool: disentanglement_lib or disentangling_vae.
    subjects
        Folders with its results, at any depth. Of disentanglement_lib also aggregated JSON files, or a .gin
        file of a training, such as results/gin/train.gin: the command that trains the same model is printed.
    output
        The table of results (.parquet or .csv).
    """
    if not subjects:
        raise UnweaveError(f"name the results of {tool}: {SUBJECTS[tool]}.")
    if tool == "disentanglement_lib" and any(path.suffix == GIN for path in subjects):
        for path in subjects:
            _print_command(path)
        return
    check_output(output, TABLE)
    _write_results(tool, subjects, output)


def _write_results(tool: str, subjects: tuple[Path, ...], output: Path) -> None:
    # Here, because torch takes seconds to import.
    from unweave.migration import read_disentanglement_lib, read_disentangling_vae
    from unweave.study.table import write_table

    read = read_disentangling_vae if tool == "disentangling_vae" else read_disentanglement_lib
    with working("reading results"):
        results = read(*subjects)
    for note in results.notes:
        print_problem(note)
    write_table(results.table, output)
    runs, scores = results.table["run"].nunique(), len(results.table)
    say(f"{runs:,} runs, {scores:,} scores")
    print(f"-> {output}")
    say_next([("report on them", f"unweave report {shlex.quote(str(output))}")])


def _print_command(path: Path) -> None:
    from unweave.migration import run_spec_from_gin

    print(train_command(run_spec_from_gin(path)))


def train_command(spec: RunSpec) -> str:
    """The command that trains a run: strength, data, seed and steps, and what else is not a default."""
    from unweave.methods import settings_of

    method = type(spec.method)
    usual = settings_of(method())
    given = settings_of(spec.method)
    settings = {k: value for k, value in given.items() if k == method.strength or value != usual[k]}
    fields = {f.name: f.default for f in dataclasses.fields(spec) if f.name not in ("method", "plugins")}
    options = {name: getattr(spec, name) for name in fields}
    shown = {name: value for name, value in options.items() if name in STATED or value != fields[name]}
    words = [word for name, value in (settings | shown).items() for word in _option(name, value)]
    return shlex.join(["unweave", "train", method.name, *words])


def _option(name: str, value: Any) -> list[str]:
    flag = name.strip("_").replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", f"{value:g}" if isinstance(value, float) else str(value)]
