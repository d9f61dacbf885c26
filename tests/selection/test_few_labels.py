"""Choosing runs by a few labels: scores against the metrics, a better run wins, what is refused."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from selection.tiny_study import trained_study
from unweave.data import load
from unweave.data.supervision import labelled, split
from unweave.errors import UnweaveError
from unweave.metrics import dci, mig
from unweave.runs.run import Run
from unweave.selection import candidates_in, select
from unweave.selection.few_labels import LabelChoice, few_label_scores, scores_of
from unweave.streams import Stream
from unweave.study import StudyFolder

SETTINGS: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 4, "architecture": "mlp", "device": "cpu"}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return trained_study(tmp_path_factory.mktemp("study") / "s")


def test_scores_are_the_metrics_of_codes_of_the_same_labelled_images(study: StudyFolder) -> None:
    """MIG of all 50 labels; DCI fitted to the first 45 of them, a share of 0.9."""
    chosen = select(study.path, by="few_labels", labels=50, device="cpu")
    truth, stream = load("dsprites"), Stream.of(0).child("selection by labels")
    points = labelled(truth, 50, stream)
    images = truth.observe(points.factors)
    assert set(chosen.table["protocol"]) == {"dci[trees,train0.9,labels50]", "mig[bins20,labels50]"}
    assert chosen.scores_by("few_labels") == ["few_labels.dci_50", "few_labels.mig_50"]
    for score in chosen.scores_by("few_labels"):
        assert len(chosen.ranking(score)) == 6
    run, value = chosen.ranking("few_labels.dci_50")[0]
    codes = Run(run.folder, "cpu").encode(images)
    labels = np.stack([np.unique(column, return_inverse=True)[1] for column in points.factors.T], axis=1)
    fitted = dci(codes[:45], labels[:45], test=(codes[45:], labels[45:]))
    assert value == pytest.approx(fitted.disentanglement)
    by_mig = {run.id: value for run, value in chosen.ranking("few_labels.mig_50")}
    assert by_mig[run.id] == pytest.approx(mig(codes, points.factors))


def test_labels_of_another_labeller(study: StudyFolder, tmp_path: Path) -> None:
    """Renaming the values of factors leaves MIG as it is; two of five factors have another one."""
    names = {"perfect": "few_labels.mig_50", "permuted": "few_labels.mig_50_permuted"}
    names["partial"] = "few_labels.mig_50_partial"
    first = next(iter(study.runs))
    shutil.copytree(study.run_path(first), tmp_path / "runs" / first)
    scores = {}
    for labeller, name in names.items():
        chosen = select(tmp_path / "runs", by="few_labels", labels=50, labeller=labeller, device="cpu")
        assert chosen.scores_by("few_labels")[1] == name
        [(_, scores[labeller])] = chosen.ranking(name)
    assert scores["permuted"] == pytest.approx(scores["perfect"])
    assert scores["partial"] != pytest.approx(scores["perfect"])


def test_100_labels_tell_separate_codes_from_mixed_ones() -> None:
    truth = load("dsprites")
    points = labelled(truth, 100, 3)
    sizes = np.asarray(truth.sizes)
    codes = (points.factors - (sizes - 1) / 2) / sizes + 0.05 * Stream.of(0).normal(100, len(sizes))
    turn, _ = np.linalg.qr(Stream.of(1).normal(len(sizes), len(sizes)))
    separate, mixed = scores_of(codes, points), scores_of(codes @ turn, points)
    for name, value in separate.items():
        assert value > mixed[name] + 0.1
    assert len(split(points, 0.9)[0]) == 90


def test_a_factor_with_one_value_is_left_out_of_the_labels(tmp_path: Path) -> None:
    """MIG and DCI of the other factors, also where noise gives the constant factor other labels."""
    name = "dsprites:only(scale=3)"
    run = unweave.train("ae", name, out=tmp_path, progress=False, **SETTINGS)
    chosen = select(tmp_path, by="few_labels", device="cpu")
    assert chosen.notes == ('factor "scale" was left out of the labels: it has one value only.',)
    points = labelled(load(name), 100, Stream.of(0).child("selection by labels"))
    assert set(points.factors[:, 1]) == {3}
    codes = run.encode(load("dsprites").observe(points.factors))
    [(_, value)] = chosen.ranking("few_labels.mig")
    assert value == pytest.approx(mig(codes, np.delete(points.factors, 1, axis=1)))
    noisy = select(tmp_path, by="few_labels", labeller="noisy", device="cpu")
    assert noisy.notes == chosen.notes
    with pytest.raises(UnweaveError, match=r"the labels of .* have one value each"):
        few_label_scores(candidates_in(_of_one_image(tmp_path / "one")), device="cpu")


def _of_one_image(folder: Path) -> Path:
    """A run on the only image of its data."""
    name = "dsprites:only(scale=3):only(shape=0):only(orientation=0):only(x=0):only(y=0)"
    unweave.train("ae", name, out=folder, progress=False, **SETTINGS)
    return folder


def test_a_single_run_of_a_setting_can_be_chosen(study: StudyFolder, tmp_path: Path) -> None:
    first = next(iter(study.runs))
    shutil.copytree(study.run_path(first), tmp_path / "runs" / first)
    chosen = select(tmp_path / "runs", by="few_labels", labels=50, device="cpu")
    assert [run.id for run, _ in chosen.ranking("few_labels.dci_50")] == [first]
    assert chosen.notes == ()


def test_mistakes_raise_clear_errors(study: StudyFolder, tmp_path: Path) -> None:
    for labels in (1, 5):
        with pytest.raises(UnweaveError, match=rf"^{labels} labels are too few .* Take 45 labels or more"):
            select(study.path, by="few_labels", labels=labels, device="cpu")
    runs = Path(shutil.copytree(study.path / "runs", tmp_path / "runs"))
    broken, *_ = sorted(runs.iterdir())
    (broken / "weights.safetensors").write_bytes(b"not weights")
    left, scores = few_label_scores(candidates_in(runs), LabelChoice(50), "cpu")
    assert len(left.runs) == len(scores) == 5
    assert left.notes[0].startswith(f"Left out {broken}")
