"""Specs: there and back again through JSON, one id for one content, and a sentence for each mistake."""

import dataclasses
import json
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.methods import METHODS, VAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.methods.method import Method, Setting
from unweave.nn.distributions.likelihood import LIKELIHOODS
from unweave.nn.layers.precision import PRECISIONS
from unweave.nn.networks.architectures import ARCHITECTURES
from unweave.nn.schedule import SCHEDULES
from unweave.runs.spec import FIRST_FIELDS, RunSpec, method_with

WEIGHTS = st.one_of(st.integers(1, 10**6), st.floats(1e-30, 1e30))  # not all methods take 0
POSITIVE = st.one_of(st.integers(1, 100), st.floats(1e-12, 1e6))


def values(hint: Any, default: Any) -> st.SearchStrategy[Any]:
    """What a setting may be; of texts the default, because most have a grammar of their own."""
    if hint == Setting:
        return WEIGHTS
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(2, 50)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([values(part, default) for part in get_args(hint)])
    return st.sampled_from(get_args(hint)) if get_origin(hint) is Literal else st.just(default)


def methods(kind: type[Method]) -> st.SearchStrategy[Method]:
    hints = get_type_hints(kind)
    choices = {f.name: values(hints[f.name], f.default) for f in dataclasses.fields(kind)}

    def build(settings: dict[str, Any]) -> Method:
        try:
            return kind(**settings)
        except UnweaveError:  # settings that do not go together
            return kind()

    return st.fixed_dictionaries(choices).map(build)


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    method = draw(st.one_of([methods(kind) for kind in METHODS]))
    optimiser, weight_decay = draw(st.sampled_from([("adam", 0.0), ("adamw", 0.1), ("adamw", 2.0)]))
    return RunSpec(
        method=method,
        data=draw(st.text()),
        seed=draw(st.integers(0, 2**70)),
        steps=draw(st.integers(1, 10**9)),
        batch=draw(st.integers(2, 10**4)),
        latents=draw(st.integers(1, 1000)),
        architecture=draw(st.sampled_from(tuple(ARCHITECTURES))),
        likelihood=draw(st.sampled_from(tuple(LIKELIHOODS))),
        learning_rate=draw(POSITIVE),
        schedule=draw(st.sampled_from(tuple(SCHEDULES))),
        warmup=draw(st.floats(0, 0.99)),
        optimiser=optimiser,
        weight_decay=weight_decay,
        gradient_clip=draw(st.none() | POSITIVE),
        precision=draw(st.sampled_from(PRECISIONS[:2] if method.exact_weights else PRECISIONS)),
    )


SPECS = specs()


@given(SPECS)
@settings(deadline=None, max_examples=60)
def test_a_spec_survives_json(spec: RunSpec) -> None:
    again = RunSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert again.to_dict() == spec.to_dict()
    assert again.id == spec.id


@given(SPECS, SPECS)
@settings(deadline=None, max_examples=20)
def test_ids_are_equal_where_specs_are(one: RunSpec, other: RunSpec) -> None:
    assert (one.id == other.id) == (one == other)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("method", BetaVAE(5.0)),
        ("data", "rooms"),
        ("seed", 1),
        ("steps", 7),
        ("batch", 32),
        ("latents", 6),
        ("architecture", "mlp"),
        ("likelihood", "gaussian"),
        ("learning_rate", 1e-3),
        ("schedule", "linear"),
        ("warmup", 0.1),
        ("gradient_clip", 1.0),
        ("precision", "bf16"),
    ],
)
def test_each_field_is_part_of_the_id(field: str, value: Any) -> None:
    spec = RunSpec(BetaVAE(4.0))
    assert dataclasses.replace(spec, **{field: value}).id != spec.id


def test_optimiser_and_weight_decay_are_part_of_the_id() -> None:
    decays = [RunSpec(BetaVAE(4.0), optimiser="adamw", weight_decay=decay).id for decay in (0.1, 0.2)]
    assert len({RunSpec(BetaVAE(4.0)).id, *decays}) == 3


def test_fields_that_came_later_are_written_only_where_they_are_not_the_default() -> None:
    """The ids of runs that were trained before a field existed must not change."""
    assert set(RunSpec(VAE()).to_dict()) == {"version", "method", *FIRST_FIELDS}
    assert RunSpec(VAE(), warmup=0.1).to_dict()["warmup"] == 0.1


def test_the_id_does_not_depend_on_how_numbers_are_written() -> None:
    plain = RunSpec(BetaVAE(4.0), seed=3, learning_rate=1.0, gradient_clip=2.0)
    numpy: dict[str, Any] = {"seed": np.int64(3), "gradient_clip": np.float32(2)}
    other = RunSpec(BetaVAE(4), learning_rate=1, **numpy)
    assert plain == other
    assert plain.id == other.id
    assert json.dumps(plain.to_dict()) == json.dumps(other.to_dict())
    assert RunSpec(BetaVAE(-0.0)).id == RunSpec(BetaVAE(0)).id


# Written by the first version with run folders. It must stay readable, with the same meaning and the same id.
FIRST = """{"version": 1,
 "method": {"name": "beta_tcvae", "alpha": 1.0, "beta": 6.0, "gamma": 1.0, "estimator": "weighted"},
 "data": "dsprites", "seed": 3, "steps": 300000, "batch": 64, "latents": 10, "architecture": "released",
 "likelihood": "bernoulli", "learning_rate": 0.0001, "schedule": "constant", "gradient_clip": null,
 "precision": "float32"}"""


def test_old_specs_stay_readable() -> None:
    spec = RunSpec.from_dict(json.loads(FIRST))
    assert spec == RunSpec(BetaTCVAE(beta=6.0), seed=3)
    assert spec.id == "d464fd2f13bfe662"


REFUSED = [
    ({"stepz": 3}, 'a spec has no field "stepz". Did you mean "steps"?'),
    ({"version": 2}, "this spec is of version 2; this unweave reads version 1"),
    ({"version": None}, "this spec is of version None"),
    ({"method": {"name": "beta_va"}}, 'there is no method "beta_va". Did you mean "beta_vae"?'),
    ({"method": {"name": 3}}, 'there is no method "3". Known: vae, ae, beta_vae'),
    ({"method": {"beta": 3}}, "a spec needs a method, such as"),
    ({"method": "beta_vae"}, "a spec needs a method, such as"),
    ({"method": {"name": "beta_vae", "bta": 3}}, 'beta_vae has no setting "bta". Did you mean "beta"?'),
    ({"method": {"name": "vae", "beta": 3}}, 'vae has no setting "beta". It has none.'),
    ({"method": {"name": "beta_vae", "beta": -1}}, "beta of beta_vae must be a number >= 0; got -1."),
    ({"method": {"name": "beta_vae", "beta": "4"}}, "beta of beta_vae must be a number >= 0; got '4'."),
    ({"data": 4}, "data must be the name of a data set; got 4."),
    ({"seed": -1}, "seed must be a whole number >= 0; got -1."),
    ({"seed": 0.5}, "seed must be a whole number >= 0; got 0.5."),
    ({"steps": 0}, "steps must be a whole number >= 1; got 0."),
    ({"steps": True}, "steps must be a whole number >= 1; got True."),
    ({"latents": 0}, "latents must be a whole number >= 1; got 0."),
    ({"batch": 1}, "batch must be a whole number >= 2; got 1."),
    ({"learning_rate": 0}, "learning_rate must be a number greater than 0; got 0."),
    ({"learning_rate": float("inf")}, "learning_rate must be a number greater than 0; got inf."),
    ({"learning_rate": float("nan")}, "learning_rate must be a number greater than 0; got nan."),
    ({"learning_rate": None}, "learning_rate must be a number greater than 0; got None."),
    ({"learning_rate": "fast"}, "learning_rate must be a number greater than 0; got 'fast'."),
    ({"gradient_clip": 0}, "gradient_clip must be a number greater than 0; got 0."),
    ({"architecture": "table"}, 'there is no architecture "table". Did you mean "table2"?'),
    ({"likelihood": "poisson"}, 'there is no likelihood "poisson". Known: bernoulli, '),
    ({"schedule": "cosin"}, 'there is no schedule "cosin". Did you mean "cosine"?'),
    ({"schedule": ["linear"]}, "there is no schedule \"['linear']\". Did you mean"),
    ({"optimiser": "adamW"}, 'there is no optimiser "adamW". Known: adam, adamw, compact_adam.'),
    ({"weight_decay": 0.1}, "adam has no weight decay; got weight_decay 0.1. Use adamw."),
    ({"optimiser": "adamw"}, "adamw needs a weight_decay greater than 0, such as 0.01; got 0."),
    ({"weight_decay": -1}, "weight_decay must be a number >= 0; got -1."),
    ({"weight_decay": float("nan")}, "weight_decay must be a number >= 0; got nan."),
    ({"warmup": 1}, "warmup must be a number >= 0 and < 1; got 1."),
    ({"warmup": "slow"}, "warmup must be a number >= 0 and < 1; got 'slow'."),
    ({"precision": "float64"}, 'there is no precision "float64". Did you mean "float32"?'),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_bad_specs_are_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError) as caught:
        RunSpec.from_dict(json.loads(FIRST) | change)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("plain", ["spec", 3, None, ["version"]])
def test_what_is_no_spec_at_all(plain: Any) -> None:
    with pytest.raises(UnweaveError, match="a spec must be a dict of fields; got"):
        RunSpec.from_dict(plain)


def test_a_method_must_be_one_with_plain_settings() -> None:
    with pytest.raises(UnweaveError, match=r"such as BetaVAE\(beta=4\); got <class"):
        RunSpec(BetaVAE)  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="beta of beta_vae must be one number for one run; got tensor"):
        RunSpec(BetaVAE(torch.ones(3)))


def test_methods_by_name() -> None:
    assert method_with("vae", {}) == VAE()
    assert method_with("factor_vae", {"gamma": 7, "second_batch": True}) == FactorVAE(7.0, second_batch=True)
