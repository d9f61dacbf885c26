"""Settings of disentanglement_lib: gin files become runs and commands of unweave."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from command_line import run_here
from migration.dlib_files import SHARED, gin_text, write
from unweave.commands.migrate import train_command
from unweave.errors import UnweaveError
from unweave.methods import METHODS, BetaVAE, FactorVAE, settings_of
from unweave.migration import run_spec_from_gin
from unweave.migration.equivalents import METHODS as EQUIVALENTS
from unweave.migration.gin import parse_gin
from unweave.runs.spec import RunSpec

SEMI = {
    "model.model_seed": "3",
    "model.num_labelled_samples": "100",
    "model.train_percentage": "0.9",
    "supervised_loss.loss_fn": "@xent",
    "labeller.labeller_fn": "@bin_labeller",
    "bin_labeller.num_bins": "5",
    "annealer.anneal_fn": "@anneal",
    "annealer.iteration_threshold": "5000",
}
# The settings of each model of disentanglement_lib, and the method of unweave that it is.
MODELS: list[tuple[dict[str, str], str, dict[str, Any]]] = [
    ({"model.model": "@vae()", "vae.beta": "16."}, "beta_vae", {"beta": 16.0}),
    ({"model.model": "@factor_vae()", "factor_vae.gamma": "30."}, "factor_vae", {"gamma": 30.0}),
    (
        {"model.model": "@beta_tc_vae()", "beta_tc_vae.beta": "10."},
        "beta_tcvae",
        {"beta": 10.0, "estimator": "weighted"},
    ),
    (
        {
            "model.model": "@group_vae_argmax()",
            "group_vae.beta": "1.",
            "dynamics.k": "-1",
        },
        "ada_gvae",
        {"changed": "published"},
    ),
    (
        {"model.model": "@mlvae_argmax()", "mlvae.beta": "2.", "dynamics.k": "1"},
        "ada_ml_vae",
        {"beta": 2.0, "changed": 1, "variance": "published"},
    ),
    (
        SEMI
        | {"model.model": "@s2_dip_vae", "s2_dip_vae.gamma_sup": "4", "s2_dip_vae.dip_type": '"ii"'}
        | {"s2_dip_vae.lambda_od": "5.", "s2_dip_vae.lambda_d_factor": "2."},
        "s2_dip_vae_ii",
        {
            "lambda_od": 5.0,
            "lambda_d_factor": 2.0,
            "gamma_sup": 4.0,
            "labels": 100,
            "train_percentage": 90,
            "labeller": "binned",
            "annealing": "anneal",
            "annealing_steps": 5000.0,
        },
    ),
    (
        SEMI | {"model.model": "@supervised", "supervised_loss.loss_fn": "@l2"},
        "supervised",
        {"supervised_loss": "l2", "labels": 90},
    ),
]


def test_a_gin_file_is_the_run_of_the_study(tmp_path: Path) -> None:
    path = write(tmp_path / "train.gin", gin_text(SHARED | {"vae.beta": "8.0", "model.random_seed": "7"}))
    # The published study trains with the defaults of RunSpec.
    assert run_spec_from_gin(path) == RunSpec(BetaVAE(beta=8.0), seed=7)


@pytest.mark.parametrize(
    ("bindings", "name", "settings"), MODELS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_model_is_its_method(bindings: dict[str, str], name: str, settings: dict[str, Any]) -> None:
    spec = run_spec_from_gin(SHARED | bindings)
    assert spec.method.name == name
    written = settings_of(spec.method)
    assert {key: written[key] for key in settings} == settings
    assert spec.seed == (3 if "model.model_seed" in bindings else 0)
    # Both optimisers of FactorVAE count their updates in disentanglement_lib.
    assert spec.steps == (150_000 if "factor_vae" in name else 300_000)


def test_every_equivalent_is_a_method_with_these_settings() -> None:
    names = {method.name: method for method in METHODS}
    for equivalent in EQUIVALENTS.values():
        known = settings_of(names[equivalent.method]())
        assert {*equivalent.bindings, *equivalent.constants} <= set(known)


def test_networks_likelihood_and_learning_rate() -> None:
    bindings = SHARED | {
        "vae.beta": "1",
        "encoder.encoder_fn": "@fc_encoder",
        "decoder.decoder_fn": "@fc_decoder",
        "reconstruction_loss.loss_fn": "@l2_loss",
        "dataset.name": "'cars3d'",
        "vae/AdamOptimizer.learning_rate": "0.0005",
    }
    spec = run_spec_from_gin(bindings)
    assert (spec.architecture, spec.likelihood, spec.data) == ("mlp", "gaussian", "cars3d")
    assert spec.learning_rate == 5e-4
    rate = {"discriminator/AdamOptimizer.learning_rate": "0.0002"}
    assert run_spec_from_gin(SHARED | MODELS[1][0] | rate).player_rate == 2


def test_what_has_no_equivalent_is_refused() -> None:
    usual = {"vae.beta": "1"}
    for bindings, words in (
        (
            usual | {"model.model": "@s2_mine_vae"},
            'the model "s2_mine_vae" of disentanglement_lib has no equi',
        ),
        (usual | {"encoder.encoder_fn": "@test_encoder"}, "test_encoder and deconv_decoder"),
        (usual | {"vae_optimizer.optimizer_fn": "@RMSPropOptimizer"}, "RMSPropOptimizer has no equivalent"),
        (usual | {"vae/AdamOptimizer.epsilon": "0.001"}, r"epsilon = 0\.001 has no equivalent"),
        (MODELS[3][0] | {"dynamics.k": "3"}, r"dynamics\.k = 3 has no equivalent"),
        (MODELS[5][0] | {"bin_labeller.num_bins": "7"}, r"bin_labeller\.num_bins = 7 has no equivalent"),
        ({}, r"do not bind vae\.beta"),
    ):
        with pytest.raises(UnweaveError, match=words):
            run_spec_from_gin(SHARED | bindings)


def test_gin_files_may_have_macros_lists_and_comments_but_no_includes(tmp_path: Path) -> None:
    lines = ["import some.module", "# text", "beta = 4.", "vae.beta=%beta"]
    text = "\n".join([*lines, "downstream_task.num_train = [10,", "100]", 'a.b = "x"'])
    assert parse_gin(text) == {"vae.beta": "4.", "downstream_task.num_train": "[10, 100]", "a.b": '"x"'}
    with pytest.raises(UnweaveError, match="is not complete"):
        parse_gin("include 'shared.gin'\n")
    with pytest.raises(UnweaveError, match="cannot be read as a gin file"):
        run_spec_from_gin(tmp_path / "absent.gin")


def test_the_command_prints_a_training_command_that_is_accepted(tmp_path: Path) -> None:
    bindings = SHARED | MODELS[4][0] | {"model.batch_size": "4", "encoder.num_latent": "3"}
    write(tmp_path / "train.gin", gin_text(bindings | {"model.training_steps": "2"}))
    ended = run_here("migrate", "disentanglement_lib", "train.gin", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (
        "unweave train ada_ml_vae --beta 2 --changed 1 --variance published --data dsprites --seed 0 "
        "--steps 2 --batch 4 --latents 3\n"
    )
    quick = ("--device", "cpu", "--no-scores", "--no-pictures", "--precision", "float32")
    trained = run_here(*shlex.split(ended.stdout)[1:], *quick, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    [spec] = [
        RunSpec.from_dict(json.loads(path.read_text())["spec"]) for path in tmp_path.glob("runs/*/spec.json")
    ]
    assert spec == run_spec_from_gin(tmp_path / "train.gin")


def test_flags_of_settings_that_are_true_or_false() -> None:
    spec = RunSpec(FactorVAE(second_batch=True), learning_rate=5e-4)
    assert "--second-batch" in train_command(spec).split()
    assert "--learning-rate 0.0005" in train_command(spec)
