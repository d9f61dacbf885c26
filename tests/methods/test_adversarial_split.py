"""Adversarial split: how codes, images and labels are combined, and which loss trains what."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from methods.marks import check_parts, check_swaps, small_networks, trained
from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import AdversarialSplit
from unweave.methods.adversarial_split import DISCRIMINATOR
from unweave.methods.method import AUTOENCODER, Batch, Blueprint
from unweave.nn.distributions.gaussian import CERTAIN_LOG_VAR, Gaussian
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.two_parts import TwoPartAutoencoder
from unweave.streams import Stream
from unweave.training.batches import HostBatches

__all__ = ["small_networks"]

PAIRS, SPECIFIED, UNSPECIFIED = 3, 2, 3
SHAPE = (1, 4, 4)


class KnownDraws:
    """Noise that is known, by purpose."""

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        numbers = Stream.of(5).child(purpose).normal(rows, columns)
        return torch.from_numpy(numbers).double()[None]


class Decoder(nn.Module):
    """Logits that are known functions of the code, and a record of the codes."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[Tensor] = []

    def forward(self, codes: Tensor) -> Tensor:
        self.inputs.append(codes)
        return codes.sum(-1)[..., None, None, None].expand(*codes.shape[:-1], *SHAPE) / 3

    def reconstruction(self, codes: Tensor, images: Tensor, likelihood: Any) -> Tensor:
        return reconstruction_loss(self(codes), images, likelihood)


class Model(TwoPartAutoencoder):
    first: Any
    second: Any
    decoder: Any

    def __init__(self, first: Gaussian, second: Gaussian) -> None:
        nn.Module.__init__(self)
        self.first, self.second, self.decoder = first, second, Decoder()

    def encode_parts(self, _images: Tensor) -> tuple[Gaussian, Gaussian]:
        return self.first, self.second


class Judge(nn.Module):
    """Known logits, and a record of the images and labels."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        self.images, self.labels = images, labels
        return self.logits


def numbers(name: str, *shape: int) -> Tensor:
    drawn = Stream.of(1).child(name).uniform(1, math.prod(shape))
    return torch.from_numpy(drawn.reshape(1, *shape)).double()


def case(logits: Tensor | None = None) -> tuple[Model, Judge, Batch]:
    rows = 2 * PAIRS
    first = Gaussian(numbers("s", rows, SPECIFIED), numbers("unused", rows, SPECIFIED))
    second = Gaussian(numbers("mean", rows, UNSPECIFIED), numbers("log_var", rows, UNSPECIFIED))
    judge = Judge(torch.zeros(1, 2 * rows).double() if logits is None else logits)
    labels = torch.tensor([[[0], [0], [2], [2], [1], [1]]])
    return Model(first, second), judge, Batch(numbers("images", rows, *SHAPE), labels)


def losses(method: AdversarialSplit, model: Model, judge: Judge, batch: Batch) -> Any:
    at_step = own_step(0, 60, KnownDraws(), "bernoulli")
    return method.losses(at_step(batch, {AUTOENCODER: model, DISCRIMINATOR: judge}))


def test_codes_are_swapped_within_pairs_and_combined_with_unrelated_z() -> None:
    model, judge, batch = case()
    losses(AdversarialSplit(), model, judge, batch)
    own, swapped, generated = (codes[0] for codes in model.decoder.inputs)
    s = model.first.mean[0]
    noise = KnownDraws().normal("noise", 6, UNSPECIFIED)[0]
    z = model.second.mean[0] + torch.exp(model.second.log_var[0] / 2) * noise
    prior = KnownDraws().normal("prior", 3, UNSPECIFIED)[0]
    for row in range(6):
        partner, other = row ^ 1, (row - 2) % 6
        torch.testing.assert_close(own[row], torch.cat([s[row], z[row]]))
        torch.testing.assert_close(swapped[row], torch.cat([s[partner], z[row]]))
        unrelated = z[row] if row % 2 == 0 else prior[row // 2]
        torch.testing.assert_close(generated[row], torch.cat([s[other], unrelated]))
    images = torch.sigmoid(generated.sum(-1) / 3)
    torch.testing.assert_close(judge.images[0, 6:, 0, 0, 0], images)
    torch.testing.assert_close(judge.images[0, :6], batch.images[0])
    assert judge.labels[0, :, 0].tolist() == [0, 0, 2, 2, 1, 1, 1, 1, 0, 0, 2, 2]


def test_objectives_of_known_logits() -> None:
    """D = 3/4 and 1/5 for real images, 1/2 and 9/10 for generated ones."""
    real = [math.log(3), -math.log(4)] * 3
    generated = [0.0, math.log(9)] * 3
    model, judge, batch = case(torch.tensor([real + generated], dtype=torch.float64))
    actual = losses(AdversarialSplit(swap_weight=2, beta=3, adversarial_weight=7), model, judge, batch)
    own, swapped, _ = model.decoder.inputs

    def nats(codes: Tensor) -> float:
        total = 0.0
        for code, image in zip(codes[0], batch.images[0], strict=True):
            p = 1 / (1 + math.exp(-code.sum().item() / 3))
            total -= sum(x * math.log(p) + (1 - x) * math.log(1 - p) for x in image.flatten().tolist())
        return total / 6

    mean, log_var = model.second.mean[0], model.second.log_var[0]
    kl = 0.5 * (mean**2 + torch.exp(log_var) - log_var - 1).sum().item() / 6
    fooling = (smoothed(1 / 2) + smoothed(9 / 10)) / 2
    judging = (smoothed(3 / 4) + smoothed(1 / 5)) / 2 - (math.log(1 / 2) + math.log(1 / 10)) / 2
    terms = {
        "reconstruction": nats(own),
        "swap": nats(swapped),
        "kl": kl,
        "adversarial": fooling,
        "discriminator_accuracy": 0.25,
    }
    # rel 1e-5: the likelihood is computed in float32
    assert {name: value.item() for name, value in actual.terms.items()} == pytest.approx(terms, rel=1e-5)
    expected = nats(own) + 2 * nats(swapped) + 3 * kl + 7 * 16 * fooling
    assert actual.players[AUTOENCODER].item() == pytest.approx(expected, rel=1e-5)
    assert actual.players[DISCRIMINATOR].item() == pytest.approx(judging / 2)


def smoothed(probability: float) -> float:
    """BCE with the target of the authors' code for real images, labelReal = 0.95."""
    return -0.95 * math.log(probability) - 0.05 * math.log(1 - probability)


def test_default_weights_but_beta_are_those_of_the_authors_code() -> None:
    """train.lua: recweight 0.5, swap1weight 1, swap2weight 0.01, klweightZ 0.1, for means over pixels."""
    model, judge, batch = case()
    actual = losses(AdversarialSplit(beta=1.0), model, judge, batch)
    pixels = math.prod(SHAPE)
    own, swapped, kl, fooling = (
        actual.terms[name].item() for name in ("reconstruction", "swap", "kl", "adversarial")
    )
    # Only ratios matter to Adam. The likelihood penalises errors 1/0.6 times as much as their squared error.
    authors = 0.5 * (2 * own / pixels) + 1 * (2 * swapped / pixels) + 0.01 * fooling
    authors += 0.1 * 6 / pixels * kl / 0.6
    assert actual.players[AUTOENCODER].item() == pytest.approx(pixels * authors, rel=1e-6)


@pytest.mark.usefixtures("small_networks")
def test_s_knows_the_class_and_z_the_rest(tmp_path: Path) -> None:
    run = trained(AdversarialSplit(), tmp_path, learning_rate=2e-3)
    check_parts(run, most_place=0.4, most_class=0.6)
    check_swaps(run)


def real_case(method: AdversarialSplit) -> tuple[dict[str, nn.Module], Batch]:
    plan = Blueprint([Stream.of(0), Stream.of(1)], TINY.shape, 4, label_sizes=(3,))
    factors = TINY.sample_groups(4, 2, 0, ["size"]).reshape(2, 4, 3)
    images = torch.stack([torch.from_numpy(TINY.observe(run)) for run in factors])
    labels = torch.from_numpy(factors[..., :1].copy())
    return method.networks(plan), Batch(images, labels)


class TwoRuns(KnownDraws):
    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        return super().normal(purpose, rows, columns).float().expand(2, -1, -1)


def gradient(loss: Tensor, network: nn.Module) -> float:
    gradients = torch.autograd.grad(
        loss.sum(), list(network.parameters()), allow_unused=True, retain_graph=True
    )
    return sum(float(part.abs().sum()) for part in gradients if part is not None)


def test_which_loss_trains_which_network() -> None:
    method = AdversarialSplit()
    networks, batch = real_case(method)
    model, judge = networks[AUTOENCODER], networks[DISCRIMINATOR]
    at_step = own_step(0, 60, TwoRuns(), "bernoulli")
    losses = method.losses(at_step(batch, networks))
    first, second, decoder = (getattr(model, name) for name in ("first", "second", "decoder"))
    assert gradient(losses.terms["kl"], first) == gradient(losses.terms["kl"], decoder) == 0
    assert gradient(losses.terms["kl"], second) > 0
    for name in ("reconstruction", "swap", "adversarial"):
        assert all(gradient(losses.terms[name], network) > 0 for network in (first, second, decoder)), name
        assert (gradient(losses.terms[name], judge) > 0) == (name == "adversarial")
    # What the discriminator learns does not depend on whether the others can learn.
    before = torch.autograd.grad(losses.players[DISCRIMINATOR].sum(), list(judge.parameters()))
    model.requires_grad_(False)
    alone = method.losses(at_step(batch, networks)).players[DISCRIMINATOR]
    after = torch.autograd.grad(alone.sum(), list(judge.parameters()))
    torch.testing.assert_close(before, after, rtol=0, atol=0)


def test_s_is_certain_and_z_is_not() -> None:
    method = AdversarialSplit(content=1)
    networks, batch = real_case(method)
    posterior = method.encode(networks, batch.images)
    assert posterior.mean.shape == (2, 4, 4)
    assert not AdversarialSplit().stochastic
    torch.testing.assert_close(posterior.log_var[..., 0], torch.full((2, 4), CERTAIN_LOG_VAR))
    assert (posterior.log_var[..., 1:] > -5).all()
    assert method.decode(networks, posterior.mean).shape == (2, 4, *TINY.shape)
    assert method.content_dimensions(10) == 1
    assert replace(method, content="half").content_dimensions(10) == 5


@pytest.mark.parametrize(
    ("class_factors", "columns"),
    [("first", [0]), ("class", [0]), ("y", [2]), ("size, x", [0, 1]), ("x,size", [1, 0])],
)
def test_images_of_a_pair_belong_to_the_labelled_class(class_factors: str, columns: list[int]) -> None:
    method, run = AdversarialSplit(class_factors=class_factors), Stream.of(3)
    source = HostBatches(TINY, torch.device("cpu"))
    assert source.label_sizes(method.sampling) == tuple(TINY.sizes[column] for column in columns)

    class OneRun:
        streams = (run,)

    batch = source.draw(OneRun(), 0, "batch", 20, method.sampling)  # type: ignore[arg-type]
    assert batch.labels is not None
    labels = batch.labels[0]
    assert labels.shape == (40, len(columns))
    assert (labels[0::2] == labels[1::2]).all()
    assert not torch.equal(batch.images[0, 0::2], batch.images[0, 1::2])
    shown = {
        TINY.observe([combination])[0].tobytes(): combination for combination in TINY.factors_at(range(60))
    }
    for image, label in zip(batch.images[0], labels, strict=True):
        assert shown[image.numpy().tobytes()][columns].tolist() == label.tolist()


def test_a_factor_that_is_not_there_is_refused() -> None:
    source = HostBatches(TINY, torch.device("cpu"))
    with pytest.raises(UnweaveError, match='tiny has no factor "shape"'):
        source.label_sizes(AdversarialSplit(class_factors="shape").sampling)
    with pytest.raises(UnweaveError, match="content of adversarial_split must be a whole number >= 0 or 'ha"):
        AdversarialSplit(content=-1)
    plan = Blueprint([Stream.of(0)], TINY.shape, 4, label_sizes=(3,))
    with pytest.raises(UnweaveError, match="of 4 latents the first part would get 4"):
        AdversarialSplit(content=4).networks(plan)
