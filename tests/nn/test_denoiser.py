"""The U-Net with attention to tokens, part by part, in float64 where an exact answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.nn.layers import Linear
from unweave.nn.networks.attention import Attention, AttentionBlock, GroupNorm, LayerNorm
from unweave.nn.networks.concept_tokens import ConceptTokens, DiffusionAutoencoder
from unweave.nn.networks.denoiser import Denoiser, in_patches, of_patches, resized, time_embedding
from unweave.streams import Stream

RUNS = [Stream.of(seed) for seed in (0, 1)]


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@torch.no_grad()
def perturbed(network: nn.Module) -> nn.Module:
    """The network in float64, with biases, gains and last layers other than at the start."""
    for number, parameter in enumerate(network.parameters()):
        noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        parameter.add_(0.1 * noise)
    return network.double()


def dense(layer: object, x: Tensor, run: int) -> Tensor:
    assert isinstance(layer, Linear)
    return x @ layer.weight[run] + layer.bias[run]


@torch.no_grad()
def test_attention_is_a_weighted_mean_of_values_for_each_head() -> None:
    """By a loop over runs, images, places and heads: weights exp(q k / sqrt(d)) over their sum."""
    attention = perturbed(Attention(RUNS, "attention", 16, 5))
    assert isinstance(attention, Attention)
    assert attention.heads == 2
    x, tokens = drawn(2, 3, 4, 16), drawn(2, 3, 6, 5)
    for run in range(2):
        for image in range(3):
            key, value = dense(attention.key_and_value, tokens[run, image], run).split(16, dim=-1)
            for place in range(4):
                query, read = dense(attention.query, x[run, image, place], run), []
                for head in (slice(0, 8), slice(8, 16)):
                    weights = [math.exp(float(query[head] @ k[head]) / math.sqrt(8)) for k in key]
                    rows = [w / sum(weights) * v[head] for w, v in zip(weights, value, strict=True)]
                    read.append(torch.stack(rows).sum(0))
                expected = dense(attention.output, torch.cat(read), run)
                torch.testing.assert_close(attention(x, tokens)[run, image, place], expected)


@torch.no_grad()
def test_normalisations_are_those_of_torch_with_a_gain_and_shift_a_run() -> None:
    images, change = drawn(2, 3, 48, 4, 4), drawn(2, 3, 96)
    group, layer = perturbed(GroupNorm(2, 48)), perturbed(LayerNorm(2, 48))
    assert isinstance(group, GroupNorm)
    assert group.groups == 16  # the largest number that divides 32 and 48
    rows = images.flatten(3).transpose(2, 3)
    for run in range(2):
        expected = F.group_norm(images[run], 16, group.gain[run], group.shift[run])
        torch.testing.assert_close(group(images)[run], expected)
        scale, shift = change[run].chunk(2, dim=-1)
        expected = expected * (1 + scale[..., None, None]) + shift[..., None, None]
        torch.testing.assert_close(group(images, change)[run], expected)
        gain, shift = (layer.get_parameter(name)[run] for name in ("gain", "shift"))
        torch.testing.assert_close(layer(rows)[run], F.layer_norm(rows[run], (48,), gain, shift))


def test_the_time_is_embedded_as_sines_and_cosines() -> None:
    """By hand: frequencies 10000^(-i / 4), as in the program of the authors."""
    embedded = time_embedding(torch.tensor([[0, 500]]), 8)
    frequencies = [1, 0.1, 0.01, 0.001]
    expected = [math.cos(500 * f) for f in frequencies] + [math.sin(500 * f) for f in frequencies]
    assert embedded[0, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert embedded[0, 1].tolist() == pytest.approx(expected, abs=1e-4)


def test_images_are_halved_by_means_and_doubled_by_copies() -> None:
    x = torch.arange(16.0).view(1, 1, 1, 4, 4)
    assert resized(x, "half")[0, 0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert torch.equal(resized(resized(x, "half"), "double")[..., ::2, ::2], resized(x, "half"))
    assert torch.equal(resized(resized(x, "double"), "half"), x)


def small_denoiser(shape: tuple[int, int, int] = (3, 8, 8), levels: int = 2, patch: int = 2) -> Denoiser:
    return Denoiser(RUNS, shape, 5, 8, levels, 1, patch)


def test_blocks_start_as_the_identity_and_the_network_at_zero() -> None:
    x, tokens = drawn(2, 3, 8, 4, 4).float(), drawn(2, 3, 6, 5).float()
    assert torch.equal(AttentionBlock(RUNS, "block", 8, 5)(x, tokens), x)
    images, times = drawn(2, 3, 3, 8, 8).float(), torch.zeros(2, 3, dtype=torch.int64)
    assert not small_denoiser()(images, times, tokens).any()


@torch.no_grad()
def test_the_order_of_tokens_does_not_matter_but_each_of_them_does() -> None:
    network = perturbed(small_denoiser())
    images, tokens, times = drawn(2, 3, 3, 8, 8), drawn(2, 3, 6, 5), torch.tensor([[0, 10, 999]] * 2)
    velocity = network(images, times, tokens)
    assert velocity.shape == images.shape
    torch.testing.assert_close(network(images, times, tokens[:, :, [5, 0, 3, 1, 2, 4]]), velocity)
    for token in range(6):
        changed = tokens.clone()
        changed[:, 1, token] += 1
        difference = (network(images, times, changed) - velocity).abs().amax((0, 2, 3, 4))
        assert difference[1] > 1e-4
        assert not difference[[0, 2]].any()  # of the other images
    later = network(images, times + torch.tensor([0, 100, 0]), tokens)
    assert (later - velocity).abs().amax((0, 2, 3, 4)).gt(1e-4).tolist() == [False, True, False]


@torch.no_grad()
def test_a_token_is_a_function_of_its_own_code_in_its_own_way() -> None:
    maps = perturbed(ConceptTokens(RUNS, 4, 5))
    codes = drawn(2, 3, 4)
    tokens = maps(codes)
    assert tokens.shape == (2, 3, 4, 5)
    for run in range(2):
        for code in range(4):
            x = codes[run, :, code, None]
            for layer in range(3):
                weight, bias = (
                    maps.get_parameter(f"{part}.{layer}")[run, code] for part in ("weights", "biases")
                )
                x = (x if layer == 0 else F.elu(x)) @ weight + bias
            torch.testing.assert_close(tokens[run, :, code], x)
    same = maps(torch.ones(2, 1, 4, dtype=torch.float64))
    assert (same[:, :, :1] - same[:, :, 1:]).abs().amax(-1).gt(1e-3).all()


@torch.no_grad()
def test_all_codes_are_decoded_from_one_noise_by_what_the_network_predicts() -> None:
    """A network that predicts the velocity of one grey image decodes every code to it."""
    denoiser = small_denoiser((1, 8, 8), levels=1)
    network = DiffusionAutoencoder(RUNS, (1, 8, 8), 4, "mlp", denoiser, 5, ddim_steps=7)
    grey = 0.3
    start, seen = Stream.of(0).child("start of decoding").normal(1, 64).reshape(1, 8, 8), []

    def exact(x: Tensor, times: Tensor, _tokens: Tensor) -> Tensor:
        seen.append((int(times[0, 0]), x[1, 2].numpy()))
        share = network.shares[times][..., None, None, None]
        noise = (x - share.sqrt() * (2 * grey - 1)) / (1 - share).sqrt()
        return share.sqrt() * noise - (1 - share).sqrt() * (2 * grey - 1)

    denoiser.forward = exact  # type: ignore[assignment, method-assign]
    images = network.decode(torch.zeros(2, 3, 4)).sigmoid()
    torch.testing.assert_close(images, torch.full((2, 3, 1, 8, 8), grey), rtol=0, atol=1e-4)
    assert [time for time, _ in seen] == [999, 832, 666, 500, 333, 166, 0]
    np.testing.assert_allclose(seen[0][1], start, atol=1e-6)


@torch.no_grad()
def test_patches_are_those_of_torch_and_no_codes_make_no_images() -> None:
    """`F.pixel_unshuffle` leaves a batch without images as it is."""
    x = drawn(2, 3, 5, 8, 12)
    patches = in_patches(x, 4)
    assert torch.equal(patches, F.pixel_unshuffle(x.flatten(0, 1), 4).unflatten(0, (2, 3)))
    assert torch.equal(of_patches(patches, 4), x)
    network = DiffusionAutoencoder(
        RUNS, (1, 8, 8), 4, "mlp", small_denoiser((1, 8, 8), levels=1), 5, ddim_steps=2
    )
    assert network.decode(torch.zeros(2, 0, 4)).shape == (2, 0, 1, 8, 8)


def test_sizes_must_fit_patches_and_levels() -> None:
    assert small_denoiser((1, 24, 16), levels=3)(
        torch.zeros(2, 1, 1, 24, 16), torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1, 6, 5)
    ).shape == (2, 1, 1, 24, 16)
    with pytest.raises(UnweaveError, match=r"in multiples of 8; got 12 x 8\. Resize .* smaller patches"):
        small_denoiser((1, 12, 8), levels=3)
