"""What holds for every method: the tests go over METHODS, so that none can be left out."""

from __future__ import annotations

import pkgutil
from typing import Any

import pytest
import torch

import unweave.methods
from unweave.errors import UnweaveError
from unweave.methods import (
    AAE,
    AE,
    GVAE,
    METHODS,
    MLVAE,
    VAE,
    AdaGVAE,
    AnnealedVAE,
    BetaTCVAE,
    FactorVAE,
    InfoVAE,
    method_named,
    settings_of,
)
from unweave.methods.method import Blueprint, Method, numeric_settings
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR
from unweave.streams import Stream


def _descendants(kind: type[Any]) -> set[type[Any]]:
    """The concrete methods of the package, which have a name."""
    below = {kind for child in kind.__subclasses__() for kind in _descendants(child)}
    return below | ({kind} if hasattr(kind, "name") and kind.__module__.startswith("unweave.") else set())


def test_every_method_is_in_the_table() -> None:
    assert set(METHODS) == _descendants(Method) - {Method}
    files = {module.name for module in pkgutil.iter_modules(unweave.methods.__path__)} - {
        "method",
        "sampling",
        "step",
    }
    assert {method.__module__.rsplit(".", 1)[1] for method in METHODS} == files


def test_names_are_unique() -> None:
    assert len({method.name for method in METHODS}) == len(METHODS)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_is_frozen_cited_and_found_by_its_name(method: type[Method]) -> None:
    assert method.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert method.citation.startswith("@")
    assert method_named(method.name) is method


@pytest.mark.parametrize("method", [AE(), AAE()], ids=["ae", "aae"])
def test_codes_without_noise_have_a_negligible_variance(method: Method) -> None:
    # The encoder's log_var is never trained: codes drawn with it, and their ELBO, would be arbitrary.
    plan = Blueprint([Stream.of(0)], (1, 64, 64), 3)
    posterior = method.encode(method.networks(plan), torch.rand(1, 2, 1, 64, 64))
    assert posterior.log_var.unique().tolist() == pytest.approx([CERTAIN_LOG_VAR])


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UnweaveError, match=r'there is no method "beta-vae"\. Did you mean "beta_vae"'):
        method_named("beta-vae")


def test_settings_are_plain_and_the_same_for_equal_numbers() -> None:
    assert repr(settings_of(BetaTCVAE(beta=4))) == repr(settings_of(BetaTCVAE(beta=4.0)))
    assert settings_of(FactorVAE(gamma=35)) == {"gamma": 35.0, "second_batch": False}


BAD_NUMBERS: list[Any] = [-1, -1e-9, float("nan"), float("inf"), "4", True, None]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
def test_a_bad_number_is_refused(value: Any) -> None:
    settings = [(kind, name) for kind in METHODS for name in numeric_settings(kind)]
    for method, name in settings:
        with pytest.raises(
            UnweaveError, match=rf"{name} of {method.name} must be a number >= 0( or 'auto')?; got .*default"
        ):
            method(**{name: value})


BAD_CHOICES: list[tuple[type[Method], dict[str, Any], str]] = [
    (BetaTCVAE, {"estimator": "mws"}, "must be 'weighted' or 'stratified'; got 'mws'. The default is 'weig"),
    (FactorVAE, {"second_batch": 1}, "second_batch of factor_vae must be True or False; got 1. The default"),
    (AnnealedVAE, {"iteration_threshold": 0}, "must be > 0; got 0. Use 1"),
    (
        InfoVAE,
        {"divergence": "kl"},
        "divergence of info_vae must be 'mmd' or 'stein' or 'adversarial'; got 'kl'",
    ),
    (
        InfoVAE,
        {"bandwidth": 1.0},
        "bandwidth of info_vae must be 'squared_dimension' or 'prior' or 'median'; go",
    ),
    (
        AAE,
        {"posterior": "universal"},
        "posterior of aae must be 'deterministic' or 'gaussian'; got 'universal'",
    ),
    (MLVAE, {"content": -1}, "content of ml_vae must be a whole number >= 0 or 'half'; got -1. The default"),
    (GVAE, {"group_size": 0}, "group_size of gvae must be a whole number >= 1; got 0. The default is 2"),
    (GVAE, {"shared": None}, "shared of gvae must be a whole number >= 0 or a text; got None"),
    (
        AdaGVAE,
        {"changed": "some"},
        "changed of ada_gvae must be a whole number >= 0 or 'random' or 'published'; got 'some'",
    ),
]


@pytest.mark.parametrize(("method", "settings", "text"), BAD_CHOICES)
def test_a_bad_choice_is_refused(method: type[Method], settings: dict[str, Any], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        method(**settings)


def test_networks_that_cannot_encode_or_decode_are_refused() -> None:
    networks = {"other": torch.nn.Linear(2, 2)}
    with pytest.raises(UnweaveError, match=r"no network of vae encodes images\. One of them needs encode"):
        VAE().encode(networks, torch.zeros(1, 1, 1, 4, 4))
    with pytest.raises(UnweaveError, match=r"no network of vae decodes codes\. One of them needs decode"):
        VAE().decode(networks, torch.zeros(1, 1, 2))
