"""The F-statistic loss, against scipy's analysis of variance; its early stopping, and what it learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import f, f_oneway
from torch import Tensor

from methods.played import Played
from training.tiny import TINY
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.methods import FStatistic, f_statistic
from unweave.methods.f_statistic import DECODER, ENCODER, LEARNER, Embedding, separation
from unweave.methods.method import Batch
from unweave.methods.sampling import Labels
from unweave.methods.step import LabelledBatch
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

CPU = torch.device("cpu")


def by_scipy(groups: Sequence[np.ndarray], dimensions: int) -> float:
    """F by f_oneway, Pr(S < s) by the F distribution; for each pair of values and dimension."""
    pairs = []
    for first, second in combinations([group for group in groups if len(group) > 1], 2):
        statistics = f_oneway(first, second).statistic
        confidence = f.logcdf(statistics, 1, len(first) + len(second) - 2)
        pairs.append(np.sort(confidence)[-dimensions:].sum())
    return float(np.mean(pairs)) if pairs else 0.0


def by_authors(groups: Sequence[Tensor], dimensions: int) -> float:
    """What the authors' program sums over pairs of values with as many images each, by scipy's betainc."""
    total = 0.0
    for first, second in combinations([group.numpy() for group in groups], 2):
        means = first.mean(0), second.mean(0)
        middle = (means[0] + means[1]) / 2
        between = sum(len(first) * (mean - middle) ** 2 for mean in means)
        within = ((first - means[0]) ** 2).sum(0) + ((second - means[1]) ** 2).sum(0)
        probability = betainc(0.5, (2 * len(first) - 2) / 2, between / (between + within))
        total += np.log(np.sort(probability)[-dimensions:]).sum()
    return float(total)


@given(st.integers(0, 1000), st.integers(2, 6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_against_scipy(seed: int, values: int, dimensions: int) -> None:
    stream = Stream.of(seed)
    codes = stream.child("codes").normal(values * 5, 4).reshape(values, 5, 4)
    codes += stream.child("shift").normal(values, 4)[:, None]
    counts = stream.child("counts").integers(values, [6])
    is_taken = np.arange(5) < counts
    groups = [code[taken] for code, taken in zip(codes, is_taken, strict=True)]
    actual, is_scored = separation(torch.from_numpy(codes), torch.from_numpy(is_taken), dimensions)
    assert actual.item() == pytest.approx(by_scipy(groups, dimensions), rel=1e-5, abs=1e-6)
    assert is_scored.item() == float((counts > 1).sum() > 1)


def test_full_batches_against_the_authors_sum() -> None:
    codes = torch.from_numpy(Stream.of(3).normal(12 * 5, 10)).view(12, 5, 10)
    actual, _ = separation(codes, torch.ones(12, 5, dtype=torch.bool), 2)
    assert actual.item() * 66 == pytest.approx(by_authors(list(codes), 2), rel=1e-6)


def test_a_few_dimensions_that_separate_values_are_enough() -> None:
    noise = torch.from_numpy(Stream.of(0).normal(9, 3)).view(3, 3, 3)
    shift = torch.tensor([100.0, 0.0, 0.0]) * torch.arange(3.0)[:, None, None]
    everything = torch.ones(3, 3, dtype=torch.bool)
    assert separation(noise + shift, everything, 1)[0] > -1e-4
    assert separation(noise + shift, everything, 2)[0] < -0.1


def test_empty_places_do_not_count_and_equal_codes_give_numbers() -> None:
    is_taken = torch.tensor([[True, True], [True, False], [True, True], [False, False]])
    codes = torch.from_numpy(Stream.of(1).normal(8, 3)).view(4, 2, 3).requires_grad_()
    actual, is_scored = separation(codes, is_taken, 2)
    known = codes.detach().numpy()
    assert actual.item() == pytest.approx(by_scipy([known[0], known[2]], 2), rel=1e-5)
    assert is_scored.item() == 1
    [gradient] = torch.autograd.grad(actual, codes)
    assert not gradient[1].any()
    assert not gradient[3].any()
    assert [part.item() for part in separation(codes, torch.eye(4, 2).bool(), 2)] == [0, 0]
    same = torch.ones(4, 2, 3, dtype=torch.float64, requires_grad=True)
    [gradient] = torch.autograd.grad(separation(same, is_taken, 2)[0], same)
    assert torch.isfinite(gradient).all()


def test_gradients_and_runs() -> None:
    codes = torch.stack([torch.from_numpy(Stream.of(seed).normal(12, 3)).view(3, 4, 3) for seed in (0, 1)])
    is_taken = torch.arange(4) < torch.tensor([[[4], [3], [2]], [[2], [4], [4]]])
    codes.requires_grad_()
    assert torch.autograd.gradcheck(lambda values: separation(values, is_taken, 2)[0], (codes,))
    together, _ = separation(codes, is_taken, 2)
    torch.testing.assert_close(together[1], separation(codes[1], is_taken[1], 2)[0])


def test_the_decoder_does_not_move_the_encoders_and_only_labels_do() -> None:
    case = Played.of(FStatistic(labels=30), seeds=(0,), images=8)
    losses, networks = case.losses(), case.networks
    encoders = [*case.parameters(ENCODER), *case.parameters(LEARNER)]
    moved = torch.autograd.grad(losses.players[DECODER].sum(), encoders, allow_unused=True)
    assert all(gradient is None for gradient in moved)
    other = Batch(case.batch.images.flip(1), labelled=case.batch.labelled)
    again = case.method.losses(replace(case.step, batch=other))
    torch.testing.assert_close(again.players[LEARNER], losses.players[LEARNER], rtol=0, atol=0)
    code = case.method.encode(networks, case.batch.images)
    assert code.mean.shape == (1, 8, 4)
    torch.testing.assert_close(code.log_var, torch.full((1, 8, 4), CERTAIN_LOG_VAR))
    with pytest.raises(UnweaveError, match="f_statistic needs at least d = 5 latents; got 4"):
        Played.of(FStatistic(labels=30, d=5)).losses()


def test_the_learner_sees_no_held_out_image() -> None:
    case = Played.of(FStatistic(labels=30, held_out=10), seeds=(0,))
    labelled, trained = case.step.labelled, case.losses().players[LEARNER]
    first, second = labelled.index[0].chunk(2)
    assert first.max() < 20 <= second[second >= 0].min()
    images = labelled.images.clone()
    images[:, len(first) :] = 0
    changed = replace(case.batch, labelled=replace(labelled, images=images))
    again = case.method.losses(replace(case.step, batch=changed))
    torch.testing.assert_close(again.players[LEARNER], trained, rtol=0, atol=0)
    assert again.terms["held_out_separation"] != case.losses().terms["held_out_separation"]


@pytest.mark.parametrize("clip", [None, 1e-3])
def test_the_weights_of_the_best_held_out_separation_are_kept(
    monkeypatch: pytest.MonkeyPatch, clip: float | None
) -> None:
    """Held-out scores that rise up to the fifth batch of each label, and fall after it."""
    monkeypatch.setattr(f_statistic, "AVERAGED", 2)
    weights: list[list[Tensor]] = []
    real = FStatistic._separation

    def scripted(self: FStatistic, learner: Embedding, labelled: LabelledBatch, half: int) -> Any:
        if half == 0:
            weights.append([parameter.detach().clone() for parameter in learner.parameters()])
            return real(self, learner, labelled, half)
        visit = (len(weights) - 1) // len(TINY.factors)
        return torch.tensor([-0.1 * abs(visit - 4)]), torch.ones(1)

    monkeypatch.setattr(FStatistic, "_separation", scripted)
    method = FStatistic(labels=30, values=2, images=2)
    population, update = training(method, TINY, batch=2, gradient_clip=clip)
    update.run(15)
    networks = population.groups[0].networks
    for kept, last in zip(networks[ENCODER].parameters(), weights[-1], strict=True):
        torch.testing.assert_close(kept.detach(), last, msg="the best so far")
    update.run(15)
    for kept, at_best, last in zip(networks[ENCODER].parameters(), weights[14], weights[-1], strict=True):
        torch.testing.assert_close(kept.detach(), at_best)
        assert not torch.equal(kept, last)


def test_without_held_out_labels_the_last_weights_are_kept() -> None:
    population, update = training(FStatistic(labels=30, held_out=0), TINY, batch=2)
    update.run(2)
    networks = population.groups[0].networks
    before = [parameter.detach().clone() for parameter in networks[LEARNER].parameters()]
    update.run(1)
    torch.testing.assert_close([parameter.detach() for parameter in networks[ENCODER].parameters()], before)
    assert "held_out_separation" not in update.take_terms()[0]


def test_labels_generalise_to_other_images() -> None:
    """Codes of images that had no label: the nearest labelled code has the same values of the factors."""
    method = FStatistic(labels=200)
    population, update = training(method, SQUARES, batch=4, latents=8, learning_rate=1e-3)
    update.run(100)
    assert isinstance(method.sampling, Labels)
    points = HostBatches(SQUARES, CPU).points(Stream.of(0), method.sampling).factors[:160]
    factors = np.stack(np.unravel_index(np.arange(len(SQUARES)), SQUARES.sizes), axis=1)
    is_new = ~(factors[:, None] == points).all(-1).any(1)
    with torch.no_grad():
        networks = population.groups[0].networks
        old, new = (
            method.encode(networks, torch.from_numpy(SQUARES.observe(rows))[None]).mean[0]
            for rows in (points, factors[is_new])
        )
    nearest = points[torch.cdist(new, old).argmin(1).numpy()]
    accuracy = (nearest == factors[is_new]).mean(0)
    assert is_new.sum() > 150
    assert accuracy[0] > 0.7, "chance: 0.33"
    assert accuracy[1:].min() > 0.25, "chance: 0.1"


def training(method: FStatistic, data: GroundTruth, **more: Any) -> tuple[Population, Update]:
    spec = RunSpec(method, data=data.name, **{"seed": 0, "steps": 1000, "latents": 4, **more})
    source = HostBatches(data, CPU)
    population = Population([spec], data.shape, CPU, source.label_sizes(method.sampling))
    return population, Update(population, source, len(data))


def _squares(factors: Factors, _stream: Stream) -> Images:
    rows, half = np.arange(32), 2 + factors[:, 0, None]
    across, along = (np.abs(rows - (6 + 2 * factors[:, column, None])) <= half for column in (1, 2))
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


SQUARES = GroundTruth(
    "squares",
    (Factor("size", 3), Factor("x", 10), Factor("y", 10)),
    (1, 32, 32),
    _squares,
    Card("squares", "none", ""),
    "made up",
    binary=True,
)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"d": 0}, "d of f_statistic must be at least 1; got 0"),
        ({"values": 1}, "values of f_statistic must be at least 2; got 1"),
        ({"images": 1}, "images of f_statistic must be at least 2; got 1"),
        ({"held_out": 10}, "held_out of f_statistic must be less than labels = 10, .* others; got 10"),
    ],
)
def test_bad_settings(setting: dict[str, int], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        FStatistic(labels=10, **setting)
