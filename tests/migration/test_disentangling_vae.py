"""Results of disentangling-vae: its folders become one table of results."""

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_here
from unweave.errors import UnweaveError
from unweave.migration import read_disentangling_vae
from unweave.results import read_table

# As main.py writes it: all options of the command line, also those of other losses.
SPECS: dict[str, Any] = {
    "batch_size": 64,
    "betaB_G": 1000,
    "betaB_finC": 25,
    "betaB_initC": 0,
    "betaH_B": 4,
    "btcvae_A": 1,
    "btcvae_B": 6.4,
    "btcvae_G": 1,
    "dataset": "dsprites",
    "epochs": 2,
    "factor_G": 6,
    "img_size": [1, 64, 64],
    "latent_dim": 10,
    "loss": "btcvae",
    "lr": 0.0005,
    "model_type": "Burgess",
    "name": "btcvae_dsprites",
    "rec_dist": "bernoulli",
    "reg_anneal": 10000,
    "seed": 1234,
}
LOSSES = """Epoch,Loss,Value
0,recon_loss,114.5
0,loss,-50.6
0,kl_loss,17.7
0,kl_loss_0,2.9
1,recon_loss,42.25
1,loss,-112.0
1,kl_loss,13.5
1,kl_loss_0,13.5
"""


def write(folder: Path, losses: str | None = LOSSES, metrics: str | None = None, **options: Any) -> Path:
    """Write the folder of a model."""
    folder.mkdir(parents=True)
    (folder / "specs.json").write_text(json.dumps(SPECS | options, indent=4, sort_keys=True))
    (folder / "test_losses.log").write_text(json.dumps({"recon_loss": 0.034, "kl_loss": 0.015}))
    if losses is not None:
        (folder / "train_losses.log").write_text(losses)
    if metrics is not None:
        (folder / "metrics.log").write_text(metrics)
    return folder


def test_losses_of_the_last_epoch_and_metrics_are_read(tmp_path: Path) -> None:
    write(tmp_path / "results" / "btcvae_dsprites", metrics=json.dumps({"AAM": 0.5, "MIG": 0.25}))
    table = read_disentangling_vae(tmp_path).table
    scores = {row.score: (row.protocol, row.value) for row in table.itertuples()}
    assert scores == {
        "elbo.reconstruction": ("elbo[disentangling_vae,last_epoch]", 42.25),
        "elbo.kl": ("elbo[disentangling_vae,last_epoch]", 13.5),
        "elbo.elbo": ("elbo[disentangling_vae,last_epoch]", -55.75),
        "mig_posterior": ("mig_posterior[disentangling_vae,samples10000]", 0.25),
        "aam": ("aam[disentangling_vae,samples10000]", 0.5),
    }
    assert set(table["source"]) == {"disentangling_vae"}
    assert set(table["representation"]) == {""}
    assert set(table["seed"]) == {1234}


@pytest.mark.parametrize(
    ("options", "method", "setting", "strength"),
    [
        ({"loss": "VAE", "reg_anneal": 0}, "vae", "", None),
        ({"loss": "betaH"}, "beta_vae", "beta=4,reg_anneal=10000", 4),
        ({"loss": "betaB"}, "annealed_vae", "gamma=1000,c_max=25,iteration_threshold=10000", 25),
        (
            {"loss": "betaB", "betaB_initC": 2},
            "annealed_vae",
            "gamma=1000,c_max=25,iteration_threshold=10000,betaB_initC=2",
            25,
        ),
        ({"loss": "factor"}, "factor_vae", "gamma=6,second_batch=True,reg_anneal=10000", 6),
        ({}, "beta_tcvae", "alpha=1,beta=6.4,gamma=1,estimator=stratified,reg_anneal=10000", 6.4),
    ],
)
def test_methods_have_the_names_of_unweave(
    tmp_path: Path, options: dict[str, Any], method: str, setting: str, strength: float | None
) -> None:
    table = read_disentangling_vae(write(tmp_path / "model", **options)).table
    assert set(table["method"]) == {method}
    assert set(table["setting"]) == {setting}
    strengths = set(table["strength"].dropna())
    assert strengths == (set() if strength is None else {strength})


def test_settings_that_a_method_refuses_keep_the_name_of_the_loss(tmp_path: Path) -> None:
    results = read_disentangling_vae(write(tmp_path / "model", btcvae_A=-5))
    assert set(results.table["method"]) == {"btcvae"}
    assert "btcvae keeps its name: alpha of beta_tcvae must be a number >= 0; got -5" in results.notes[0]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="name what to read"):
        read_disentangling_vae()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnweaveError, match=r"no file specs\.json at any depth"):
        read_disentangling_vae(tmp_path / "empty")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"loss": "wae"}, r"must name a loss, one of VAE, .*; got 'wae'"),
        ({"seed": None}, "lacks seed"),
        ({"losses": "1,2\n"}, "must have the columns Epoch, Loss, Value; got 1, 2"),
        ({"losses": ""}, "cannot be read as CSV"),
        ({"losses": "Epoch,Loss,Value\n0,loss,1\n"}, "lacks recon_loss or kl_loss"),
        ({"metrics": "MIG"}, "cannot be read as JSON"),
        ({"metrics": "[1]"}, "must hold a JSON object; got list"),
    ]
    for number, (changed, problem) in enumerate(cases):
        with pytest.raises(UnweaveError, match=problem):
            read_disentangling_vae(write(tmp_path / f"{number}", **changed))


def test_the_command_writes_a_table(tmp_path: Path) -> None:
    write(tmp_path / "results" / "one")
    write(tmp_path / "results" / "without", losses=None)
    ended = run_here("migrate", "disentangling_vae", tmp_path / "results", "-o", tmp_path / "old.parquet")
    assert ended.returncode == 0, ended.stderr
    assert "1 runs, 3 scores" in ended.stderr + ended.stdout
    assert "without has no results: neither train_losses.log nor metrics.log" in " ".join(
        ended.stderr.split()
    )
    assert len(read_table(tmp_path / "old.parquet").table) == 3
    refused = run_here("migrate", "disentangling_vae")
    assert refused.returncode == 2
    assert "name the results of disentangling_vae: its folder results/" in refused.stderr
