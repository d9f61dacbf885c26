import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from methods.no_draws import NoDraws
from methods.played import autoencoder_step
from unweave.errors import UnweaveError
from unweave.methods import FactorVAE
from unweave.methods.factor_vae import DISCRIMINATOR, shuffle
from unweave.methods.method import AUTOENCODER, Adam, Blueprint, Losses
from unweave.nn.distributions.gaussian import Gaussian
from unweave.streams import Stream


class Orders(NoDraws):
    """Draws with known permutations, (latents, batch) or (P, latents, batch)."""

    def __init__(self, orders: Any) -> None:
        self.orders = torch.tensor(orders)

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:  # noqa: ARG002
        assert self.orders.shape[-2:] == (rows, length)
        return self.orders


class Recorder(nn.Module):
    """A discriminator that records its inputs, codes and shuffled codes, and returns known logits."""

    def __init__(self, *logits: Tensor) -> None:
        super().__init__()
        self.logits = list(logits)
        self.inputs: list[Tensor] = []

    def forward(self, z: Tensor) -> Tensor:
        self.inputs = list(z.chunk(2, dim=-2))
        return torch.cat(self.logits, dim=-2)


CODES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], dtype=torch.float64)
ORDERS = Orders([[2, 0, 1], [0, 2, 1]])
SHUFFLED = torch.tensor([[3.0, 10.0], [1.0, 30.0], [2.0, 20.0]], dtype=torch.float64)


def losses(method: FactorVAE, recorder: Recorder, sample: Tensor, other: Tensor | None = None) -> Losses:
    return method.losses(
        autoencoder_step(
            reconstruction=torch.tensor(5.0, dtype=torch.float64),
            posterior=Gaussian(torch.zeros_like(sample), torch.zeros_like(sample)),
            sample=sample,
            step=0,
            data_size=100,
            draws=ORDERS,
            networks={DISCRIMINATOR: recorder},
            second_sample=other,
        )
    )


def logits(*first_minus_second: float) -> Tensor:
    first = torch.tensor(first_minus_second, dtype=torch.float64)
    return torch.stack([first + 0.25, torch.full_like(first, 0.25)], dim=-1)


def test_each_dimension_is_shuffled_by_itself_across_the_batch() -> None:
    assert torch.equal(shuffle(CODES, ORDERS), SHUFFLED)


def test_shuffling_keeps_columns_and_mixes_rows_in_every_run() -> None:
    batch, latents = 64, 10
    orders = [Stream.of(seed).permutations(latents, batch).tolist() for seed in (0, 1)]
    # The value of a code encodes its position: run, row, column.
    codes = torch.arange(2 * batch * latents).reshape(2, batch, latents)
    actual = shuffle(codes, Orders(orders))
    assert torch.equal(actual.sort(-2).values, codes)  # the same values in each column of each run
    rows = actual // latents % batch
    distinct = torch.tensor([[len(set(row.tolist())) for row in run] for run in rows])
    assert distinct.double().mean() > 8  # of 10 dimensions, nearly all from different images
    assert not torch.equal(rows[0], rows[1])


def test_the_discriminator_sees_the_codes_and_the_same_batch_shuffled() -> None:
    recorder = Recorder(logits(0, 0, 0), logits(0, 0, 0))
    sample = CODES.clone().requires_grad_()
    losses(FactorVAE(), recorder, sample, other=CODES + 100)
    assert torch.equal(recorder.inputs[0], sample)
    assert torch.equal(recorder.inputs[1], SHUFFLED)
    (to_shuffled,) = torch.autograd.grad(recorder.inputs[1].sum(), sample)
    assert not to_shuffled.any()


def test_the_second_batch_is_shuffled_if_asked_for() -> None:
    recorder = Recorder(logits(0, 0, 0), logits(0, 0, 0))
    other = (CODES + 100).requires_grad_()
    losses(FactorVAE(second_batch=True), recorder, CODES, other)
    assert torch.equal(recorder.inputs[0], CODES)
    assert torch.equal(recorder.inputs[1], SHUFFLED + 100)
    assert not recorder.inputs[1].requires_grad
    assert FactorVAE(second_batch=True).second_batch_needed
    assert not FactorVAE().second_batch_needed


def test_a_missing_second_batch_is_refused() -> None:
    with pytest.raises(UnweaveError, match="need the codes of a second batch; got none"):
        losses(FactorVAE(second_batch=True), Recorder(logits(0, 0, 0)), CODES)


def test_losses_of_known_logits() -> None:
    """The posterior is the prior, so KL = 0; D = 9/10, 1/2, 1/4 for codes and 4/5, 1/2, 1/2 if shuffled."""
    three, four = math.log(3), math.log(4)
    recorder = Recorder(logits(2 * three, 0.0, -three), logits(four, 0.0, 0.0))
    actual = losses(FactorVAE(gamma=6), recorder, CODES)
    assert actual.terms["total_correlation"].item() == pytest.approx(three / 3)
    assert actual.players[AUTOENCODER].item() == pytest.approx(5 + 6 * three / 3)
    log_joint = (math.log(9 / 10) + math.log(1 / 2) + math.log(1 / 4)) / 3
    log_shuffled = (math.log(1 / 5) + math.log(1 / 2) + math.log(1 / 2)) / 3
    assert actual.players[DISCRIMINATOR].item() == pytest.approx(-(log_joint + log_shuffled) / 2)
    assert actual.terms["discriminator_accuracy"].item() == pytest.approx((1 / 3 + 0) / 2)


def test_a_discriminator_that_is_sure_and_wrong_still_learns() -> None:
    """The published loss clips its probabilities, so that its gradient would be zero."""
    wrong = logits(-100, -100, -100).requires_grad_()
    actual = losses(FactorVAE(), Recorder(wrong, logits(0, 0, 0)), CODES)
    (gradient,) = torch.autograd.grad(actual.players[DISCRIMINATOR], wrong)
    torch.testing.assert_close(gradient, torch.tensor([[-1 / 6, 1 / 6]] * 3, dtype=torch.float64))


def test_the_discriminator_is_built_for_a_population_with_its_own_adam() -> None:
    (player,) = FactorVAE().players
    assert player.optimiser == Adam(1e-4, 0.5, 0.9, 1e-8)
    network = player.build(Blueprint([Stream.of(seed) for seed in (0, 1)], (1, 64, 64), 2))
    assert network(torch.zeros(2, 3, 2)).shape == (2, 3, 2)
    assert all(len(weights) == 2 for weights in network.parameters())
