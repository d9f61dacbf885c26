"""Results of disentangling-vae [1] as a table of results.

main.py writes a folder for each model:

specs.json        all options of its command line
train_losses.log  CSV with the columns Epoch, Loss, Value: means over some steps of each epoch
metrics.log       JSON with MIG and AAM, with the option --is-metrics
test_losses.log   not read: it holds the losses of one batch, divided by the number of batches

[1] https://github.com/YannDubs/disentangling-vae, state of February 2023.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from unweave.errors import UnweaveError
from unweave.methods import VAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Method, settings_of
from unweave.migration.json_files import read_json_object
from unweave.migration.scores import Score
from unweave.results import COLUMNS, Results, check_table, setting_text

SOURCE = "disentangling_vae"
SPECS_FILE, LOSSES_FILE, METRICS_FILE = "specs.json", "train_losses.log", "metrics.log"
NEEDED = ("dataset", "seed")
# Scores of metrics.log. Their entropies are estimated from 10,000 samples of q(z).
METRICS = {"MIG": "mig_posterior", "AAM": "aam"}
METRIC_PROTOCOL = f"[{SOURCE},samples10000]"


class Loss(NamedTuple):
    """A loss as a method of unweave: which options its settings are, and options that unweave lacks."""

    method: type[Method]
    options: Mapping[str, str] = {}
    fixed: Mapping[str, Any] = {}
    further: tuple[str, ...] = ("reg_anneal",)


LOSSES = {
    "VAE": Loss(VAE),
    "betaH": Loss(BetaVAE, {"beta": "betaH_B"}),
    "betaB": Loss(
        AnnealedVAE,
        {"gamma": "betaB_G", "c_max": "betaB_finC", "iteration_threshold": "reg_anneal"},
        further=("betaB_initC",),
    ),
    "factor": Loss(FactorVAE, {"gamma": "factor_G"}, {"second_batch": True}),
    "btcvae": Loss(
        BetaTCVAE,
        {"alpha": "btcvae_A", "beta": "btcvae_B", "gamma": "btcvae_G"},
        {"estimator": "stratified"},
    ),
}
LOSSES_COLUMNS = ("Epoch", "Loss", "Value")
LOSSES_PROTOCOL = f"elbo[{SOURCE},last_epoch]"


def read_disentangling_vae(*places: str | Path) -> Results:
    """The results in folders that disentangling-vae wrote, at any depth.

    The source of all rows is "disentangling_vae". Losses are means over the last epoch of training, which is
    their protocol. Methods get the names of unweave, and `setting` also has the options that unweave lacks. A
    method that has no equivalent keeps its name, and a note says why.
    """
    if not places:
        raise UnweaveError("name what to read: folders of disentangling-vae, such as results/VAE_mnist.")
    folders = [folder for place in places for folder in _folders(Path(place).expanduser())]
    rows: list[tuple[Any, ...]] = []
    notes: dict[str, None] = {}
    for folder in dict.fromkeys(folders):
        model, scores = _model(folder, notes), list(_scores(folder))
        rows += [(*model, "", *score) for score in scores]
        if not scores:
            notes[f"{folder} has no results: neither {LOSSES_FILE} nor {METRICS_FILE}."] = None
    table = check_table(pd.DataFrame(rows, columns=list(COLUMNS)))
    return Results(table.table, (*notes, *table.notes))


def _folders(place: Path) -> list[Path]:
    """The folders of models in a folder."""
    folders = sorted(path.parent.resolve() for path in place.rglob(SPECS_FILE))
    if not folders:
        raise UnweaveError(
            f"{place} has no results of disentangling-vae: no file {SPECS_FILE} at any depth. Name its "
            "folder results/, or a folder in it."
        )
    return folders


def _model(folder: Path, notes: dict[str, None]) -> tuple[str, str, str, str, str, float, int]:
    """The columns of a table of results that say which model it is."""
    path = folder / SPECS_FILE
    specs = read_json_object(path)
    loss = LOSSES.get(str(specs.get("loss")))
    if loss is None:
        known = ", ".join(LOSSES)
        raise UnweaveError(f"{path} must name a loss, one of {known}; got {specs.get('loss')!r}.")
    if absent := [name for name in (*NEEDED, *loss.options.values()) if specs.get(name) is None]:
        raise UnweaveError(
            f"{path} lacks {', '.join(absent)}. Was it written by main.py of disentangling-vae?"
        )
    name, settings, strength = _method(loss, specs, notes)
    text = json.dumps([folder.name, specs], sort_keys=True)
    run = f"dvae-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return SOURCE, run, str(specs["dataset"]), name, setting_text(settings), strength, int(specs["seed"])


def _method(
    loss: Loss, specs: Mapping[str, Any], notes: dict[str, None]
) -> tuple[str, dict[str, Any], float]:
    """The name, the settings and the strength of a model's method."""
    stated = {setting: specs[option] for setting, option in loss.options.items()}
    further = {option: specs[option] for option in loss.further if specs.get(option)}
    try:
        method = loss.method(**stated, **loss.fixed)
    except UnweaveError as error:
        notes[f"{specs['loss']} keeps its name: {error}"] = None
        return str(specs["loss"]), stated | further, float("nan")
    settings = settings_of(method)
    return method.name, settings | further, float(settings.get(method.strength or "", "nan"))


def _scores(folder: Path) -> Iterator[Score]:
    """All scores of a folder. They are of the model, and not of mean or sampled codes."""
    if (folder / LOSSES_FILE).is_file():
        yield from _losses(folder / LOSSES_FILE)
    if (folder / METRICS_FILE).is_file():
        metrics = read_json_object(folder / METRICS_FILE)
        for name, score in METRICS.items():
            if name in metrics:
                yield Score(score, f"{score}{METRIC_PROTOCOL}", float(metrics[name]))


def _losses(path: Path) -> Iterator[Score]:
    """Reconstruction, KL divergence and ELBO of the last epoch."""
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:  # what the reader of CSV raises are kinds of these
        raise UnweaveError(f"{path} cannot be read as CSV: {str(error).splitlines()[0]}") from error
    if list(table.columns) != list(LOSSES_COLUMNS):
        columns = ", ".join(map(str, table.columns))
        raise UnweaveError(f"{path} must have the columns {', '.join(LOSSES_COLUMNS)}; got {columns}.")
    last = table[table["Epoch"] == table["Epoch"].max()].set_index("Loss")["Value"]
    if not {"recon_loss", "kl_loss"} <= set(last.index):
        raise UnweaveError(f"{path} lacks recon_loss or kl_loss in its last epoch.")
    reconstruction, kl = float(last["recon_loss"]), float(last["kl_loss"])
    terms = {"reconstruction": reconstruction, "kl": kl, "elbo": -(reconstruction + kl)}
    yield from (Score(f"elbo.{name}", LOSSES_PROTOCOL, value) for name, value in terms.items())
