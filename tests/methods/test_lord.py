"""LORD: losses and learning rates of both stages, which networks they train, and what each code knows."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from methods.marks import check_parts, check_swaps, small_networks, trained
from methods.played import own_step
from training.tiny import TINY
from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods import LORD
from unweave.methods.lord import CODES
from unweave.methods.method import AUTOENCODER, Batch, Blueprint, Losses
from unweave.methods.sampling import Labels
from unweave.methods.step import LabelledBatch
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR, Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.nn.networks.tables import CodeTables
from unweave.nn.networks.two_parts import TwoPartAutoencoder
from unweave.nn.optimiser import Adam
from unweave.nn.schedule import rate_share
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.population import Population

__all__ = ["small_networks"]

SHAPE = (1, 4, 4)
LABELS, INDEX = torch.tensor([[[1], [0], [1]]]), torch.tensor([[2, 0, 2]])
CLASSES, CONTENTS = [[10.0], [-1.0]], [[0.5, 1.0], [9.0, 9.0], [-0.5, 2.0]]
ENCODED = [[0.0, 0.3, -0.2], [0.5, -1.0, 0.4], [0.1, 0.2, 0.3]]  # by the encoders: class, content
NOISE = [[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]]


class KnownNoise:
    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        assert (purpose, rows, columns) == ("noise", 3, 2)
        return torch.tensor([NOISE])


class Decoder(nn.Module):
    def forward(self, codes: Tensor) -> Tensor:
        """The same logit for all pixels: c_0 / 4 + c_1 - c_2."""
        logits = codes[..., 0] / 4 + codes[..., 1] - codes[..., 2]
        return logits[..., None, None, None].expand(*codes.shape[:-1], *SHAPE)


class Model(TwoPartAutoencoder):
    first: Any
    second: Any
    decoder: Any

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.decoder, self.codes = Decoder(), torch.tensor([ENCODED])

    def encode_parts(self, _images: Tensor) -> tuple[Gaussian, Gaussian]:
        first, second = self.codes[..., :1], self.codes[..., 1:]
        return Gaussian(first, first), Gaussian(second, second)


def tables() -> CodeTables:
    tables_of_codes = CodeTables([Stream.of(0)], (2,), 3, 1, 2)
    with torch.no_grad():
        # A row times sqrt(256 / 1) or sqrt(128 / 2), the ratio of the authors' dimensions, is a code.
        tables_of_codes.classes.rows.copy_(torch.tensor([CLASSES]) / 16)
        tables_of_codes.images.rows.copy_(torch.tensor([CONTENTS]) / 8)
    return tables_of_codes


def slow_distance(logit: float, image: np.ndarray) -> float:
    """rec / N and the pyramid's levels for an image (4, 4) of bytes and a decoded one of equal pixels."""
    pixel, x = 1 / (1 + math.exp(-logit)), image / 255
    rec = float(-(x * math.log(pixel) + (1 - x) * math.log(1 - pixel)).mean())
    difference, levels = pixel - x, 0.0
    while len(difference) > 1:
        size = len(difference) // 2
        coarse = difference.reshape(size, 2, size, 2).mean((1, 3))
        levels += float(np.abs(difference - np.kron(coarse, np.ones((2, 2)))).mean())
        difference = coarse
    return rec + levels + abs(float(difference[0, 0]))


@pytest.mark.parametrize(("step", "stage"), [(0, 1), (59, 1), (60, 2), (99, 2)])
def test_both_stages_in_numbers(step: int, stage: int) -> None:
    drawn = Stream.of(3).integers(3, [256] * 16).astype(np.uint8).reshape(3, 4, 4)
    batch = Batch(
        torch.zeros(1, 3, *SHAPE, dtype=torch.uint8),
        labelled=LabelledBatch(torch.from_numpy(drawn)[None, :, None], LABELS, INDEX),
    )
    method = LORD(content_std=0.5, content_decay=0.25, encoder_weight=3, second_stage=0.6)
    networks = {AUTOENCODER: Model(), CODES: tables()}
    at_step = own_step(step, 60, KnownNoise(), "bernoulli", steps=100)
    losses = method.losses(at_step(batch, networks))

    first = second = size = class_error = content_error = 0.0
    for row in range(3):
        [e], c = CLASSES[LABELS[0, row, 0]], np.array(CONTENTS[INDEX[0, row]])
        noisy, code = c + 0.5 * np.array(NOISE[row]), ENCODED[row]
        first += slow_distance(e / 4 + noisy[0] - noisy[1], drawn[row]) / 3
        second += slow_distance(code[0] / 4 + code[1] - code[2], drawn[row]) / 3
        size += (c**2).sum() / 3
        class_error += (code[0] - e) ** 2 / 3
        content_error += ((np.array(code[1:]) - c) ** 2).mean() / 3
    terms = {name: value.item() for name, value in losses.terms.items()}
    expected = {
        "distance": first,
        "content_size": size,
        "encoded_distance": second,
        "class_error": class_error,
        "content_error": content_error,
        "stage": stage,
    }
    assert {name: terms[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    first_loss = first + 0.25 * size
    second_loss = second + 3 * (class_error + content_error)
    loss = first_loss if stage == 1 else second_loss
    assert losses.players[AUTOENCODER].item() == pytest.approx(loss, rel=1e-5)
    assert losses.players[CODES].item() == pytest.approx(first_loss if stage == 1 else 0, rel=1e-5)


class Runs:
    """Two runs with real networks; settings may be tensors."""

    def __init__(self, **settings: Any) -> None:
        self.method = LORD(points=6, **settings)
        streams = [Stream.of(0), Stream.of(1)]
        self.networks = self.method.networks(Blueprint(streams, TINY.shape, 4, label_sizes=(3,)))
        self.draws = PopulationDraws(streams, torch.zeros((), dtype=torch.int64))
        factors = TINY.sample_factors(8, 0).reshape(2, 4, 3)
        images = torch.stack([torch.from_numpy(TINY.observe(run)) for run in factors])
        self.batch = Batch(
            images,
            labelled=LabelledBatch(
                images, torch.from_numpy(factors[..., :1].copy()), torch.tensor([[0, 1, 5, 5], [2, 3, 4, 0]])
            ),
        )

    def losses(self, step: int) -> Losses:
        steps = torch.tensor([10, 20])
        at_step = own_step(torch.tensor(step), 60, self.draws, "bernoulli", steps)
        return self.method.losses(at_step(self.batch, self.networks))

    def moved(self, loss: Tensor) -> list[bool]:
        """Encoder of classes, encoder of content, decoder, codes of classes, codes of images."""
        model, codes = self.networks[AUTOENCODER], self.networks[CODES]
        assert isinstance(model, TwoPartAutoencoder)
        assert isinstance(codes, CodeTables)
        parts = (model.first, model.second, model.decoder, codes.classes, codes.images)
        gradients = [
            torch.autograd.grad(loss, list(p.parameters()), allow_unused=True, retain_graph=True)
            for p in parts
        ]
        return [any(g is not None and bool(g.abs().sum() > 0) for g in each) for each in gradients]


def test_which_stage_trains_which_network() -> None:
    """At step 7 the run of 10 steps is in its second stage, the run of 20 in its first."""
    runs = Runs()
    losses = runs.losses(7)
    assert losses.terms["stage"].tolist() == [2, 1]
    autoencoder, codes = losses.players[AUTOENCODER], losses.players[CODES]
    assert runs.moved(autoencoder[0]) == [True, True, True, False, False], "codes are mere targets"
    assert runs.moved(autoencoder[1]) == [False, False, True, True, True]
    assert runs.moved(codes[0]) == [False] * 5
    assert runs.moved(codes[1])[3:] == [True, True]


def test_settings_may_differ_between_runs() -> None:
    settings = {"content_std": [0.5, 2.0], "content_decay": [0.1, 0.2], "second_stage": [0.9, 0.1]}
    settings["encoder_weight"] = [1.0, 3.0]
    together = Runs(**{name: torch.tensor(value) for name, value in settings.items()}).losses(4)
    for run in range(2):
        alone = Runs(**{name: value[run] for name, value in settings.items()}).losses(4)
        for name, value in together.terms.items():
            torch.testing.assert_close(value[run], alone.terms[name][run])
        for name, value in together.players.items():
            torch.testing.assert_close(value[run], alone.players[name][run])


def test_codes_are_what_the_encoders_find() -> None:
    runs = Runs(class_latents=3)
    posterior = runs.method.encode(runs.networks, runs.batch.images)
    model = runs.networks[AUTOENCODER]
    assert isinstance(model, TwoPartAutoencoder)
    torch.testing.assert_close(posterior.mean[..., :3], model.first(runs.batch.images).mean)
    torch.testing.assert_close(posterior.log_var, torch.full((2, 4, 4), CERTAIN_LOG_VAR))
    assert runs.method.decode(runs.networks, posterior.mean).shape == (2, 4, *TINY.shape)
    assert not runs.method.stochastic
    assert runs.method.content_dimensions(4) == 3


def test_what_it_learns_from() -> None:
    assert LORD(points=7, class_factors="x").sampling == Labels(7, Chosen("x"), unlabelled=False)
    assert LORD().sampling == Labels(10_000, Chosen("class"), unlabelled=False)


def test_learning_rates_are_those_of_the_authors_code() -> None:
    """The authors' code has torch's CosineAnnealingLR to 1e-5, from 3e-4 and 3e-3, and then from 1e-4."""
    stages = (60, 40)

    def annealed(highest: float, steps: int) -> list[float]:
        optimiser = torch.optim.Adam([torch.zeros(1, requires_grad=True)], highest)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=1e-5)
        rates = []
        for _ in range(steps):
            rates.append(float(schedule.get_last_lr()[0]))
            optimiser.step()
            schedule.step()
        return rates

    expected = {
        AUTOENCODER: annealed(3e-4, stages[0]) + annealed(1e-4, stages[1]),
        CODES: annealed(3e-3, stages[0]) + [0.0] * stages[1],
    }
    specs = [RunSpec(LORD(second_stage=share), "tiny", steps=100, seed=1) for share in (0.6, 0.2)]
    population = Population(specs, TINY.shape, torch.device("cpu"), (3,))
    run = [spec.method for spec in population.specs].index(specs[0].method)
    for player in population.players:
        assert isinstance(player.optimiser.settings, Adam)
        assert (player.optimiser.settings.beta1, player.optimiser.settings.beta2) == (0.5, 0.999)
        assert player.own_rate is not None
        shares = [
            rate_share(player.schedule, torch.tensor(step), population.steps)[run].item()
            for step in range(100)
        ]
        rates = [player.own_rate * share for share in shares]
        assert rates == pytest.approx(expected[player.name], rel=1e-4, abs=1e-12), player.name
        warm = rate_share(player.schedule, torch.tensor(70), population.steps, warmup=0.8)[run].item()
        assert warm == pytest.approx(0.875 * shares[70]), "a warm-up does not move the stages"


@pytest.mark.usefixtures("small_networks")
def test_the_class_code_knows_the_class_and_the_content_code_the_rest(tmp_path: Path) -> None:
    run = trained(LORD(points=100), tmp_path, player_rate=20.0)
    check_parts(run, most_place=0.4, most_class=0.45)
    check_swaps(run)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"second_stage": 0}, "second_stage of lord.*must be more than 0 and less than 1; got 0"),
        ({"second_stage": 1.0}, "second_stage of lord.*must be more than 0 and less than 1; got 1"),
        ({"points": 0}, "points of lord must be at least 1; got 0"),
        ({"perceptual": "lpips"}, "perceptual of lord must be 'laplacian' or 'vgg'; got 'lpips'"),
        ({"decoder": "film"}, "decoder of lord must be 'concatenated' or 'adain'; got 'film'"),
    ],
)
def test_bad_settings_are_refused(setting: dict[str, Any], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        LORD(**setting)
