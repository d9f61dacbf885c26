"""The networks of InfoGAN-CR: their layers as published, and properties of normalisation."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.layers import Layer, set_precision
from unweave.nn.layers.batch_norm import BatchNorm
from unweave.nn.networks.gan import REFERENCES, Generator, PairJudge, ReadingDiscriminator
from unweave.streams import Stream

RUNS = [Stream.of(seed) for seed in (0, 1)]
SHAPE = (1, 32, 32)


def uniform(name: str, rows: int, columns: int) -> Tensor:
    drawn = [run.child(name).uniform(rows, columns) for run in RUNS]
    return torch.from_numpy(2 * np.stack(drawn) - 1).float()


def images(name: str, rows: int, channels: int = 1) -> Tensor:
    return (uniform(name, rows, channels * 32 * 32) / 2 + 0.5).view(2, rows, channels, 32, 32)


def count(network: nn.Module) -> int:
    return sum(parameter[0].numel() for parameter in network.parameters())


def test_sizes_are_those_of_the_authors_networks_on_dsprites() -> None:
    """5 codes and 5 numbers of noise; each layer with its biases, then two numbers a feature of a norm."""
    shape = (1, 64, 64)
    generator = 1408 + 256 + 132096 + 2048 + 65600 + 128 + 32800 + 64 + 16416 + 64 + 513
    features = 544 + 16416 + 32832 + 65600 + 131200
    assert count(Generator(RUNS, shape, 10)) == generator
    assert count(ReadingDiscriminator(RUNS, shape, 5)) == features + 129 + 16512 + 645
    assert count(ReadingDiscriminator(RUNS, shape, 5, variance=True)) == features + 129 + 16512 + 2 * 645
    assert (
        count(PairJudge(RUNS, shape, 5)) == features + 512 + 645
    )  # the input of its first layer is two images


def test_weights_start_normal_with_the_authors_deviation_each_from_a_stream_of_its_own() -> None:
    networks = Generator(RUNS, SHAPE, 6), ReadingDiscriminator(RUNS, SHAPE, 4), PairJudge(RUNS, SHAPE, 4)
    weights = [part.weight.detach() for net in networks for part in net.modules() if isinstance(part, Layer)]
    assert len(weights) == 6 + 8 + 6
    for weight in weights:
        scaled = weight.flatten(1) / 0.02
        near = 4 / weight[0].numel() ** 0.5  # four standard deviations of the estimate
        assert (scaled.mean(1).abs() < near).all()
        assert ((scaled.square().mean(1) - 1).abs() < 1.5 * near).all()
    firsts = [float(weight[run].flatten()[0]) for weight in weights for run in range(2)]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("shape", [(2, 9, 3), (2, 9, 3, 4, 5)])
@pytest.mark.parametrize("rows", [None, 5])
def test_batch_norm_is_torchs_for_each_run(shape: tuple[int, ...], rows: int | None) -> None:
    """Over the whole batch, or over another one: its first rows."""
    norm = BatchNorm(2, 3)
    with torch.no_grad():
        norm.scale.copy_(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        norm.shift.copy_(torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]))
    x = (3 * uniform("x", 9, 3 * 20) + 1).flatten()[: torch.Size(shape).numel()].view(shape)
    actual = norm(x) if rows is None else norm(x, x[:, :rows])
    for run in range(2):
        values = x[run, :rows].transpose(0, 1).flatten(1)
        expected = F.batch_norm(
            x[run], values.mean(1), values.var(1, correction=0), norm.scale[run], norm.shift[run], eps=1e-5
        )
        torch.testing.assert_close(actual[run], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 4, 3, 2, 3)])
def test_the_gradient_of_batch_norm_is_that_of_its_values(shape: tuple[int, ...]) -> None:
    norm = BatchNorm(2, 3).double()
    x = (2 * uniform("x", 9, 20) + 1).double().flatten()[: torch.Size(shape).numel()].view(shape)
    scale, shift = (uniform(name, 1, 3).double().squeeze(1) for name in ("scale", "shift"))

    def values(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(norm, {"scale": scale, "shift": shift}, x)
        return output

    arguments = tuple(tensor.clone().requires_grad_() for tensor in (x, scale, shift))
    assert torch.autograd.gradcheck(values, arguments)


@torch.no_grad()
def test_an_image_alone_is_normalised_as_among_the_reference_codes() -> None:
    generator, z = Generator(RUNS, SHAPE, 6), uniform("z", 3, 6)
    actual = generator.independent_logits(z)
    reference = generator.reference.expand(2, -1, -1)
    torch.testing.assert_close(generator.independent_logits(reference[:, 5:8]), generator(reference)[:, 5:8])
    torch.testing.assert_close(generator.independent_logits(z[:, :1]), actual[:, :1], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(generator(z), actual, atol=1e-2)  # three codes are another batch


@torch.no_grad()
def test_reference_codes_stand_for_a_batch_and_are_alike_for_all_runs() -> None:
    generator = Generator(RUNS, SHAPE, 6)
    assert generator.reference.shape == (REFERENCES, 6)
    assert generator.reference.abs().max() <= 1
    assert abs(float(generator.reference.mean())) < 0.1
    assert torch.equal(generator.reference, Generator([Stream.of(9)], SHAPE, 6).reference)
    assert not any("reference" in name for name in generator.state_dict())
    z = uniform("z", 400, 6)
    difference = (generator(z) - generator.independent_logits(z)).abs().mean()
    assert difference < 0.2 * generator(z).std()


def weights_but(network: nn.Module, *last: str) -> list[Tensor]:
    return [
        parameter
        for name, parameter in network.named_parameters()
        if name.endswith("weight") and not name.startswith(last)
    ]


@torch.no_grad()
def test_images_of_normal_numbers_have_uniform_codes_and_likely_categories() -> None:
    """The normal quantiles of 0.025 and 0.975 are -0.95 and 0.95 of a uniform number from -1 to 1."""
    quantile = 1.959963984540054
    plain = Generator(RUNS, (1, 32, 32), 4)
    numbers = torch.tensor([-quantile, 0, quantile, 0]).expand(2, 3, 4)
    uniform = torch.tensor([-0.95, 0, 0.95, 0]).expand(2, 3, 4)
    assert plain.drawn == 4
    torch.testing.assert_close(plain.from_normal(numbers), plain.independent_logits(uniform))
    with_categories = Generator(RUNS, (1, 32, 32), 3 + 2, 3)
    prior = torch.tensor([[0.01, 0.98, 0.01], [0.5, 0.25, 0.25]])
    assert with_categories.drawn == 3
    rows = torch.tensor([[-quantile, 0, 0], [0.1, 0, 0], [quantile, 0, 0]]).expand(2, 3, 3)
    classes = torch.tensor([[1, 1, 1], [0, 1, 2]])  # of the uniform numbers 0.025, 0.54 and 0.975
    inputs = torch.cat([F.one_hot(classes, 3).float(), torch.zeros(2, 3, 2)], dim=-1)
    torch.testing.assert_close(
        with_categories.from_normal(rows, prior), with_categories.independent_logits(inputs)
    )
    equal = torch.full((2, 3), 1 / 3)
    torch.testing.assert_close(with_categories.from_normal(rows), with_categories.from_normal(rows, equal))


@torch.no_grad()
def test_the_scale_of_normalised_weights_does_not_matter() -> None:
    discriminator, judge = ReadingDiscriminator(RUNS, SHAPE, 3), PairJudge(RUNS, SHAPE, 3)
    x, other = images("x", 4), images("other", 4)
    verdict, guess = discriminator(x)
    logits = judge(x, other)
    for weight in weights_but(discriminator) + weights_but(judge, "logits"):
        weight.mul_(7.0)
    new_verdict, new_guess = discriminator(x)
    torch.testing.assert_close(new_verdict, verdict, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(new_guess.numbers.mean, guess.numbers.mean, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(judge(x, other), logits, rtol=1e-3, atol=1e-4)
    judge.logits.weight.mul_(7.0)
    torch.testing.assert_close(judge(x, other), 7 * logits, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_q_is_read_from_the_same_features_with_or_without_d() -> None:
    for variance in (False, True):
        discriminator = ReadingDiscriminator(RUNS, SHAPE, 3, variance)
        verdict, read_codes = discriminator(images("x", 4))
        guess = read_codes.numbers
        read = discriminator.encode(images("x", 4))
        assert verdict.shape == (2, 4)
        assert guess.mean.shape == guess.log_var.shape == (2, 4, 3)
        torch.testing.assert_close(read.mean, math.sqrt(3) * guess.mean)
        torch.testing.assert_close(read.log_var, guess.log_var + math.log(3))
        assert bool((guess.log_var == 0).all()) is not variance


@torch.no_grad()
def test_the_judge_knows_first_from_second() -> None:
    judge, x, other = PairJudge(RUNS, (3, 32, 32), 5), images("x", 4, 3), images("other", 4, 3)
    assert judge(x, other).shape == (2, 4, 5)
    assert not torch.allclose(judge(x, other), judge(other, x))


@torch.no_grad()
def test_what_networks_give_is_float32_in_bfloat16_too() -> None:
    generator, z = Generator(RUNS, SHAPE, 4), uniform("z", 8, 4)
    discriminator, judge = ReadingDiscriminator(RUNS, SHAPE, 3), PairJudge(RUNS, SHAPE, 3)
    full = generator(z), discriminator(images("x", 8))[0], judge(images("x", 8), images("y", 8))
    for network in (generator, discriminator, judge):
        set_precision(network, "bf16")
    rounded = generator(z), discriminator(images("x", 8))[0], judge(images("x", 8), images("y", 8))
    for exact, actual in zip(full, rounded, strict=True):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, exact, rtol=0.1, atol=0.1 * float(exact.std()) + 0.01)


@pytest.mark.parametrize("build", [Generator, ReadingDiscriminator, PairJudge])
def test_images_that_cannot_be_halved_four_times_are_refused(build: Callable[..., nn.Module]) -> None:
    with pytest.raises(UnweaveError, match=r"in multiples of 16; got 40 x 28\. Resize them"):
        build(RUNS, (1, 40, 28), 3)
