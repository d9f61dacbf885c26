"""The F-statistic loss, against scipy's analysis of variance."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f, f_oneway

from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import FStatistic
from unweave.methods.f_statistic import DECODER, ENCODER, separation
from unweave.methods.method import Batch, Blueprint
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR
from unweave.nn.draws import PopulationDraws
from unweave.streams import Stream
from unweave.training.batches import HostBatches

CPU = torch.device("cpu")


def by_scipy(codes: np.ndarray, labels: np.ndarray, size: int, dimensions: int) -> float:
    """F by f_oneway, Pr(S < s) by the F distribution; for each pair of values and dimension."""
    pairs = []
    for one, other in combinations(range(size), 2):
        first, second = codes[labels == one], codes[labels == other]
        if min(len(first), len(second)) < 2:
            continue
        statistics = f_oneway(first, second).statistic
        surely = f.logcdf(statistics, 1, len(first) + len(second) - 2)
        pairs.append(np.sort(surely)[-dimensions:].sum())
    return float(np.mean(pairs)) if pairs else 0.0


@given(st.integers(0, 1000), st.integers(2, 6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_against_scipy(seed: int, size: int, dimensions: int) -> None:
    stream = Stream.of(seed)
    labels = stream.child("labels").integers(20, [size])[:, 0]
    shift = stream.child("shift").normal(size, 4)[labels]
    codes = stream.child("codes").normal(20, 4) + shift
    actual = separation(torch.from_numpy(codes), torch.from_numpy(labels), size, dimensions)
    assert actual.item() == pytest.approx(by_scipy(codes, labels, size, dimensions), rel=1e-5, abs=1e-6)


def test_a_few_dimensions_that_separate_values_are_enough() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    noise = torch.from_numpy(Stream.of(0).normal(9, 3))
    codes = torch.cat([labels.double()[:, None] * 100 + noise[:, :1], noise[:, 1:]], dim=-1)
    assert separation(codes, labels, 3, 1) > -1e-4
    assert separation(codes, labels, 3, 2) < -0.1


def test_values_with_one_image_are_left_out_and_equal_codes_give_numbers() -> None:
    labels = torch.tensor([0, 0, 1, 2, 2])
    codes = torch.from_numpy(Stream.of(1).normal(5, 3)).requires_grad_()
    actual = separation(codes, labels, 4, 2)
    assert actual.item() == pytest.approx(by_scipy(codes.detach().numpy(), labels.numpy(), 4, 2), rel=1e-5)
    [gradient] = torch.autograd.grad(actual, codes)
    assert not gradient[2].any()
    assert separation(codes, torch.arange(5), 5, 2).item() == 0
    same = torch.ones(5, 3, dtype=torch.float64, requires_grad=True)
    [gradient] = torch.autograd.grad(separation(same, labels, 4, 2), same)
    assert torch.isfinite(gradient).all()


def test_gradients_and_runs() -> None:
    codes = torch.stack([torch.from_numpy(Stream.of(seed).normal(12, 3)) for seed in (0, 1)]).requires_grad_()
    labels = torch.stack([torch.from_numpy(Stream.of(seed).integers(12, [3])[:, 0]) for seed in (0, 1)])
    assert torch.autograd.gradcheck(lambda values: separation(values, labels, 3, 2), (codes,))
    together = separation(codes, labels, 3, 2)
    torch.testing.assert_close(together[1], separation(codes[1], labels[1], 3, 2))


def test_the_decoder_does_not_move_the_encoder_and_only_labels_do() -> None:
    method, source = FStatistic(labels=30), HostBatches(TINY, CPU)
    sizes = source.label_sizes(method.sampling)
    assert sizes == TINY.sizes
    draws = PopulationDraws([Stream.of(0)], torch.zeros((), dtype=torch.int64))
    batch = source.draw(draws, 0, "batch", 8, method.sampling)
    networks = method.networks(Blueprint(draws.streams, TINY.shape, 4, "released", sizes))
    at_step = own_step(0, len(TINY), draws, "bernoulli", torch.tensor([10.0]))
    losses = method.losses(at_step(batch, networks))
    own = list(networks[ENCODER].parameters())
    moved = torch.autograd.grad(losses.players[DECODER].sum(), own, retain_graph=True, allow_unused=True)
    assert all(gradient is None for gradient in moved)
    other = Batch(batch.images.flip(1), labelled=batch.labelled)
    again = method.losses(at_step(other, networks))
    torch.testing.assert_close(again.players[ENCODER], losses.players[ENCODER], rtol=0, atol=0)
    code = method.encode(networks, batch.images)
    assert code.mean.shape == (1, 8, 4)
    torch.testing.assert_close(code.log_var, torch.full((1, 8, 4), CERTAIN_LOG_VAR))
    with pytest.raises(UnweaveError, match="f_statistic needs at least d = 5 latents; got 4"):
        FStatistic(labels=30, d=5).losses(at_step(batch, networks))


def test_bad_settings() -> None:
    with pytest.raises(UnweaveError, match="d of f_statistic must be at least 1; got 0"):
        FStatistic(labels=10, d=0)
