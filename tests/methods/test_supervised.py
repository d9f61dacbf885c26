"""The supervised baseline: its losses, what trains what, predictions, and accuracy on other images."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from methods.played import Played
from training.test_trainer import spec, train
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation.label_accuracy import label_accuracy
from unweave.methods import VAE, Supervised
from unweave.methods.method import Blueprint
from unweave.methods.supervised import DECODER, ENCODER, LabelEncoder
from unweave.runs.run import Run
from unweave.streams import Stream


def encoder_of(runs: Played) -> LabelEncoder:
    encoder = runs.networks[ENCODER]
    assert isinstance(encoder, LabelEncoder)
    return encoder


def test_losses_against_torch() -> None:
    sizes = torch.tensor([3.0, 4.0, 5.0])
    runs = Played.of(Supervised(labels=20))
    labels = runs.step.labelled.labels.float()
    codes = encoder_of(runs)(runs.step.labelled.images)[..., :3]
    expected = binary_cross_entropy_with_logits(codes, labels / sizes, reduction="none").sum(-1).mean(-1)
    torch.testing.assert_close(runs.losses().players[ENCODER], expected)

    runs = Played.of(Supervised("l2", labels=20))
    expected = (encoder_of(runs)(runs.step.labelled.images)[..., :3] - labels).square().sum(-1).mean(-1)
    torch.testing.assert_close(runs.losses().players[ENCODER], expected)

    runs = Played.of(Supervised("softmax", factors="size,y", labels=20))
    outputs = encoder_of(runs).encoder(runs.step.labelled.images).mean
    for run, loss in enumerate(runs.losses().players[ENCODER]):
        label = runs.step.labelled.labels[run]
        parts = outputs[run].split([3, 5], dim=-1)
        torch.testing.assert_close(
            loss, sum(cross_entropy(part, label[:, j]) for j, part in enumerate(parts))
        )


@pytest.mark.parametrize("loss", ["xent", "embed", "softmax"])
def test_only_labelled_images_train_the_encoder(loss: Any) -> None:
    runs = Played.of(Supervised(loss, labels=20))
    before = runs.gradients(ENCODER)
    blank = replace(runs.batch, images=torch.zeros_like(runs.batch.images))
    other = Played(runs.method, replace(runs.step, batch=blank))
    torch.testing.assert_close(other.gradients(ENCODER), before)
    reconstruction = runs.losses().players[DECODER].sum()
    moved = torch.autograd.grad(reconstruction, runs.parameters(ENCODER), allow_unused=True)
    assert all(gradient is None for gradient in moved)


def test_predictions_are_the_closest_values() -> None:
    """Codes that are right to a third of a step predict their labels."""
    plan = Blueprint([Stream.of(0)], TINY.shape, 4, label_sizes=TINY.sizes)
    labels = torch.cartesian_prod(*map(torch.arange, TINY.sizes))
    shifted = (labels + 0.3 * torch.tensor([1.0, -1.0, 1.0])).clamp(0.01)
    codes = {
        "xent": torch.logit((shifted / torch.tensor(TINY.sizes)).clamp(0.001, 0.999)),
        "l2": shifted,
    }
    for loss, values in codes.items():
        network = LabelEncoder(plan, loss)  # type: ignore[arg-type]
        with torch.no_grad():
            network.encoder.heads.weight.zero_()
        for value, label in zip(values[:20], labels[:20], strict=True):
            with torch.no_grad():
                network.encoder.heads.bias[0, :3] = value
            assert network.predict(torch.zeros(1, 1, *TINY.shape)).squeeze().tolist() == label.tolist()


def test_softmax_codes_are_numbers_of_the_values() -> None:
    runs = Played.of(Supervised("softmax", factors="size", labels=20))
    encoder = encoder_of(runs)
    with torch.no_grad():
        encoder.encoder.heads.weight.zero_()
        encoder.encoder.heads.bias[:] = torch.tensor([0.0, 0.0, 99.0, 0.0, 0.0, 0.0])
    code = runs.method.encode(runs.networks, runs.batch.images).mean
    torch.testing.assert_close(code[..., 0], torch.full((2, 6), 1 / math.sqrt(2 / 3)))
    assert not code[..., 1:].any()


def test_it_learns_its_labels_and_predicts_others(tmp_path: Path) -> None:
    method = Supervised("softmax", factors="x", labels=30)
    [folder] = train(tmp_path, [spec(method, steps=80, learning_rate=1e-3)])
    accuracy = label_accuracy(Run(folder, data=TINY))
    assert list(accuracy) == ["x"]
    assert accuracy["x"] > 0.7, "a quarter is chance"


def test_mistakes_raise_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="supervised needs a latent for each of the 3 labels; got 2"):
        LabelEncoder(Blueprint([Stream.of(0)], TINY.shape, 2, label_sizes=TINY.sizes), "xent")
    with pytest.raises(UnweaveError, match="supervised_loss of supervised must be 'xent' or 'l2'"):
        Supervised("cov")  # type: ignore[arg-type]
    [folder] = train(tmp_path, [spec(VAE(), steps=2)])
    with pytest.raises(UnweaveError, match="vae predicts no labels"):
        label_accuracy(Run(folder, data=TINY))
