"""Codebooks against a search by hand."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.nn.networks.quantised import Codebook, QuantisedAutoencoder, separate_codebooks
from unweave.streams import Stream

STREAMS = [Stream.of(0), Stream.of(1)]


def learned_codebook(size: int = 5, latents: int = 3) -> Codebook:
    """With values that differ between runs and dimensions, in no order."""
    codebook = separate_codebooks(2, latents, size)
    values = [stream.child("values").normal(latents, size) for stream in STREAMS]
    codebook.values.data.copy_(torch.from_numpy(np.stack(values)))
    return codebook


def test_values_start_evenly_spread() -> None:
    values = separate_codebooks(2, 3, 5).values
    assert values.shape == (2, 3, 5)
    torch.testing.assert_close(values[1, 2], torch.tensor([-0.5, -0.25, 0.0, 0.25, 0.5]))


def test_each_number_becomes_the_nearest_value_of_its_dimension() -> None:
    codebook = learned_codebook()
    z = torch.stack([torch.from_numpy(stream.child("z").normal(7, 3)).float() for stream in STREAMS])
    actual = codebook(z).detach().numpy()
    for run in range(2):
        for row in range(7):
            for dimension in range(3):
                values = codebook.values[run, dimension].tolist()
                number = float(z[run, row, dimension])
                assert actual[run, row, dimension] == np.float32(min(values, key=lambda v: abs(v - number)))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=6, max_size=6))
def test_values_stay_what_they_are(numbers: list[float]) -> None:
    codebook = learned_codebook(latents=1)
    once = codebook(torch.tensor(numbers).view(2, 3, 1))
    assert torch.equal(codebook(once), once)


def test_gradients_reach_the_chosen_values_only() -> None:
    codebook = separate_codebooks(1, 1, 3)  # -0.5, 0, 0.5
    z = torch.tensor([[[0.4], [0.6], [-0.1]]], requires_grad=True)
    quantised = codebook(z)
    assert quantised.detach().flatten().tolist() == [0.5, 0.5, 0.0]
    quantised.sum().backward()
    assert codebook.values.grad is not None
    assert codebook.values.grad.flatten().tolist() == [0.0, 1.0, 2.0]
    assert z.grad is None


def test_squared_weights_are_those_of_encoder_and_decoder_without_biases() -> None:
    network = QuantisedAutoencoder(STREAMS, (1, 32, 32), 3, "released", separate_codebooks(2, 3, 4))
    for name, parameter in network.named_parameters():
        if not name.endswith("weight"):
            parameter.data.fill_(100.0)
    expected = [
        sum(
            float(p[run].detach().double().square().sum())
            for n, p in network.named_parameters()
            if n.endswith("weight")
        )
        for run in range(2)
    ]
    np.testing.assert_allclose(network.squared_weights().detach().numpy(), expected, rtol=1e-5)
