"""Labels that a semi-supervised run holds out: training never sees them, and they choose between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from training.tiny import TINY
from unweave.data.grid import Factors, Images
from unweave.data.supervision import labelled
from unweave.errors import UnweaveError
from unweave.methods import BetaVAE, S2BetaVAE
from unweave.methods.semi_supervised import LABELLERS
from unweave.nn.draws import PopulationDraws
from unweave.runs.run import Run
from unweave.runs.spec import RunSpec
from unweave.selection.few_labels import LabelChoice
from unweave.selection.held_out_labels import held_out_scores
from unweave.streams import Stream
from unweave.training.batches import HostBatches, ResidentBatches

SETTINGS: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 4, "architecture": "mlp", "device": "cpu"}
CPU = torch.device("cpu")
SEED = 3


def trained(method: Any, folder: Path, seed: int = SEED) -> Run:
    return unweave.train(method, TINY, out=folder, seed=seed, progress=False, **SETTINGS)


@pytest.mark.parametrize("labeller", LABELLERS)
def test_batches_have_the_first_labels_only(labeller: Any) -> None:
    method = S2BetaVAE(labels=20, labeller=labeller, train_percentage=90)
    points = labelled(TINY, 20, Stream.of(SEED).child("labelled points"), LABELLERS[labeller])
    for source in (HostBatches(TINY, CPU), ResidentBatches(TINY, CPU)):
        rows: set[int] = set()
        for step in range(12):
            draws = PopulationDraws([Stream.of(SEED)], torch.tensor(step))
            batch = source.draw(draws, step, "batch", 16, method.sampling)
            assert batch.labelled is not None
            index = batch.labelled.index[0].numpy()
            assert (batch.labelled.labels[0].numpy() == points.labels[index]).all()
            rows |= set(index.tolist())
        assert rows == set(range(18))
    held_out = method.held_out_points(TINY, SEED)
    assert (held_out.factors == points.factors[18:]).all()
    assert (held_out.labels == points.labels[18:]).all()


def test_no_image_of_a_held_out_point_is_made_for_the_labelled_batch(tmp_path: Path) -> None:
    """Watch the images that are made: those of labelled batches show the first points."""
    seen: list[Factors] = []

    def render(factors: Factors, stream: Stream) -> Images:
        seen.append(factors)
        return TINY.render(factors, stream)

    method = S2BetaVAE(labels=20, train_percentage=50)
    unweave.train(method, replace(TINY, render=render), out=tmp_path, progress=False, **SETTINGS)
    points = labelled(TINY, 20, Stream.of(0).child("labelled points")).factors
    known, held_out = ({tuple(row) for row in part} for part in (points[:10], points[10:]))
    # Every second batch is the labelled one.
    of_labels = {tuple(row) for factors in seen[1::2] for row in factors}
    assert of_labels
    assert of_labels <= known
    assert held_out - known


def by_hand(loss: str, run: Run, codes: NDArray[Any], labels: NDArray[Any]) -> float:
    weights = {name: tensor.numpy() for name, tensor in run.folder.weights().items()}
    total = 0.0
    for j, size in enumerate(TINY.sizes):
        for mean, label in zip(codes[:, j], labels[:, j], strict=True):
            if loss == "xent":
                s, t = 1 / (1 + np.exp(-mean)), label / size
                total -= t * np.log(s) + (1 - t) * np.log(1 - s)
            elif loss == "l2":
                total += (weights["label_map.factor"].item() * mean - label) ** 2
            else:
                nearness = np.exp(-((mean - weights[f"label_map.places.{j}"].ravel()) ** 2))
                total -= np.log(nearness[label] / nearness.sum()) / len(labels)
    return float(total)


@pytest.mark.parametrize("loss", ["xent", "l2", "embed"])
def test_the_score_is_minus_the_loss_on_the_held_out_labels(loss: Any, tmp_path: Path) -> None:
    run = trained(S2BetaVAE(labels=20, supervised_loss=loss, train_percentage=90), tmp_path)
    points = labelled(TINY, 20, Stream.of(SEED).child("labelled points")).factors[18:]
    expected = by_hand(loss, run, run.encode(TINY.observe(points)), points)
    assert held_out_scores(run, TINY) == {f"few_labels.{loss}": pytest.approx(-expected, rel=1e-4)}


def test_runs_that_hold_nothing_out_have_no_score(tmp_path: Path) -> None:
    assert held_out_scores(trained(S2BetaVAE(labels=20), tmp_path), TINY) == {}
    assert held_out_scores(trained(BetaVAE(), tmp_path), TINY) == {}


def test_older_runs_keep_their_ids_and_bad_values_are_refused() -> None:
    """The id of the default settings before there was a percentage."""
    assert RunSpec(S2BetaVAE()).id == "b4071791b3d0cab3"
    assert "train_percentage" not in RunSpec(S2BetaVAE()).to_dict()["method"]
    held_out = RunSpec(S2BetaVAE(train_percentage=90))
    assert RunSpec.from_dict(held_out.to_dict()) == held_out
    for value in (0, 101):
        with pytest.raises(UnweaveError, match=rf"train_percentage of s2_beta_vae must be .*; got {value}\."):
            S2BetaVAE(train_percentage=value)


def test_names_of_scores_state_the_labels() -> None:
    assert LabelChoice(1000).score_name("few_labels.dci") == "few_labels.dci_1000"
    assert LabelChoice(100, "binned").protocol("few_labels.dci") == "dci[trees,train0.9,labels100,binned]"
    with pytest.raises(UnweaveError, match=r'no labeller "nosy"\. Did you mean "noisy"'):
        LabelChoice(100, "nosy")
