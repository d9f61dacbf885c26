"""Defaults of runs that depend on the method: the same in Python, on the command line and in studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import unweave
from training.tiny import TINY
from unweave.commands.train import Options, specs_of
from unweave.errors import UnweaveError
from unweave.methods import (
    METHODS,
    AdaMLVAE,
    AnnealedVAE,
    BetaVAE,
    FactorVAE,
    InfoGAN,
    S2FactorVAE,
    method_named,
    setting_help,
    settings_of,
    summary,
)
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.method import Losses, Method, Setting, StepContext
from unweave.runs.spec import RunSpec, method_with, spec_of
from unweave.study.spec import grid
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.trainer import Plan, train_runs
from unweave.training.update import Update

FIELDS: dict[str, Any] = {"data": "tiny", "batch": 4, "latents": 2, "architecture": "mlp"}


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.name)
def test_every_setting_has_a_help_text(kind: type[Method]) -> None:
    for name, text in setting_help(kind).items():
        assert text.endswith("."), name
        assert len(text) > 10, name


def test_help_texts_of_methods_from_outside(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom unweave.methods import BetaVAE\n\n\n"
        '@dataclass(frozen=True)\nclass Mine(BetaVAE):\n    depth: int = 1\n    """Layers of\n    it."""\n'
        "    width: int = 2\n    name = 'mine'\n"
    )
    kind = method_named(f"{tmp_path / 'mine.py'}:Mine")
    expected = {"beta": "Weight of the KL divergence from the prior.", "depth": "Layers of it.", "width": ""}
    assert setting_help(kind) == expected
    typed: dict[str, Any] = {"BetaVAE": BetaVAE, "dataclass": dataclass}
    exec("@dataclass(frozen=True)\nclass Typed(BetaVAE):\n    name = 'typed'\n    depth: int = 1", typed)  # noqa: S102
    assert setting_help(typed["Typed"]) == {"beta": expected["beta"], "depth": ""}  # there is no source


def test_all_entry_points_have_the_same_defaults() -> None:
    for kind in METHODS:
        [from_command] = specs_of(kind, {}, Options(device="cpu"))
        [from_study] = grid([{"name": kind.name}])
        assert from_command == from_study == spec_of(kind())


def test_factor_vae_has_half_of_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published models counted the updates of both players: 300,000 are 150,000 of each."""
    assert {spec_of(kind()).steps for kind in (FactorVAE, S2FactorVAE)} == {150_000}
    trained: list[RunSpec] = []

    def note(specs: list[RunSpec], *_: Any) -> None:
        trained.extend(specs)
        raise UnweaveError("enough")

    monkeypatch.setattr("unweave.runs.train.train_what_fits", note)
    given: list[dict[str, Any]] = [{}, {"steps": 7}]
    for steps in given:
        with pytest.raises(UnweaveError, match="enough"):
            unweave.train("factor_vae", TINY, out=tmp_path, progress=False, **steps)
    assert [spec.steps for spec in trained] == [150_000, 7]


def test_quick_raises_the_rates_of_discriminators_with_that_of_the_run() -> None:
    def quick(name: str, **options: Any) -> RunSpec:
        [spec] = specs_of(method_named(name), {}, Options(preset="quick", device="cpu", **options))
        return spec

    assert quick("factor_vae").learning_rate == 1e-3
    assert quick("factor_vae").player_rate == pytest.approx(10)
    assert quick("factor_vae", player_rate=2.0).player_rate == 2
    assert quick("vae").player_rate == 1, "no player has a rate of its own"
    assert InfoGAN().own_networks
    assert quick("info_gan").player_rate == 1, "no player has the rate of the run"


def test_the_rate_of_players_is_a_factor_on_their_own_rates() -> None:
    """Adam's first update is the learning rate times the sign of the gradient."""
    moved = []
    for rate in (1.0, 10.0):
        population = Population(
            [RunSpec(FactorVAE(), player_rate=rate, **FIELDS)], TINY.shape, torch.device("cpu")
        )
        weights = [
            p for player in population.players if player.name == DISCRIMINATOR for p in player.parameters()
        ]
        before = [weight.detach().clone() for weight in weights]
        Update(population, HostBatches(TINY, torch.device("cpu")), len(TINY)).run(1)
        moved.append(max(float((w.detach() - b).abs().max()) for w, b in zip(weights, before, strict=True)))
    assert moved == pytest.approx([1e-4, 1e-3], rel=1e-2)


def test_the_rate_of_players_does_not_change_earlier_ids() -> None:
    assert "player_rate" not in RunSpec(FactorVAE()).to_dict()
    assert RunSpec(FactorVAE(), player_rate=10).id != RunSpec(FactorVAE()).id
    with pytest.raises(UnweaveError, match="player_rate must be a number greater than 0; got 0"):
        RunSpec(FactorVAE(), player_rate=0)


def test_settings_that_were_added_are_written_where_they_differ() -> None:
    """The id is that of specs before `variance` was added."""
    assert RunSpec(AdaMLVAE(changed="random")).id == "6e3b2785c58ed647"
    published = RunSpec(AdaMLVAE(variance="published"))
    assert published.to_dict()["method"]["variance"] == "published"
    assert RunSpec.from_dict(published.to_dict()) == published


@dataclass(frozen=True)
class Renamed(Method):
    """A method whose setting had another name."""

    weight: Setting = 1.0

    name: ClassVar[str] = "renamed"
    citation: ClassVar[str] = ""
    renamed: ClassVar[Mapping[str, str]] = {"old_weight": "weight"}

    def losses(self, step: StepContext) -> Losses:
        raise NotImplementedError


def test_settings_may_have_their_earlier_names() -> None:
    assert method_with(Renamed, {"old_weight": 3.0}) == method_with(Renamed, {"weight": 3.0}) == Renamed(3.0)
    with pytest.raises(UnweaveError, match='renamed has no setting "older_weight"'):
        method_with(Renamed, {"older_weight": 3.0})


def test_short_runs_reach_the_capacity(tmp_path: Path) -> None:
    """As the quick preset does: far fewer steps than iteration_threshold."""
    capacities: list[float] = []
    train_runs(
        [RunSpec(AnnealedVAE(c_max=3), steps=12, **FIELDS)],
        TINY,
        [tmp_path / "run"],
        Plan("cpu", log_every=1),
        lambda report: capacities.append(report.terms[0]["capacity"]),
    )
    assert capacities == pytest.approx([0.0, 0.75, 1.5, 2.25, *[3.0] * 8])


def test_each_method_is_described_by_a_line_of_its_own() -> None:
    lines = {summary(kind): kind.name for kind in METHODS}
    assert len(lines) == len(METHODS)
    for line in lines:
        assert 30 < len(line) <= 110
        assert line.endswith(".")


def test_quick_has_settings_with_which_short_runs_learn_images() -> None:
    for name in ("annealed_vae", "s2_annealed_vae"):
        [spec] = specs_of(method_named(name), {}, Options(preset="quick", device="cpu"))
        assert settings_of(spec.method)["gamma"] == 10
    [spec] = specs_of(method_named("aae"), {}, Options(preset="quick", device="cpu"))
    assert settings_of(spec.method)["adversarial_rate"] == 0.3
