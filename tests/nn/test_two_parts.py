"""Codes of two parts, tables of codes, and a discriminator that gets labels."""

import math

import pytest
import torch

from unweave.errors import UnweaveError
from unweave.nn.distributions.gaussian import Gaussian, certain
from unweave.nn.networks.tables import BOUND, CodeTables, Table
from unweave.nn.networks.two_parts import (
    LabelledDiscriminator,
    Part,
    TwoPartAutoencoder,
    concatenated,
    part_size,
)
from unweave.streams import Stream

SHAPE = (1, 32, 32)


def streams(*seeds: int) -> list[Stream]:
    return [Stream.of(seed) for seed in seeds]


def test_parts_stand_concatenated_each_other() -> None:
    first = certain(torch.tensor([[1.0, 2.0]]))
    both = concatenated(first, Gaussian(torch.tensor([[3.0]]), torch.tensor([[0.5]])))
    assert both.mean.tolist() == [[1, 2, 3]]
    torch.testing.assert_close(both.log_var, torch.tensor([[math.log(1e-4), math.log(1e-4), 0.5]]))


@pytest.mark.parametrize(("part", "latents", "expected"), [("half", 10, 5), ("half", 3, 1), (4, 10, 4)])
def test_the_size_of_the_first_part(part: Part, latents: int, expected: int) -> None:
    assert part_size(part, latents) == expected


def test_the_two_encoders_start_from_different_weights() -> None:
    model = TwoPartAutoencoder(streams(0, 1), SHAPE, 5, 2)
    first, second = model.encode_parts(torch.zeros(2, 3, *SHAPE, dtype=torch.uint8))
    assert first.mean.shape == (2, 3, 2)
    assert second.mean.shape == (2, 3, 3)
    assert model.decoder(concatenated(first, second).mean).shape == (2, 3, *SHAPE)
    one, other = (dict(part.named_parameters())["dense.0.weight"] for part in (model.first, model.second))
    assert not torch.allclose(one, other)
    alone = dict(TwoPartAutoencoder(streams(1), SHAPE, 5, 2).named_parameters())
    torch.testing.assert_close(alone["first.dense.0.weight"][0], one[1], rtol=0, atol=0)


@pytest.mark.parametrize("first", [0, 4, 5])
def test_both_parts_must_have_a_dimension(first: int) -> None:
    with pytest.raises(UnweaveError, match=f"of 4 latents the first part would get {first}. Take more lat"):
        TwoPartAutoencoder(streams(0), SHAPE, 4, first)


def test_the_discriminator_sees_images_and_every_label() -> None:
    network = LabelledDiscriminator(streams(3, 4), SHAPE, (3, 2))
    drawn = torch.from_numpy(Stream.of(0).uniform(2, 32 * 32)).float()
    images = drawn.view(2, 1, *SHAPE).expand(-1, 6, -1, -1, -1)
    labels = torch.cartesian_prod(torch.arange(3), torch.arange(2)).expand(2, -1, -1)
    logits = network(images, labels)
    assert logits.shape == (2, 6)
    assert len(set(logits[0].tolist())) == 6, "six combinations of labels"
    alone = LabelledDiscriminator(streams(4), SHAPE, (3, 2))(images[1:], labels[1:])
    torch.testing.assert_close(alone[0], logits[1], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(network(1 - images, labels), logits)


def test_rows_are_looked_up_run_by_run() -> None:
    table = Table(streams(0, 1), "test", 4, 3, like=3)
    index = torch.tensor([[0, 3, 3], [2, 1, 0]])
    actual = table(index)
    assert actual.shape == (2, 3, 3)
    for run in range(2):
        for place, row in enumerate(index[run]):
            torch.testing.assert_close(actual[run, place], table.rows[run, row], rtol=0, atol=0)
    actual.sum().backward()
    assert table.rows.grad is not None
    assert table.rows.grad[..., 0].tolist() == [[1, 0, 0, 2], [1, 1, 1, 0]]


def test_rows_start_small_and_are_the_runs_own() -> None:
    rows = Table(streams(0, 1), "test", 1000, 3, like=3).rows.detach()
    assert rows.abs().max() < BOUND
    assert rows.std().item() == pytest.approx(BOUND / math.sqrt(3), rel=0.05)
    torch.testing.assert_close(Table(streams(1), "test", 1000, 3, like=3).rows[0], rows[1], rtol=0, atol=0)
    assert not torch.allclose(rows[0], rows[1])


def test_a_class_is_a_combination_of_labels() -> None:
    """Of sizes 3 and 4, labels (2, 1) are class 2 x 4 + 1 = 9."""
    tables = CodeTables(streams(0), (3, 4), 5, 2, 3)
    assert tables.classes.rows.shape == (1, 12, 2)
    of_class, of_image = tables(torch.tensor([[[2, 1], [0, 3]]]), torch.tensor([[4, 0]]))
    assert torch.equal(of_class[0], tables.classes.scale * tables.classes.rows[0, [9, 3]])
    assert torch.equal(of_image[0], tables.images.scale * tables.images.rows[0, [4, 0]])


def test_a_short_code_grows_as_fast_as_the_authors_long_one() -> None:
    """One step of Adam, of whatever gradient, moves codes of 5 and 128 dimensions by the same distance."""
    moved = []
    for columns in (5, 128, 200):
        table = Table(streams(0), "test", 2, columns, like=128)
        adam = torch.optim.Adam(table.parameters(), 3e-3)
        before = table(torch.tensor([[1]])).detach()
        table(torch.tensor([[1]])).square().sum().backward()
        adam.step()
        moved.append((table(torch.tensor([[1]])) - before).norm().item())
    assert moved[0] == pytest.approx(moved[1], rel=1e-3)
    assert moved[1] == pytest.approx(3e-3 * math.sqrt(128), rel=1e-3)
    assert moved[2] == pytest.approx(3e-3 * math.sqrt(200), rel=1e-3), "longer codes are not slowed down"
