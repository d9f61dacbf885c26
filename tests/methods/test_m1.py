"""M1: a VAE that labels do not touch, and a classifier of its codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from methods.played import autoencoder_step
from training.test_trainer import spec, train
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation.label_accuracy import label_accuracy
from unweave.methods import M1, VAE
from unweave.methods.m1 import CLASSIFIER, Classifier
from unweave.methods.method import AUTOENCODER, Blueprint, LabelledCodes, StepContext
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.draws import PopulationDraws
from unweave.runs.run import Run
from unweave.streams import Stream

SIZES = (3, 4)


def forward(labelled: LabelledCodes | None) -> StepContext:
    streams = [Stream.of(0), Stream.of(1)]
    draws = PopulationDraws(streams, torch.zeros((), dtype=torch.int64))
    mean = draws.normal("mean", 6, 3).requires_grad_()
    posterior = Gaussian(mean, draws.normal("log_var", 6, 3))
    classifier = Classifier(Blueprint(streams, TINY.shape, 3, label_sizes=SIZES))
    return autoencoder_step(
        torch.full((2,), 9.0), posterior, mean, 0, 60, draws, {CLASSIFIER: classifier}, labelled=labelled
    )


def some_labelled() -> LabelledCodes:
    draws = forward(None).draws
    mean = draws.normal("labelled mean", 6, 3).requires_grad_()
    return LabelledCodes(
        Gaussian(mean, torch.full_like(mean, -50.0)), draws.integers("labels", 6, SIZES), SIZES
    )


def test_classification_against_a_sum_written_out() -> None:
    labelled = some_labelled()
    context = forward(labelled)
    losses = M1().losses(context)
    log_probabilities = context.networks[CLASSIFIER](labelled.posterior.mean)
    right, entropy = np.zeros(2), np.zeros(2)
    for j in range(2):
        logits = log_probabilities[j].detach().numpy()
        for run in range(2):
            for image in range(6):
                label = int(labelled.labels[run, image, j])
                entropy[run] -= logits[run, image, label] / 6
                right[run] += (logits[run, image].argmax() == label) / 12
        np.testing.assert_allclose(np.exp(logits).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(losses.terms["classification"].detach(), entropy, rtol=1e-5)
    np.testing.assert_allclose(losses.terms["accuracy"], right, rtol=1e-5)
    torch.testing.assert_close(losses.players[AUTOENCODER], 9 + context.forward.kl)


def test_the_classifier_does_not_move_the_encoder() -> None:
    labelled = some_labelled()
    losses = M1().losses(forward(labelled))
    moved = torch.autograd.grad(
        losses.players[CLASSIFIER].sum(), [labelled.posterior.mean], retain_graph=True, allow_unused=True
    )
    assert moved[0] is None


def test_its_codes_are_those_of_the_vae(tmp_path: Path) -> None:
    [own] = train(tmp_path / "m1", [spec(M1(labels=20), seed=3, steps=12)])
    [plain] = train(tmp_path / "vae", [spec(VAE(), seed=3, steps=12)])
    weights = own.weights()
    shared = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier.")}
    assert len(shared) < len(weights)
    for name, tensor in plain.weights().items():
        torch.testing.assert_close(shared.pop(name), tensor, rtol=0, atol=1e-6)
    assert not shared
    # A trained run predicts with the classifier that it was trained with.
    run = Run(own, data=TINY)
    classifier = run.networks[CLASSIFIER]
    torch.testing.assert_close(
        classifier.state_dict()["logits.weight"][0], weights["classifier.logits.weight"]
    )
    assert list(label_accuracy(run, 200)) == ["size", "x", "y"]


def test_mistakes_raise_clear_errors() -> None:
    with pytest.raises(UnweaveError, match="labels of m1 must be at least 1; got 0"):
        M1(labels=0)
    with pytest.raises(UnweaveError, match="need a batch of labelled images; got none"):
        M1().losses(forward(None))
