"""Labels of a collection: different rows, true labels, and batches that show the labelled images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from training.tiny import TINY
from unweave.data import Collection, from_arrays
from unweave.data.supervision import Chosen, Noisy, Partial
from unweave.data.supervision.row_labels import known_rows, labelled_rows, rows_of_run
from unweave.errors import UnweaveError
from unweave.evaluation.label_accuracy import label_accuracy
from unweave.methods import Supervised
from unweave.methods.sampling import Labels
from unweave.nn.draws import PopulationDraws
from unweave.runs.train import train
from unweave.streams import Stream
from unweave.training.batches import HostBatches

FACTORS = TINY.factors_at(np.arange(len(TINY)))
UNKNOWN = (3, 17, 40)  # rows whose x is not known


def squares() -> Collection:
    """The tiny ground truth as rows: some x are missing, and the height is a real number."""
    x = FACTORS[:, 1].astype(np.float64)
    x[list(UNKNOWN)] = np.nan
    height = FACTORS[:, 2] + np.linspace(0, 0.5, len(TINY))
    columns = {"size": FACTORS[:, 0], "x": x, "height": height}
    data = from_arrays(TINY.observe(FACTORS), columns, kinds={"height": "continuous"})
    assert isinstance(data, Collection)
    return data


def test_rows_are_different_and_have_their_labels() -> None:
    data = squares()
    known = labelled_rows(data, 50, 0, Chosen("x"))
    assert len(set(known.rows.tolist())) == 50
    assert not set(known.rows.tolist()) & set(UNKNOWN)
    np.testing.assert_array_equal(known.points.labels[:, 0], FACTORS[known.rows, 1])
    fewer = labelled_rows(data, 20, 0, Chosen("x"))
    np.testing.assert_array_equal(fewer.rows, known.rows[:20])
    assert (labelled_rows(data, 20, 1, Chosen("x")).rows != fewer.rows).any()


def test_labellers_see_the_factors_with_separate_values() -> None:
    data = squares()
    assert labelled_rows(data, 9, 0, Chosen("all")).points.sizes == (3, 4)
    assert labelled_rows(data, 0, 0, Noisy()).points.sizes == (3, 4)
    assert len(known_rows(data, Stream.of(0), Chosen("size"))) == len(TINY)
    for seed in range(4):
        part = (
            labelled_rows(data, 57, seed, Partial(1))
            if seed % 2
            else labelled_rows(data, 5, seed, Partial(1))
        )
        [column] = part.points.observed
        np.testing.assert_array_equal(part.points.labels[:, 0], FACTORS[part.rows, column])


def test_mistakes() -> None:
    data = squares()
    with pytest.raises(
        UnweaveError, match=r"57 images whose labels are known; got labels = 58. Set labels to 57"
    ):
        labelled_rows(data, 58, 0, Chosen("x"))
    with pytest.raises(
        UnweaveError, match=r'"height" of own is continuous .* binned\(collection, "height"\)'
    ):
        labelled_rows(data, 5, 0, Chosen("x, height"))
    with pytest.raises(UnweaveError, match='has no factor "y"'):
        labelled_rows(data, 5, 0, Chosen("y"))
    unlabelled = from_arrays(TINY.observe(FACTORS))
    assert isinstance(unlabelled, Collection)
    with pytest.raises(UnweaveError, match="no factor with separate values"):
        labelled_rows(unlabelled, 5, 0)


def test_too_many_labels_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="57 images whose labels are known; got labels = 100"):
        train(Supervised("softmax", factors="x", labels=100), data=squares(), steps=2, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_batch_shows_labelled_images() -> None:
    data, sampling = squares(), Labels(12, Chosen("x,size"))
    source, runs = HostBatches(data, torch.device("cpu")), [Stream.of(0), Stream.of(1)]
    assert source.label_sizes(sampling) == (4, 3)
    draws = PopulationDraws(runs, torch.zeros((), dtype=torch.int64))
    batch = source.draw(draws, 3, "batch", 8, sampling)
    assert batch.images.shape == (2, 8, 1, 32, 32)
    assert batch.labelled is not None
    for run in range(2):
        rows = rows_of_run(data, 12, runs[run], sampling.labeller).rows[batch.labelled.index[run].numpy()]
        np.testing.assert_array_equal(batch.labelled.images[run].numpy(), data.images_at(rows))
        np.testing.assert_array_equal(batch.labelled.labels[run].numpy(), FACTORS[rows][:, [1, 0]])
    alone = source.draw(PopulationDraws(runs[1:], draws.step), 3, "batch", 8, sampling)
    assert alone.labelled is not None
    assert torch.equal(alone.labelled.images[0], batch.labelled.images[1])


def test_a_classifier_learns_from_labelled_rows(tmp_path: Path) -> None:
    method = Supervised("softmax", factors="x", labels=30)
    data = squares()
    run = train(method, data=data, steps=80, batch=16, latents=4, learning_rate=1e-3, out=tmp_path)
    accuracy = label_accuracy(run)
    assert list(accuracy) == ["x"]
    assert accuracy["x"] > 0.7, "a quarter is chance"
