"""The unweave command. Each command imports what it needs when it runs, so that --help answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unweave import __version__
from unweave.commands.command_app import (
    PICTURE,
    TABLE,
    check_device,
    check_output,
    command_app,
    run_command_line,
)
from unweave.commands.compare import compare_runs
from unweave.commands.console import progress, say
from unweave.commands.data import data_app
from unweave.commands.directions import directions
from unweave.commands.downstream import downstream_run
from unweave.commands.migrate import migrate
from unweave.commands.parts import architectures_app, likelihoods_app, methods_app
from unweave.commands.reason import reason_runs
from unweave.commands.zoo import zoo_app
from unweave.errors import UnweaveError
from unweave.layout import RESULTS_FILE

app = command_app("unweave", "Learn, measure and compare disentangled representations.", __version__)
for parts in (data_app, methods_app, architectures_app, likelihoods_app, zoo_app, migrate, directions):
    app.command(parts)
app.command(compare_runs, name="compare")
app.command(downstream_run, name="downstream")
app.command(reason_runs, name="reason")


@app.command(help_flags=[])
def train(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> None:
    """Train a model: `unweave train METHOD`; `unweave train --help` lists the methods."""
    from unweave.commands.train import run_train

    run_train(tokens)


@app.command(name="evaluate")
def evaluate_codes(
    *subjects: Path,
    metrics: str = "headline",
    representation: Literal["mean", "sampled", "both"] = "mean",
    repeats: int = 0,
    seed: int = 0,
    points: Annotated[tuple[int, int], Parameter(negative=())] = (10_000, 5_000),
    factors: Path | None = None,
    kinds: str | None = None,
    standardise: bool = False,
    keep_codes: bool = False,
    json: Path | None = None,
    plot: Path | None = None,
    device: str = "auto",
    data: str | None = None,
    data_root: Path | None = None,
    on: Literal["training", "all", "held_out"] = "training",
) -> None:
    """Measure runs, or codes in a file: `unweave evaluate RUN`, `unweave evaluate codes.npz`.

    Scores of a run are stored in its folder and not computed again.

    Parameters
    ----------
    subjects
        Folders of runs, folders of such folders, trained models (zoo:NAME, see `unweave zoo list`), or files
        of codes and factors: .npz with codes (n, d) and factors (n, k), or .csv, .tsv and .parquet with
        columns z0, z1, ... and a column for each factor. Or an encoder: an .onnx file, which encodes the
        data set `--data`, or a .safetensors file of `unweave directions`.
    metrics
        Names separated by commas, or quick, headline, study or all. See `unweave metrics list`.
    representation
        Codes to measure: means of q(z|x), samples from it, or both.
    repeats
        Number of further measurements, for 95% intervals; 20 is a good choice.
    seed
        Seed of the points and of everything else that is random.
    points
        Number of points to train on and to test on.
    factors
        File of the factors (.npy, .csv, .tsv, .parquet) of a file that holds codes only.
    kinds
        Kinds of factors, such as angle=circular:360,year=continuous. Default: inferred from the values.
    standardise
        Standardise codes for metrics that depend on their scale. Runs of methods without a prior always do.
    keep_codes
        Store the codes of all combinations of factors in the run's folder.
    json
        Also write the scores to this file.
    plot
        Draw the factor-latent matrix to this file.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data
        The data set that an .onnx file encodes: a name, or the path of your own. For a run: the new path of
        your own data, if it has moved since the run was trained.
    data_root
        Folder of the official files of data sets.
    on
        Part of data with a condition: what was trained on, all combinations, or what was held out.
    """
    from unweave.commands.evaluate import Options, evaluate_subjects, write
    from unweave.evaluation.evaluate import Effort
    from unweave.metrics.lookup import metrics_named

    if not subjects:
        raise UnweaveError("name what to evaluate: the folder of a run, or a file codes.npz.")
    metrics_named(metrics)  # a wrong name is an error before anything takes time
    check_output(json)
    check_output(plot, PICTURE)
    representations = ("mean", "sampled") if representation == "both" else (representation,)
    effort = Effort(points, repeats, seed)
    options = Options(
        metrics, representations, effort, device, data, data_root, keep_codes, factors, kinds, standardise, on
    )
    scores, skipped = evaluate_subjects(subjects, options)
    if json is not None:
        write(scores, json)
        print(f"-> {json}")
    if plot is not None:
        for i, record in enumerate(scores):
            target = plot if len(scores) == 1 else plot.with_stem(f"{plot.stem}-{i}")
            record.plot(target)
            print(f"-> {target}")
    if skipped:
        print(f"unweave: skipped {len(skipped)}: {', '.join(map(str, skipped))}", file=sys.stderr)
        sys.exit(1)


@app.command(help_flags=[])
def study(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> None:
    """Train and measure many runs: `unweave study plan | run | status | collect | retry | export`."""
    from unweave.commands.study import study_app

    study_app()(tokens, exit_on_error=False, print_error=False)


@app.command(help_flags=[])
def metrics(*tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> None:
    """List and explain metrics: `unweave metrics list`, `unweave metrics explain mig`."""
    from unweave.commands.metrics import metrics_app

    metrics_app()(tokens, exit_on_error=False, print_error=False)


@app.command
def impossibility(
    subject: str,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("impossibility.png"),
    metrics: str = "headline",
    mixing: Literal["reflection", "cosines"] = "reflection",
    representation: Literal["mean", "sampled"] = "sampled",
    points: Annotated[tuple[int, int], Parameter(negative=())] = (10_000, 5_000),
    seed: int = 0,
    device: str = "auto",
    data_root: Path | None = None,
) -> None:
    """Entangle codes without changing their distribution; compare scores with and without labels.

    Parameters
    ----------
    subject
        The folder of a run, or the name of a data set, whose factors serve as perfect codes.
    output
        The picture's file.
    metrics
        Names separated by commas, or quick, headline, study or all. See `unweave metrics list`.
    mixing
        How codes are mixed: by a reflection, as in the proof, or by cosines, which mix many codes more.
    representation
        Codes of a run: samples from q(z|x), which are closest to the prior, or its means.
    points
        Number of points to train on and to test on.
    seed
        Seed of the points and of everything else that is random.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.commands.impossibility import show, subject_named
    from unweave.evaluation.evaluate import Effort
    from unweave.impossibility import compare
    from unweave.metrics.lookup import metrics_named

    metrics_named(metrics)  # a wrong name is an error before anything takes time
    check_output(output, PICTURE)
    with progress(f"entangling {subject}") as tell:
        chosen = subject_named(subject, representation, Effort(points, seed=seed), device, data_root, tell)
        comparison = compare(
            chosen.codes,
            chosen.factors,
            mixing=mixing,
            metrics=metrics,
            points=points,
            code_names=chosen.code_names,
            factor_names=chosen.factor_names,
            seed=seed,
            tell=tell,
        )
    show(chosen.title, comparison)
    comparison.plot(output)
    print(f"-> {output}")


@app.command
def report(
    *subjects: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report"),
    published: Path | None = None,
    mapping: Path | None = None,
    representation: str = "mean",
    scores: str | None = None,
) -> None:
    """Write a report on tables of results: one page, its figures and its tables.

    Parameters
    ----------
    subjects
        Folders of studies, or tables of results (.parquet, .csv).
    output
        Folder of the report. Open index.html in it.
    published
        Folder of the published results (results_*.csv), to report on, alone or with the others.
    mapping
        TOML file with the meaning of each column, for tables of other tools.
    representation
        Codes whose scores are compared: mean or sampled.
    scores
        Metrics to compare, separated by commas. Default: the six of the study.
    """
    from unweave.commands.report import make_report

    chosen = [name.strip() for name in scores.split(",")] if scores else None
    with progress("report") as tell:
        page = make_report(
            subjects,
            output,
            published_folder=published,
            mapping=mapping,
            representation=representation,
            scores=chosen,
            progress=tell,
        )
    print(f"-> {page}")


@app.command
def select(
    study: Path,
    *,
    by: Literal["udr", "centrality", "both", "few_labels"] = "both",
    within: Literal["setting", "study"] = "setting",
    top: int = 10,
    metrics: str | None = None,
    images: int = 4000,
    labels: int = 100,
    labeller: Literal["perfect", "binned", "noisy", "permuted", "partial"] = "perfect",
    data: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    device: str = "auto",
    data_root: Path | None = None,
) -> None:
    """Choose runs: those that agree best with other runs (UDR, ModelCentrality), or the best by a few labels.

    Codes and comparisons are stored, so a stopped command resumes and a second one answers at once.

    Parameters
    ----------
    study
        The folder of a study, or a folder of runs.
    by
        Criterion: UDR, ModelCentrality or both; or DCI and MIG on a few labels.
    within
        Compare a run with the other seeds of its setting, or with all runs of the study.
    top
        Number of best runs to show.
    metrics
        Supervised metrics to judge the choice by, separated by commas. Default: the six of the study.
    images
        Number of images to compare the runs on.
    labels
        Number of labelled images that "few_labels" uses.
    labeller
        What labels of "few_labels" are like: right, or imprecise in one of four ways.
    data
        The data set, if the study has several; or the new path of your own data, if it has moved.
    output
        Table of the scores (.parquet or .csv). Default: selection.parquet in the study's folder.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.commands.select import metrics_asked, selected, show, show_judgement, write

    if top < 1:
        raise UnweaveError(f"--top is how many runs to show, 1 or more; got {top}.")
    judges = metrics_asked(metrics)
    check_output(output, TABLE)
    with progress("selecting") as tell:
        selection = selected(study, by, within, images, labels, labeller, data, device, data_root, tell)
    show(selection, by, top)
    table = write(selection, output)
    show_judgement(selection, by, judges)
    print(f"-> {table}")
    if (study / RESULTS_FILE).is_file():
        say(f"in the report: unweave report {study} {table}")


@app.command
def explore(
    *subjects: Path,
    encoder: str | None = None,
    decoder: str | None = None,
    published: Path | None = None,
    mapping: Annotated[Path | None, Parameter(name=["--mapping", "--columns"])] = None,
    port: int = 0,
    host: str = "127.0.0.1",
    open_page: Annotated[bool, Parameter(name="--open")] = True,
    wait: bool = False,
    export: Path | None = None,
    device: str = "cpu",
    data: str | None = None,
    data_root: Path | None = None,
) -> None:
    """Look at runs or a study in a browser: watch training, move latents, change true factors, compare.

    Parameters
    ----------
    subjects
        The folder of a run, of a study or of several runs, a trained model (zoo:NAME, see `unweave zoo
        list`), directions (pca.safetensors), a study's table (results.parquet), or codes and images in a
        file (codes.npz). Two to eight runs or models (file.py:Name, ONNX) are compared.
    encoder
        Your own encoder: an ONNX file, or path/to/file.py:Name. Needs --data.
    decoder
        Its decoder. Without one, the page shows the true images whose codes are nearest.
    published
        Folder of the published results (results_*.csv), to explore, alone or with tables.
    mapping
        TOML file with the meaning of each column, for tables of other tools.
    port
        Port to serve on; 0 means any free port.
    host
        Address to serve on. Unless it is a loopback address, visitors need the token in the printed address.
    open_page
        Open the page in a browser.
    wait
        Accept an empty folder: the page shows runs as soon as they are trained there.
    export
        Write the run's page to this file instead; it needs no server.
    device
        Device that decodes: auto, cpu, cuda or cuda:1.
    data
        The data set of an encoder; or the new path of your own data, if it has moved since the run was
        trained.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.commands.explore import serve, write_page
    from unweave.commands.explored import Named, subject_named

    check_output(export, (".html",))
    check_device(device)
    named = Named(subjects, encoder, decoder, published, mapping, device, data, data_root, wait)
    explored = subject_named(named)
    if export is not None:
        write_page(explored, export)
        print(f"-> {export}")
    else:
        serve(explored, host, port, open_page)


@app.command
def cite(*names: str) -> None:
    """Print BibTeX entries: of unweave itself, or of data sets, metrics and methods.

    Parameters
    ----------
    names
        Data sets, metrics and methods, as `unweave methods list` names them. Without names: unweave.
    """
    from unweave.commands.cite import OWN_NAME, citation

    print("\n\n".join(dict.fromkeys(citation(name) for name in names or (OWN_NAME,))))


def main() -> None:
    """Run the command line: user errors are one sentence and exit status 2, never a traceback."""
    run_command_line(app, sys.argv[1:])
