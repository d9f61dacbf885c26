"""The settings of disentanglement_lib [1] as settings of unweave: data set, method, and all of a run.

[1] https://github.com/google-research/disentanglement_lib, version 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import method_named
from unweave.methods.method import Method
from unweave.migration.gin import Bindings, bound, gin_value, parse_gin
from unweave.runs.spec import RunSpec

# Names that differ; all other data sets have the same name.
DATA = {"dsprites_full": "dsprites"}

ARCHITECTURES = {("conv_encoder", "deconv_decoder"): "released", ("fc_encoder", "fc_decoder"): "mlp"}
LIKELIHOODS = {"bernoulli_loss": "bernoulli", "l2_loss": "gaussian"}
LABELLERS = {
    "perfect_labeller": "perfect",
    "bin_labeller": "binned",
    "noisy_labeller": "noisy",
    "permuted_labeller": "permuted",
    "partial_labeller": "partial",
}
# Settings that are fixed in unweave. A configuration that binds another value has no equivalent.
FIXED = {
    "l2.learn_scale": True,
    "embed.sigma": 1,
    "embed.use_order": False,
    "bin_labeller.num_bins": 5,
    "noisy_labeller.prob_random": 0.1,
    "partial_labeller.num_observed_factors": 2,
}
WITH_DISCRIMINATOR = ("factor_vae", "s2_factor_vae")
DEFAULT_LEARNING_RATE = 0.001  # of TensorFlow's AdamOptimizer
DISCRIMINATOR_RATE = 1e-4  # of unweave's FactorVAE, if player_rate is 1
MOMENTS = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
DISCRIMINATOR_MOMENTS = {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-8}


class Equivalent(NamedTuple):
    """A method of unweave: the bindings that hold its settings, and settings that all models share."""

    method: str
    bindings: Mapping[str, str]
    constants: Mapping[str, Any] = {}


_TC = {"alpha": 1, "gamma": 1, "estimator": "weighted"}
_DIP = ("lambda_od", "lambda_d_factor")
_ANNEALED = ("gamma", "c_max", "iteration_threshold")

# By the name of the model's class in gin; of DIP-VAE with its type.
METHODS = {
    "vae": Equivalent("beta_vae", {"beta": "vae.beta"}),
    "annealed_vae": Equivalent("annealed_vae", {name: f"annealed_vae.{name}" for name in _ANNEALED}),
    "factor_vae": Equivalent("factor_vae", {"gamma": "factor_vae.gamma"}, {"second_batch": False}),
    "dip_vae_i": Equivalent("dip_vae_i", {name: f"dip_vae.{name}" for name in _DIP}),
    "dip_vae_ii": Equivalent("dip_vae_ii", {name: f"dip_vae.{name}" for name in _DIP}),
    "beta_tc_vae": Equivalent("beta_tcvae", {"beta": "beta_tc_vae.beta"}, _TC),
    "group_vae_argmax": Equivalent("ada_gvae", {"beta": "group_vae.beta"}),
    "group_vae_labels": Equivalent("gvae_labels", {"beta": "group_vae.beta"}),
    "mlvae_argmax": Equivalent("ada_ml_vae", {"beta": "mlvae.beta"}, {"variance": "published"}),
    "mlvae_labels": Equivalent("ml_vae_labels", {"beta": "mlvae.beta"}, {"variance": "published"}),
    "s2_vae": Equivalent("s2_beta_vae", {"beta": "s2_vae.beta"}),
    "s2_factor_vae": Equivalent("s2_factor_vae", {"gamma": "s2_factor_vae.gamma"}, {"second_batch": False}),
    "s2_dip_vae_i": Equivalent("s2_dip_vae_i", {name: f"s2_dip_vae.{name}" for name in _DIP}),
    "s2_dip_vae_ii": Equivalent("s2_dip_vae_ii", {name: f"s2_dip_vae.{name}" for name in _DIP}),
    "s2_beta_tc_vae": Equivalent("s2_beta_tcvae", {"beta": "s2_beta_tc_vae.beta"}, _TC),
    "supervised": Equivalent("supervised", {}),
}


def run_spec_from_gin(source: str | Path | Bindings) -> RunSpec:
    """The run that a gin file, or its bindings, of disentanglement_lib describes.

    The file is an operative configuration, such as results/gin/train.gin in the folder of a model. An error
    says what has no equivalent. FactorVAE gets half of `model.training_steps`, as in disentanglement_lib.
    """
    bindings = source if isinstance(source, Mapping) else read_gin(Path(source).expanduser())
    steps, player_rate = int(bound(bindings, "model.training_steps")), 1.0
    networks = (bound(bindings, "encoder.encoder_fn"), bound(bindings, "decoder.decoder_fn"))
    if model_of(bindings) in WITH_DISCRIMINATOR:
        steps //= 2  # both optimisers count their updates, so each network makes half of the steps
        rate = _learning_rate(bindings, "discriminator", DISCRIMINATOR_MOMENTS)
        player_rate = round(rate / DISCRIMINATOR_RATE, 9)
    return RunSpec(
        method_of(bindings),
        data=data_named(bound(bindings, "dataset.name")),
        seed=seed_of(bindings),
        steps=steps,
        batch=bound(bindings, "model.batch_size"),
        latents=bound(bindings, "encoder.num_latent"),
        architecture=_equivalent("networks", networks, ARCHITECTURES),
        likelihood=_equivalent("loss", bound(bindings, "reconstruction_loss.loss_fn"), LIKELIHOODS),
        learning_rate=_learning_rate(bindings, "vae", MOMENTS),
        player_rate=player_rate,
    )


def read_gin(path: Path) -> dict[str, str]:
    """The bindings of a gin file."""
    try:
        return parse_gin(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UnweaveError(f"{path} cannot be read as a gin file: {error}.") from error


def data_named(name: str) -> str:
    """The name of a data set in unweave."""
    return DATA.get(name, name)


def seed_of(bindings: Bindings) -> int:
    """The seed of a model; semi-supervised models have one for the network alone."""
    name = "model.model_seed" if "model.model_seed" in bindings else "model.random_seed"
    return int(bound(bindings, name))


def model_of(bindings: Bindings) -> str:
    """The name of the model's class; of DIP-VAE with its type, such as dip_vae_i."""
    model = str(bound(bindings, "model.model"))
    return f"{model}_{bound(bindings, f'{model}.dip_type')}" if model.endswith("dip_vae") else model


def method_of(bindings: Bindings) -> Method:
    """The method of a model with its settings."""
    model = model_of(bindings)
    equivalent = _equivalent("model", model, METHODS)
    for name, value in FIXED.items():
        _check_fixed(bindings, name, value)
    settings = {name: bound(bindings, place) for name, place in equivalent.bindings.items()}
    settings |= equivalent.constants
    if "dynamics.k" in bindings:
        settings["changed"] = _changed_factors(bound(bindings, "dynamics.k"))
    if "supervised_loss.loss_fn" in bindings:
        settings |= _supervision(bindings, model)
    return method_named(equivalent.method)(**settings)


def _changed_factors(k: int) -> int | str:
    """How many factors of a pair differ."""
    if k == -1:
        return "published"
    if k == 1:
        return 1
    raise UnweaveError(
        f"dynamics.k = {k} has no equivalent in unweave: one factor changes in half of the pairs, and {k} "
        'change in the others. unweave knows a number of factors, "random" and "published" (k = -1).'
    )


def _supervision(bindings: Bindings, model: str) -> dict[str, Any]:
    """The settings of semi-supervised methods."""
    labels = int(bound(bindings, "model.num_labelled_samples"))
    percentage = round(100 * float(bound(bindings, "model.train_percentage")), 6)
    settings: dict[str, Any] = {"supervised_loss": bound(bindings, "supervised_loss.loss_fn")}
    if model != "supervised" and percentage == int(percentage):
        settings |= {"labels": labels, "train_percentage": int(percentage)}
    else:  # such a method holds no labels out, so only those that are trained on count
        settings["labels"] = math.ceil(round(labels * percentage / 100, 6))
    if model == "supervised":
        return settings
    weight = f"{model.removesuffix('_ii').removesuffix('_i')}.gamma_sup"
    annealing = bound(bindings, "annealer.anneal_fn")
    threshold = (
        {} if annealing == "fixed" else {"annealing_steps": bound(bindings, "annealer.iteration_threshold")}
    )
    return (
        settings
        | threshold
        | {
            "gamma_sup": bound(bindings, weight),
            "labeller": _equivalent("labeller", bound(bindings, "labeller.labeller_fn"), LABELLERS),
            "annealing": annealing,
        }
    )


def _learning_rate(bindings: Bindings, player: str, moments: Mapping[str, float]) -> float:
    """The learning rate of a player's Adam, whose other settings must be those of unweave."""
    optimiser = (
        str(bindings.get(f"{player}_optimizer.optimizer_fn", "@AdamOptimizer")).strip().removeprefix("@")
    )
    if gin_value(f"@{optimiser}") != "AdamOptimizer":
        raise UnweaveError(f"the optimiser {optimiser} has no equivalent in unweave, which trains with Adam.")
    own, shared = f"{optimiser}.", "AdamOptimizer."
    for name, value in moments.items():
        _check_fixed(bindings, own + name if own + name in bindings else shared + name, value)
    rates = [
        bindings[place] for place in (f"{own}learning_rate", f"{shared}learning_rate") if place in bindings
    ]
    return float(gin_value(rates[0])) if rates else DEFAULT_LEARNING_RATE


def _check_fixed(bindings: Bindings, name: str, value: Any) -> None:
    """Refuse a binding whose value is fixed in unweave and differs."""
    if name in bindings and gin_value(bindings[name]) != value:
        raise UnweaveError(f"{name} = {bindings[name]} has no equivalent in unweave, where it is {value}.")


def _equivalent(kind: str, name: Any, table: Mapping[Any, Any]) -> Any:
    if name in table:
        return table[name]
    known = [word if isinstance(word, str) else " and ".join(word) for word in table]
    word = name if isinstance(name, str) else " and ".join(map(str, name))
    raise UnweaveError(
        f'the {kind} "{word}" of disentanglement_lib has no equivalent. {did_you_mean(word, known)}'
    )
