"""Train the models of the zoo, choose one seed of each, and write their folders.

    python zoo/make.py train RUNS              # five seeds of each model
    python zoo/make.py measure RUNS --jobs 8   # the scores of all of them
    python zoo/make.py write RUNS --csv all.csv

Run these commands in the root of the repository. RUNS is a folder for all runs. Each command continues where
it was stopped.

On one NVIDIA H200 with 16 cores, training and measuring the 40 runs of the first eight models took 17
minutes. Six `train` commands ran at the same time, with NVIDIA's multi-process service, because small
populations do not fill this GPU:

    python zoo/make.py train RUNS --only beta_vae-4 beta_vae-16 beta_tcvae-10 &
    python zoo/make.py train RUNS --only factor_vae-50 &   # and one for each of the other models

`--only` trains, measures or writes some of the models. What the folder has of other models stays as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from PIL import Image

import unweave
from unweave.data import load as load_data
from unweave.errors import UnweaveError
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.score_store import all_kept, evaluate_run, kept_scores
from unweave.files import write_text
from unweave.layout import PICTURES_FOLDER, SWAPS_FILE, TRAVERSALS_FILE
from unweave.methods import (
    MLVAE,
    AdaGVAE,
    BetaTCVAE,
    BetaVAE,
    FactorVAE,
    InfoGANCR,
    Method,
    S2BetaTCVAE,
    settings_of,
)
from unweave.results import check_table, combine, wide
from unweave.runs.gallery import draw_pictures
from unweave.runs.run import Run, folder_name
from unweave.runs.spec import RunSpec, spec_of
from unweave.runs.store import RunFolder, write_tensors
from unweave.selection import Candidate, Selection, select
from unweave.selection.codes import IMAGES, drawn_images
from unweave.training.trainer import Plan, Report, default_precision, train_runs


@dataclass(frozen=True)
class Model:
    """A model of the zoo: the name of its folder, and what is trained."""

    name: str
    method: Method
    data: str = "dsprites"
    steps: int = 300_000
    latents: int = 10
    published: bool = True  # False: its scores are recorded, but its weights would make the zoo too large


MODELS = (
    Model("beta_vae-4", BetaVAE(beta=4.0), published=False),
    Model("beta_vae-16", BetaVAE(beta=16.0)),
    Model("beta_tcvae-10", BetaTCVAE(beta=10.0)),
    Model("factor_vae-50", FactorVAE(gamma=50.0), steps=150_000),
    Model("ada_gvae-1", AdaGVAE(beta=1.0, changed=1), steps=100_000),
    Model("s2_beta_tcvae-6", S2BetaTCVAE()),
    Model("rooms-beta_tcvae-10", BetaTCVAE(beta=10.0), "rooms"),
    Model("rooms-ada_gvae-1", AdaGVAE(beta=1.0, changed=1), "rooms", 100_000, published=False),
    Model("info_gan_cr-2", InfoGANCR(alpha=2.0), steps=322_560, latents=5),
    Model("glyphs-ml_vae-1", MLVAE(beta=1.0), "glyphs", 100_000),
)
SEEDS = range(5)
METRICS = ("headline",)
BLOCK_METRICS = ("headline", "blocks")  # of a method whose code has two parts, such as content and style
CHOOSER, CHOSEN_BY = "centrality", "model_centrality"  # among the seeds of a setting, without labels
SHOWN = {"mig": "MIG", "dci.disentanglement": "DCI", "factor_vae_score.eval_accuracy": "FactorVAE score"}
BLOCKS_SHOWN = {
    "block_separation": "block separation",
    "swap_consistency": "swap consistency",
    "block_mig": "block-MIG",
}
COPIED = ("spec.json", "result.json", "log.jsonl")
CHECKSUMS = "checksums.txt"
TABLE_HEAD = f"| name | data | method | steps | seed | {' | '.join(SHOWN.values())} |"
BLOCKS_HEAD = f"| name | {' | '.join(BLOCKS_SHOWN.values())} |"
CARD = """
## In the zoo

Chosen without labels among {seeds} seeds: the one with the highest ModelCentrality ({score:.3f}). The
weights are those of the networks that encode and decode, rounded to float16. The scores in `scores.json` were
measured with these weights.
"""


def specs_of(model: Model, seeds: Iterable[int], steps: int | None, device: str) -> list[RunSpec]:
    """The runs to train for a model: one for each seed."""
    fields = {"data": model.data, "steps": steps or model.steps, "latents": model.latents}
    precision = default_precision(device, model.method)
    return [spec_of(model.method, seed=seed, precision=precision, **fields) for seed in seeds]


def train(
    runs: Path, models: Sequence[Model], seeds: Iterable[int], steps: int | None, device: str
) -> list[RunFolder]:
    """Train all seeds of the models, those on the same data together where their batches are alike."""
    seeds, folders = list(seeds), []
    for data in dict.fromkeys(model.data for model in models):
        specs = [
            spec for model in models if model.data == data for spec in specs_of(model, seeds, steps, device)
        ]
        plan = Plan(device, log_every=3_000, checkpoint_every=30_000)
        paths = [runs / folder_name(spec) for spec in specs]
        folders += train_runs(specs, load_data(data), paths, plan, report_progress)
    return folders


def report_progress(report: Report) -> None:
    """Print how far a population is."""
    rate = len(report.runs) * report.step / max(report.seconds, 1e-9)
    say(
        f"{len(report.runs)} runs, step {report.step:,} of {report.steps:,}, {report.seconds:.0f} s, "
        f"{rate:,.0f} model-steps/s since the start"
    )


def measure(paths: Sequence[Path], jobs: int, device: str) -> None:
    """Measure finished runs, several at a time; each keeps its scores in its folder."""
    effort = Effort()
    left = [p for p in paths if not all_kept(RunFolder(p), metrics_of(p), ["mean"], effort)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for path, seconds in zip(left, pool.map(measure_run, left, repeat(device)), strict=True):
            say(f"{path.name}: measured in {seconds:.0f} s")


def measure_run(path: Path, device: str) -> float:
    """Measure one run; return how many seconds it took."""
    torch.set_num_threads(1)
    start = time.monotonic()
    evaluate_run(unweave.load(path, device), metrics_of(path), effort=Effort(jobs=1))
    return time.monotonic() - start


def metrics_of(path: Path) -> tuple[str, ...]:
    """The metrics of a run: those of blocks too, if its method splits the code into content and style."""
    spec = RunFolder(path).spec
    return BLOCK_METRICS if "content" in spec.method.code_blocks(spec.latents) else METRICS


def finished(runs: Path) -> list[Path]:
    """The folders of the runs that are trained."""
    folders = [RunFolder(spec.parent) for spec in sorted(runs.glob("*/spec.json"))]
    return [folder.path for folder in folders if (folder.result or {}).get("outcome") == "finished"]


def seeds_of(model: Model, selections: Mapping[str, Selection]) -> list[tuple[Candidate, float]]:
    """The runs of a model and how well each agrees with the others, the best one first."""
    if model.data not in selections:
        return []
    ranking = selections[model.data].ranking(CHOSEN_BY)
    return [(run, score) for run, score in ranking if run.spec.method == model.method]


def select_all(runs: Path, device: str) -> dict[str, Selection]:
    """Compare the seeds of each setting; by data set."""
    sets = {RunFolder(path).spec.data for path in finished(runs)}
    return {data: select(runs, by=[CHOOSER], data=data, device=device) for data in sorted(sets)}


def write(runs: Path, zoo: Path, models: Sequence[Model], jobs: int, device: str) -> None:
    """Write the folder of each model, the table in README.md and the checksums."""
    selections = select_all(runs, device)
    seeds = {model: seeds_of(model, selections) for model in models}
    if missing := [model.name for model in models if not seeds[model]]:
        raise UnweaveError(
            f"{runs} has no finished runs of {', '.join(missing)}. Train them first, or leave them out with "
            "--only."
        )
    for model, ranking in seeds.items():
        write_model(zoo / model.name, ranking)
    measure([zoo / model.name for model in models], jobs, device)
    for model, ranking in seeds.items():
        (zoo / model.name / "scores.lock").unlink(missing_ok=True)
        say(f"{model.name}: {effect_of_rounding(Run(ranking[0][0].folder), unweave.load(zoo / model.name))}")
    tables = [selection.candidates.scores() for selection in selections.values()]
    write_readme(zoo / "README.md", seeds, wide(combine(*map(check_table, tables)).table))
    write_checksums(zoo)


def write_model(target: Path, ranking: Sequence[tuple[Candidate, float]]) -> None:
    """Copy the chosen run, its weights in float16, and draw its traversals."""
    chosen, score = ranking[0]
    source, before = chosen.folder, weights_of(target)
    target.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copyfile(source.path / name, target / name)
    # A discriminator is not needed to encode or decode, and is larger than both networks.
    networks = tuple(f"{name}." for name in Run(source).networks)
    weights = {name: tensor.half() for name, tensor in source.weights().items() if name.startswith(networks)}
    write_tensors(target / "weights.safetensors", weights)
    if weights_of(target) != before:
        (target / "scores.json").unlink(missing_ok=True)  # those of other weights
    card = (source.path / "card.md").read_text()
    write_text(target / "card.md", card + CARD.format(seeds=len(ranking), score=score))
    draw_small_pictures(target)


def weights_of(target: Path) -> bytes:
    """The content of the file of weights; empty if there is none."""
    path = target / "weights.safetensors"
    return path.read_bytes() if path.exists() else b""


def draw_small_pictures(target: Path) -> None:
    """Write the traversals, and the swaps if the model has any, at half their size and with a palette."""
    (target / PICTURES_FOLDER).mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / target.name
        shutil.copytree(target, copy, ignore=shutil.ignore_patterns(PICTURES_FOLDER))
        for path in draw_pictures(unweave.load(copy)):
            if path.name in (TRAVERSALS_FILE, SWAPS_FILE):
                shrink(path, target / PICTURES_FOLDER / path.name)


def shrink(picture: Path, target: Path) -> None:
    """Write a picture at half its size and with a palette, so that the file is small."""
    with Image.open(picture) as sheet:
        half = sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.BOX)
    # This palette keeps rare colours, such as those of one row of the sheet.
    small = half.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    small.save(target, optimize=True)


def effect_of_rounding(exact: Run, rounded: Run) -> str:
    """What rounding the weights changes: the codes of some images, and the scores."""
    images = drawn_images(exact.data, IMAGES)
    codes = exact.encode(images)
    change, spread = np.abs(rounded.encode(images) - codes).max(), codes.std()
    before, after = (scores_of(run.path) for run in (exact, rounded))
    scores = ", ".join(f"{title} {after[s] - before[s]:+.5f}" for s, title in SHOWN.items())
    return f"float16 changes codes by at most {change:.5f} (standard deviation {spread:.2f}), {scores}"


def scores_of(path: Path) -> dict[str, float]:
    """The scores of the mean codes in a run's folder."""
    return {score.name: score.value for record in kept_scores(RunFolder(path)) for score in record.scores}


def write_readme(
    path: Path, seeds: Mapping[Model, Sequence[tuple[Candidate, float]]], table: pd.DataFrame
) -> None:
    """Write the scores of models into the tables of README.md: of dimensions, and of blocks of codes."""
    rows, block_rows = {}, {}
    for model, ranking in seeds.items():
        spec, folder = ranking[0][0].spec, path.parent / model.name
        own, others = scores_of(folder), table[table["run"].isin([run.id for run, _ in ranking[1:]])]
        about = [spec.data, described(model.method), f"{spec.steps:,}", f"{spec.seed}"]
        rows[model.name] = about + score_cells(own, others, SHOWN)
        if metrics_of(folder) == BLOCK_METRICS:
            block_rows[model.name] = score_cells(own, others, BLOCKS_SHOWN)
    text = path.read_text() if path.exists() else ""
    for head, changed in ((TABLE_HEAD, rows), (BLOCKS_HEAD, block_rows)):
        text = with_rows(text, head, changed)
    write_text(path, text)


def with_rows(text: str, head: str, changed: Mapping[str, Sequence[str]]) -> str:
    """A text in which the table with this head has the changed rows too, in the order of MODELS.

    Rows of other models stay. A table that is not in the text is added at its end.
    """
    if not changed:
        return text
    before, _, rest = text.partition(head) if head in text else (f"{text}\n" if text else "", "", "")
    table, gap, after = rest.partition("\n\n")
    lines = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    lines |= {name: f"| `{name}` | {' | '.join(cells)} |" for name, cells in changed.items()}
    ordered = [lines[model.name] for model in MODELS if model.name in lines]
    rule = "|---" * (head.count("|") - 1) + "|"
    return before + "\n".join([head, rule, *ordered]) + (f"{gap}{after}" if after else "\n")


def score_cells(own: Mapping[str, float], others: pd.DataFrame, shown: Iterable[str]) -> list[str]:
    """Scores of a model and, in brackets, the range of its other seeds."""
    return [f"{own[s]:.3f} ({others[s].min():.3f} to {others[s].max():.3f})" for s in shown]


def described(method: Method) -> str:
    """A method with its strength, and with the settings that are not its defaults."""
    usual = settings_of(type(method)())
    shown = {k: v for k, v in settings_of(method).items() if k == method.strength or v != usual[k]}
    return f"`{method.name}`, {', '.join(f'{name} = {value:g}' for name, value in shown.items())}"


def write_checksums(zoo: Path) -> None:
    """Write the SHA-256 of each file of a model, in the format of sha256sum."""
    files = sorted(p for spec in zoo.glob("*/spec.json") for p in spec.parent.rglob("*") if p.is_file())
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(zoo).as_posix()}" for p in files]
    write_text(zoo / CHECKSUMS, "\n".join(lines) + "\n")


def write_record(runs: Path, path: Path, device: str) -> None:
    """Write the scores of all runs and their agreement, one row for each run."""
    tables = [t for s in select_all(runs, device).values() for t in (s.candidates.scores(), s.table)]
    wide(combine(*map(check_table, tables)).table).round(5).to_csv(path, index=False)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("train", "measure", "write"))
    parser.add_argument("runs", type=Path, help="the folder of all runs")
    parser.add_argument("--only", nargs="+", choices=[model.name for model in MODELS], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds to train")
    parser.add_argument("--steps", type=int, help="train fewer steps, to try this script")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs to measure at a time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--to", type=Path, default=Path("zoo"), help="the folder to write")
    parser.add_argument("--csv", type=Path, help="write the scores of all runs to this file")
    return parser.parse_args()


def main() -> None:
    """Do what the command line says."""
    given = arguments()
    wanted = given.only or [model.name for model in MODELS if model.published or given.command != "write"]
    models = [model for model in MODELS if model.name in wanted]
    if given.command == "train":
        train(given.runs, models, range(given.seeds), given.steps, given.device)
    elif given.command == "measure":
        measure(finished(given.runs), given.jobs, given.device)
    else:
        write(given.runs, given.to, models, given.jobs, given.device)
        if given.csv:
            write_record(given.runs, given.csv, given.device)


if __name__ == "__main__":
    try:
        main()
    except UnweaveError as error:
        sys.exit(str(error))
