"""`unweave train METHOD`: one command a method, made from its settings."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, make_dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from cyclopts import App, Parameter, UnknownCommandError

from unweave.commands.command_app import command_app
from unweave.commands.console import (
    detail,
    is_quiet,
    print_problem,
    progress,
    resume_line,
    say,
    say_next,
    show_result,
    working,
)
from unweave.commands.training_presets import PRESETS
from unweave.commands.watch import watching
from unweave.data.opening import open_data
from unweave.data.own.abilities import counted_images
from unweave.data.own.sizing import Fit, Size, size_named
from unweave.display.progress import TrainingProgress, training_display
from unweave.errors import DiskFullError, UnweaveError, did_you_mean
from unweave.evaluation.score_store import evaluate_run
from unweave.methods import METHODS, method_named, plugin_methods, setting_help, settings_of, summary
from unweave.methods.method import Method, numeric_settings
from unweave.nn.layers.precision import Precision
from unweave.plugins.loading import failures_named, is_reference
from unweave.progress import no_progress
from unweave.runs.gallery import draw_missing_pictures
from unweave.runs.run import Run, folder_name
from unweave.runs.spec import RunSpec, method_with
from unweave.runs.store import RunFolder
from unweave.study import StudyFolder, StudySpec
from unweave.study.planner import plan_of, population_size
from unweave.study.spec import whole_numbers
from unweave.study.table import collect, write_table
from unweave.study.work import TrainAndScore
from unweave.training.batches import Data
from unweave.training.loggers.writer import LogWriter
from unweave.training.memory import train_what_fits
from unweave.training.trainer import Plan, Tell, default_precision, pick_device

SEVERAL = Parameter(negative=(), show_default=False)  # an option that may be given more than once


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What to train, besides the method's own settings."""

    data: str | None = None
    """The data set, as in `unweave data list`, or your own: a folder of pictures, or an .npz file.
    Default: dsprites."""
    image_size: str | None = None
    """Size of your own images, as 64 or 64x96 (height x width).
    Default: theirs, padded to multiples of 16; 64 where they are larger than 128."""
    fit: Fit | None = None
    """How your own images get their size: pad (black border), resize or crop.
    Default: pad, or resize with --image-size."""
    preset: str = "study"
    """Settings to start from: study (those of the published models), or quick (minutes on a CPU)."""
    seed: int | None = None
    """The seed of everything that is random. Default: 0."""
    seeds: str | None = None
    """Seeds of several runs that train together: 0-7, or 1,3,5."""
    sweep: Annotated[list[str], SEVERAL] = dataclasses.field(default_factory=list)
    """Several values of a setting, as in beta=1,2,4 or divergence=mmd,stein; may be given more than once."""
    steps: int | None = None
    """Updates of the networks. Default: 300,000 (study; half of it for factor_vae), 3,000 (quick)."""
    batch: int | None = None
    """Images in a batch. Default: 64."""
    latents: int | None = None
    """Dimensions of the code. Default: 10."""
    architecture: str | None = None
    """The networks: released, table2, mlp or resnet. Default: released."""
    likelihood: str | None = None
    """p(x|z): bernoulli, gaussian, gaussian_unit, gaussian_learned, laplace or continuous_bernoulli.
    Default: bernoulli."""
    learning_rate: float | None = None
    """Learning rate of the run's optimiser. Default: 1e-4 (study), 1e-3 (quick)."""
    player_rate: float | None = None
    """Factor on the learning rates of players that have their own, such as discriminators.
    Default: 1 (study), 10 (quick)."""
    optimiser: str | None = None
    """adam, adamw (with --weight-decay) or compact_adam (bf16 moments on a GPU). Default: adam."""
    weight_decay: float | None = None
    """Decoupled weight decay of adamw, such as 0.01. Default: 0."""
    schedule: str | None = None
    """How the learning rate changes: constant, linear or cosine."""
    warmup: float | None = None
    """Share of the steps over which the learning rate rises from 0, such as 0.05. Default: 0."""
    gradient_clip: float | None = None
    """The largest norm of a run's gradient. Default: none."""
    precision: Precision | None = None
    """Arithmetic of the networks: float32, tf32 or bf16. Default: bf16 on a GPU, float32 on a CPU."""
    out: Path = Path("runs")
    """Folder of the run folders."""
    device: str = "auto"
    """Device that trains: auto, cpu, cuda or cuda:1."""
    log_every: int = 100
    """Steps between two lines of the log."""
    checkpoint_every: int = 10_000
    """Steps between two checkpoints."""
    data_root: Path | None = None
    """Folder of the official files of data sets."""
    pictures: bool = True
    """Draw reconstructions and traversals at the end."""
    scores: bool = True
    """Measure the trained codes at the end (MIG, SAP, modularity, explicitness)."""
    watch: bool = False
    """Open a page in the browser that shows the losses while the runs train."""
    log_to: Annotated[list[str], SEVERAL] = dataclasses.field(default_factory=list)
    """Also send losses, scores and pictures to a tracker: tensorboard, wandb, mlflow or file.py:Name.
    The first three are extras of unweave. May be given more than once."""


def run_train(words: Sequence[str]) -> None:
    """Run `unweave train` with these words."""
    try:
        train_app(words[0] if words else None)(words, exit_on_error=False, print_error=False)
    except UnknownCommandError as error:  # methods are commands of this group
        message = str(error).replace("Unknown command", "there is no method")
        raise UnweaveError(message.replace("Available commands", "Methods")) from error


def train_app(method: str | None = None) -> App:
    """The commands of all methods; only that of a method if there is one of that name, which is faster."""
    app = command_app("unweave train", "Train a model, or several that share data and networks.")
    if method is not None and is_reference(method):
        kind = method_named(method)
        app.command(_command(kind), name=method, help=_help(kind))
        return app
    built_in = [kind for kind in METHODS if kind.name == method]
    for kind in built_in or (*METHODS, *plugin_methods(print_problem)):
        app.command(_command(kind), name=kind.name, help=_help(kind))
    return app


def _help(kind: type[Method]) -> str:
    """What a method is, and which options have other defaults with it."""
    values = {name: f"{v:g}" if isinstance(v, float) else v for name, v in kind.run_defaults.items()}
    own = [f"--{name.replace('_', '-')} {value}" for name, value in values.items()]
    return summary(kind) + (f"\n\nIts defaults, instead of those below: {', '.join(own)}." if own else "")


def _command(kind: type[Method]) -> Callable[..., None]:
    def command(*, settings: Any = None, options: Options | None = None) -> None:
        chosen = dataclasses.asdict(settings) if settings is not None else {}
        changed = {name: value for name, value in chosen.items() if value is not None}
        used = options or Options()
        specs = specs_of(kind, changed, used)
        with failures_named(specs[0].plugins), watching(used.out) if used.watch else nullcontext():
            _train(specs, used)

    def without_settings(*, options: Options | None = None) -> None:
        command(options=options)

    if not dataclasses.fields(kind):
        return without_settings
    command.__annotations__ = {
        "settings": _settings_class(kind) | None,
        "options": Options | None,
        "return": None,
    }
    return command


def _settings_class(kind: type[Method]) -> Any:
    """The method's settings as a dataclass of what may be given; its numbers are floats."""
    hints, numbers, texts = get_type_hints(kind), numeric_settings(kind), setting_help(kind)
    fields: list[tuple[str, Any, None]] = []
    for f in dataclasses.fields(kind):
        type_here = float if f.name in numbers else hints[f.name]
        default = f"{f.default:g}" if isinstance(f.default, float) else f.default
        help_here = Parameter(help=f"{texts[f.name]} Default: {default}.".strip())
        fields.append((f.name, Annotated[type_here | None, help_here], None))
    made = make_dataclass(f"{kind.__name__}Settings", fields, frozen=True)
    made.__module__ = __name__  # else it would be "types", and cyclopts would take it for a builtin
    return Parameter(name="*")(made)


def specs_of(kind: type[Method], changed: dict[str, Any], options: Options) -> list[RunSpec]:
    """One spec for each combination of swept values and seeds."""
    if options.preset not in PRESETS:
        raise UnweaveError(f'there is no preset "{options.preset}". {did_you_mean(options.preset, PRESETS)}')
    if options.seed is not None and options.seeds is not None:
        raise UnweaveError("give either --seed or --seeds, not both.")
    preset = PRESETS[options.preset]
    shared = preset.run_fields(kind())
    settings = preset.settings.get(kind.name, {}) | changed
    for f in dataclasses.fields(RunSpec):
        if f.name not in ("method", "seed", "plugins") and getattr(options, f.name) is not None:
            shared[f.name] = getattr(options, f.name)
    shared.setdefault("precision", default_precision(options.device, kind()))
    seeds = [options.seed or 0] if options.seeds is None else whole_numbers(options.seeds)
    swept: dict[str, list[Any]] = {}
    for text in options.sweep:
        name, values = _sweep(kind, text)
        if name in changed:
            option = name.rstrip("_").replace("_", "-")
            raise UnweaveError(f"give either --{option} or --sweep {option}=..., not both.")
        if name in swept:
            raise UnweaveError(f"--sweep {name} was given twice. Give all values at once: {name}=1,2,4.")
        swept[name] = values
    specs: list[RunSpec] = []
    for combination in product(*swept.values()):
        chosen = settings | dict(zip(swept, combination, strict=True))
        method = method_with(kind, chosen)
        specs += [RunSpec(method, seed=seed, **shared) for seed in seeds]
    return list(dict.fromkeys(specs))


def _sweep(kind: type[Method], text: str) -> tuple[str, list[Any]]:
    """A setting and its values: numbers, and words where the setting is a choice."""
    name, _, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if f"{name}_" in {field.name for field in dataclasses.fields(kind)}:  # a keyword, such as lambda
        name += "_"
    whole = name not in numeric_settings(kind)  # a number that is no weight is a count
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        words = [value.strip() for value in values.split(",")]
        if not whole or not all(words):
            raise UnweaveError(
                f'a sweep is a setting and its values, as in beta=1,2,4; got "{text}".'
            ) from None
        return name, words
    return name, [int(value) if whole and value.is_integer() else value for value in numbers]


def _train(specs: Sequence[RunSpec], options: Options) -> None:
    data = _open(specs[0].data, options)
    specs = [dataclasses.replace(spec, data=data.name) for spec in specs]
    folders = [options.out / folder_name(spec) for spec in specs]
    device = pick_device(options.device)
    if options.out.is_file():
        raise UnweaveError(f"{options.out} is a file. Name a folder for the runs with --out.")
    _announce(specs, folders, options.out)
    if data.reference:
        shape = " x ".join(map(str, data.shape))
        say(f"{data.name}: {counted_images(data)} of {shape}. {data.card.note}".rstrip())
    detail(f"device {device}, data {data.source}")
    for spec in specs:
        detail(f"{spec.id}: {spec}")
    try:
        with LogWriter(options.log_to, _runs_by_id(specs, folders), print_problem) as logs:
            trained = _train_all(specs, data, folders, options, logs)
            for spec, folder in zip(specs, trained, strict=True):
                logs.finish(spec.id, _finish(spec, Run(folder, data=data), options))
    except KeyboardInterrupt as stop:
        sys.stderr.write(resume_line(stop))
        sys.exit(130)
    if _is_study(specs, options):
        print(f"-> {StudyFolder(options.out).table}")
    say_next(_next_commands(trained, options.out, _is_study(specs, options)))


def _open(name: str, options: Options) -> Data:
    """The data set of the runs; the first reading of a user's data takes a while."""
    size: Size = "auto" if options.image_size is None else size_named(options.image_size)
    with progress(f"reading {name}") as tell:
        return open_data(name, options.data_root, size=size, fit=options.fit, progress=tell)


def _is_study(specs: Sequence[RunSpec], options: Options) -> bool:
    """Whether the runs and their scores become a study in the folder of the runs."""
    return len(specs) > 1 and options.scores


def _train_all(
    specs: Sequence[RunSpec], data: Data, folders: Sequence[Path], options: Options, logs: LogWriter
) -> list[RunFolder]:
    """Train the runs, and show how far they are; several runs are measured and drawn at once."""
    state = _state_of(specs, folders)
    with ExitStack() as stack:
        tell: Tell = state.update
        if state.complete:
            stack.enter_context(working("measuring"))
        elif not is_quiet():
            tell = stack.enter_context(training_display(state))
        tell = logs.after(tell)
        if _is_study(specs, options):
            return _train_study(specs, data, options, state, tell)
        plan = Plan(options.device, options.log_every, options.checkpoint_every)
        return train_what_fits(specs, data, folders, plan, tell)


def _runs_by_id(specs: Sequence[RunSpec], folders: Sequence[Path]) -> dict[str, tuple[RunSpec, Path]]:
    return {spec.id: (spec, folder) for spec, folder in zip(specs, folders, strict=True)}


def _state_of(specs: Sequence[RunSpec], folders: Sequence[Path]) -> TrainingProgress:
    """How far the runs are before this command does anything."""
    starts = {}
    for spec, path in zip(specs, folders, strict=True):
        folder = RunFolder(path)
        starts[spec.id] = spec.steps if folder.result is not None else folder.newest_checkpoint
    return TrainingProgress({spec.id: spec.steps for spec in specs}, starts)


def _finish(spec: RunSpec, run: Run, options: Options) -> Mapping[str, float]:
    """Draw and measure a run as far as that is not done, print the results and return the scores."""
    scores: Mapping[str, float] = {}
    finished = run.result["outcome"] == "finished"
    terms = [f"{name} {value:.4g}" for name, value in run.result["terms"].items() if value is not None]
    outcome = f"{run.result['outcome']} after {run.result['steps']:,} steps"
    show_result(f"{_name(spec)}: {outcome}: {', '.join(terms)}")
    if options.pictures and finished:
        with working("drawing pictures"):
            draw_missing_pictures(run)
    if options.scores and finished:
        with progress("measuring") as tell:
            [measured] = evaluate_run(run, "quick", tell=tell)
        scores = measured
        values = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
        show_result(values or " ".join(measured.notes), indent="  ")
    print(f"-> {run.path}", flush=True)
    return scores


def _next_commands(folders: Sequence[RunFolder], out: Path, study: bool) -> list[tuple[str, str]]:
    """What can be done with the trained runs: with one of them, or with the study that several are."""
    usable = [folder for folder in folders if (folder.result or {}).get("outcome") == "finished"]
    if not usable:
        return []
    run, runs = shlex.quote(str(usable[0].path)), shlex.quote(str(out))
    if study:
        return [
            ("compare the runs in a browser", f"unweave explore {runs}"),
            ("make a report of all scores", f"unweave report {runs}"),
            ("choose runs without labels", f"unweave select {runs}"),
        ]
    return [
        ("move its latents in a browser", f"unweave explore {run}"),
        ("measure more", f"unweave evaluate {run} --metrics study"),
    ]


def _train_study(
    specs: Sequence[RunSpec], data: Data, options: Options, state: TrainingProgress, tell: Tell
) -> list[RunFolder]:
    """Train, measure and draw several runs, one population after another; their folder becomes a study."""
    own = (data.reference,) if data.reference else ()
    spec = StudySpec("sweeps", tuple(specs), "quick", ("mean",), pictures=options.pictures, references=own)
    study = StudyFolder.create(options.out, spec, runs_in=".")
    wanted = {run.id for run in specs}
    work = TrainAndScore(
        options.device, options.data_root, options.checkpoint_every, options.log_every, tell=tell
    )
    failures = []
    # Earlier sweeps into the same folder may be unfinished: this command trains its own units only.
    for unit in plan_of(study, population_size(pick_device(options.device))):
        if wanted.isdisjoint(unit.runs):
            continue
        work.train(study, unit, no_progress)
        for run_id in unit.runs:
            state.do(f"measuring and drawing run {run_id}")
            try:
                work.evaluate(study, run_id, no_progress)
            except DiskFullError:
                raise
            except UnweaveError as error:
                failures.append(error)
    state.do("")
    if failures:
        count = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        raise UnweaveError(f"{count} cannot be measured, the first because: {failures[0]}")
    frame, _ = collect(study)
    write_table(frame, study.table)
    return [study.run_folder(spec.id) for spec in specs]


def _announce(specs: Sequence[RunSpec], folders: Sequence[Path], out: Path) -> None:
    spec = specs[0]
    runs = "1 run" if len(specs) == 1 else f"{len(specs)} runs"
    say(f"{runs} of {spec.method.name} on {spec.data}, {spec.steps:,} steps, into {out}/")
    if done := sum(RunFolder(folder).result is not None for folder in folders):
        say(f"{done} already done: nothing is trained twice.")


def _name(spec: RunSpec) -> str:
    numbers = {name: v for name, v in settings_of(spec.method).items() if isinstance(v, float)}
    settings = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
    return f"{spec.method.name}{f' ({settings})' if settings else ''}, seed {spec.seed}"
