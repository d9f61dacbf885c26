"""Priors in two dimensions: known points, and the moments of all parts together."""

import math

import torch

from unweave.nn.distributions.priors import DISTANCE, LENGTH, WIDTH, petals, swiss_roll
from unweave.streams import Stream


def test_the_middle_and_the_axes_of_a_petal() -> None:
    """Part 1 of 4 points along the second axis; its short axis is the first one, reversed."""
    normal = torch.tensor([[0.0, 0.0, 7.0], [1.0, 0.0, 8.0], [0.0, 1.0, 9.0]])
    expected = [[0.0, DISTANCE, 7.0], [0.0, DISTANCE + LENGTH, 8.0], [-WIDTH, DISTANCE, 9.0]]
    torch.testing.assert_close(petals(normal, torch.ones(3), 4), torch.tensor(expected), rtol=0, atol=1e-6)


def test_the_roll_covers_equal_areas_in_equal_parts() -> None:
    """Places 0, K/4 and K are 0, one and two turns from the middle, at the radii 0, 1 and 2."""
    normal, places = torch.tensor([[5.0, 5.0, 1.0]] * 4), torch.tensor([0.0, 2.0, 8.0, 4.5])
    points = swiss_roll(normal, places, 8)
    torch.testing.assert_close(points[:3, 0], torch.tensor([0.0, 1.0, 2.0]), rtol=0, atol=1e-5)
    torch.testing.assert_close(points[:3, 1], torch.zeros(3), rtol=0, atol=1e-5)
    assert (points[:, 2] == 1).all()
    assert math.isclose(float(points[3, :2].square().sum()), 4 * 4.5 / 8, rel_tol=1e-5)


def test_all_parts_together_have_about_the_variance_of_the_normal_prior() -> None:
    draws = Stream.of(0)
    normal = torch.from_numpy(draws.child("normal").normal(20_000, 4))
    parts = torch.from_numpy(draws.child("part").integers(20_000, [10])[:, 0])
    places = parts + torch.from_numpy(draws.child("place").uniform(20_000, 1)[:, 0])
    for points in (petals(normal, parts, 10), swiss_roll(normal, places, 10)):
        assert points.shape == (20_000, 4)
        assert torch.allclose(points.var(0), torch.ones(4, dtype=points.dtype), atol=0.2)
        assert points[:, 2:].mean(0).abs().max() < 0.05
        assert torch.equal(points[:, 2:], normal[:, 2:])
