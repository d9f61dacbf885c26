"""Rotated, zoomed and shifted images against exact cases."""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.nn.transforms import moved_images

IMAGES = torch.rand(2, 3, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def moved(
    images: Tensor, angle: float = 0.0, zoom: float = 1.0, shift: tuple[float, float] = (0, 0)
) -> Tensor:
    each = torch.ones(images.shape[:2])
    return moved_images(images, angle * each, zoom * each, each[..., None] * torch.tensor(shift))


def test_nothing_changes_without_a_move_and_bytes_become_numbers() -> None:
    torch.testing.assert_close(moved(IMAGES), IMAGES)
    torch.testing.assert_close(moved((255 * IMAGES).byte()), (255 * IMAGES).byte() / 255)


def test_a_quarter_turn_is_counter_clockwise() -> None:
    torch.testing.assert_close(moved(IMAGES, angle=90), IMAGES.rot90(1, (-2, -1)), atol=1e-4, rtol=0)
    torch.testing.assert_close(moved(IMAGES, angle=180), IMAGES.rot90(2, (-2, -1)), atol=1e-4, rtol=0)


def test_a_shift_is_to_the_right_and_down_and_repeats_the_border() -> None:
    actual = moved(IMAGES, shift=(0.25, 0.125))
    torch.testing.assert_close(actual[..., 1:, 2:], IMAGES[..., :-1, :-2], atol=1e-5, rtol=0)
    torch.testing.assert_close(actual[..., 0, 2:], IMAGES[..., 0, :-2], atol=1e-5, rtol=0)


def test_a_zoom_enlarges_about_the_middle() -> None:
    dot = torch.zeros(1, 1, 1, 16, 16)
    dot[..., 6:10, 6:10] = 1
    wide = moved(dot, zoom=2.0)[0, 0, 0]
    assert wide[8].gt(0.5).nonzero().flatten().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert wide[:, 8].gt(0.5).nonzero().flatten().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_a_turned_bar_keeps_its_length_in_an_oblong_image() -> None:
    bar = torch.zeros(1, 1, 1, 16, 32)
    bar[..., 7:9, 12:20] = 1
    turned = moved(bar, angle=90)[0, 0, 0]
    assert turned[:, 15:17].gt(0.5).sum().item() == 16
    assert turned.gt(0.5).sum().item() == 16
    assert turned[4:12, 15:17].gt(0.5).all()


def test_each_image_moves_by_its_own_amount() -> None:
    angle = torch.tensor([[0.0, 90.0, 180.0], [90.0, 0.0, 0.0]])
    actual = moved_images(IMAGES, angle, torch.ones(2, 3), torch.zeros(2, 3, 2))
    torch.testing.assert_close(actual[0, 1], IMAGES[0, 1].rot90(1, (-2, -1)), atol=1e-4, rtol=0)
    torch.testing.assert_close(actual[1, 1:], IMAGES[1, 1:], atol=1e-5, rtol=0)
