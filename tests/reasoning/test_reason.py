"""Learning curves: what is learned from good and from useless codes, what is stored, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from command_line import run_here
from reasoning.small_grid import perfect_codes, small_truth
from unweave.data import GroundTruth
from unweave.errors import UnweaveError
from unweave.layout import REASONING_FILE
from unweave.reasoning import Check, Curve, Reasoning, ReasoningSpec, baselines, reason
from unweave.reasoning.curves import CHANCE, wilson_interval
from unweave.reasoning.matrices import panel_grid
from unweave.reasoning.reason import true_codes
from unweave.reasoning.records import reasoning_rows, store_curve, stored_curves
from unweave.reasoning.training import ReasoningTraining
from unweave.runs.run import Run
from unweave.study import StudyFolder, StudySpec
from unweave.study.table import collect

TINY = ReasoningSpec(steps=3, batch=4, tests=40, edge=(8,), graph=(8,), checks=(1,))
LEARNING = replace(TINY, steps=250, batch=32, tests=600, edge=(48, 48), graph=(48,), learning_rate=3e-3)


def test_good_codes_are_learned_from_and_useless_ones_are_not() -> None:
    truth = small_truth((4, 4, 4, 12))
    levels = {"f0": 4, "f1": 4, "f2": 4}  # twelve images of each panel, so that none can be memorised
    useless = np.random.default_rng(0).normal(size=(len(truth), 3))
    result = reason(
        [perfect_codes(truth), useless], replace(LEARNING, levels=levels), data=truth, device="cpu"
    )
    good, bad = (curve.checks[-1] for curve in result.curves)
    assert good.accuracy > 0.45
    assert good.interval[0] > 2 * CHANCE
    assert abs(bad.accuracy - CHANCE) < 4 * np.sqrt(CHANCE * (1 - CHANCE) / bad.tests)
    assert [check.matrices for check in result.curves[0].checks] == [32, 250 * 32]


def test_a_population_learns_what_each_of_its_runs_learns_alone() -> None:
    truth = small_truth((3, 3, 4))
    codes = [perfect_codes(truth), 2 * perfect_codes(truth)[:, ::-1], np.ones((len(truth), 3))]
    spec = replace(LEARNING, steps=20, edge=(8, 8), dropout=0.5, checks=(10,))
    together = reason(codes, spec, data=truth, device="cpu").curves
    for number, own in enumerate(codes):
        (alone,) = reason(own, spec, data=truth, device="cpu").curves
        pairs = zip(alone.checks, together[number].checks, strict=True)
        assert all(abs(a.right - b.right) <= 2 for a, b in pairs)  # sums are rounded in another order
    assert together[0].checks != together[1].checks


def test_baselines_are_the_true_factors_and_an_encoder() -> None:
    truth = small_truth((3, 4, 3))
    grid = panel_grid(truth)
    values, one_hot = (true_codes(grid, kind) for kind in ("values", "one_hot"))
    np.testing.assert_allclose(values.numpy(), perfect_codes(truth), atol=1e-6)
    assert one_hot.shape == (36, 10)
    assert torch.equal(one_hot[5], torch.tensor([1.0, 0, 0, 0, 1, 0, 0, 0, 0, 1]))
    result = baselines(truth, TINY, architecture="mlp", device="cpu")
    assert [curve.subject for curve in result.curves] == ["values", "one_hot", "end_to_end"]
    assert all(0 <= check.right <= 40 for curve in result.curves for check in curve.checks)


def test_an_encoder_reasons_as_its_codes_do() -> None:
    truth = small_truth((3, 3, 3))

    def encode(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return images.reshape(len(images), -1)[:, :3]

    images = truth.observe(truth.factors_at(np.arange(27)))
    codes = images.reshape(27, -1)[:, :3].astype(np.float32) / np.float32(255)
    of_encoder, of_codes = (reason(s, TINY, data=truth, device="cpu").curves[0] for s in (encode, codes))
    assert of_encoder.checks == of_codes.checks


@pytest.fixture(scope="module")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    truth = small_truth((3, 3, 3))
    factors = truth.factors_at(np.arange(27))
    path = tmp_path_factory.mktemp("data") / "toys.npz"
    np.savez(path, images=truth.observe(factors), factors=factors)
    return path


@pytest.fixture
def runs(data_file: Path, tmp_path: Path) -> list[Run]:
    fields: dict[str, Any] = {"steps": 1, "batch": 4, "latents": 2, "architecture": "mlp"}
    return [
        unweave.train(
            "vae", data_file, out=tmp_path / "runs", device="cpu", progress=False, seed=seed, **fields
        )
        for seed in range(2)
    ]


def test_results_are_stored_once_and_collected_by_a_study(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = reason([run.path for run in runs], TINY, device="cpu")
    assert [curve.subject for curve in result.curves] == [str(run.path) for run in runs]
    stored = (runs[0].path / REASONING_FILE).read_text()
    monkeypatch.delattr(ReasoningTraining, "run")  # nothing can be trained again
    again = reason(runs, TINY, device="cpu")
    assert [curve.checks for curve in again.curves] == [curve.checks for curve in result.curves]
    assert (runs[0].path / REASONING_FILE).read_text() == stored
    study = StudyFolder.create(tmp_path, StudySpec("two", tuple(run.spec for run in runs), metrics="elbo"))
    table, _ = collect(study)
    rows = table[table["score"] == "reasoning.accuracy_12"]
    assert sorted(rows["value"]) == sorted(curve.checks[-1].accuracy for curve in result.curves)
    assert set(rows["protocol"]) == {TINY.protocol}


def test_the_order_of_levels_is_no_part_of_the_protocol() -> None:
    one, other = (replace(TINY, levels=levels) for levels in ({"x": 4, "shape": 3}, {"shape": 3, "x": 4}))
    assert one == other
    assert one.protocol == other.protocol == TINY.protocol.replace(",mean", ",levels:shape3+x4,mean")


def test_the_table_has_means_over_seeds_of_the_newest_protocol(tmp_path: Path) -> None:
    old, first = replace(TINY, alternatives="easy"), replace(TINY, steps=1)
    for spec, right in ((old, 9), (first, 10), (replace(TINY, seed=1), 20)):
        checks = tuple(Check(steps, 4 * steps, right, 40) for steps in spec.checked_steps)
        store_curve(tmp_path, Curve("run", "toys", spec, checks))
    assert [curve.complete for curve in stored_curves(tmp_path)] == [True] * 3
    assert reasoning_rows(tmp_path) == [
        ("mean", "reasoning.accuracy_4", TINY.protocol, (10 + 20) / 80),
        ("mean", "reasoning.accuracy_12", TINY.protocol, 20 / 40),
    ]
    (tmp_path / REASONING_FILE).write_text("{")
    with pytest.raises(UnweaveError, match=r"reasoning.json: .* Delete it to train again"):
        reasoning_rows(tmp_path)
    (tmp_path / REASONING_FILE).write_text(json.dumps({"schema": 2}))
    with pytest.raises(UnweaveError, match="it is of version 2; this unweave reads 1"):
        reasoning_rows(tmp_path)


def test_an_unfinished_run_is_left_out_and_noted(runs: list[Run]) -> None:
    (runs[0].path / "result.json").unlink()
    result = reason(runs[0].path.parent, TINY, device="cpu")
    assert [curve.subject for curve in result.curves] == [str(runs[1].path)]
    assert "is not finished, so it has no codes. Train it to the end." in result.notes[0]
    with pytest.raises(UnweaveError, match="is not finished"):
        reason(runs[0].path, TINY, device="cpu")


def test_the_command_prints_a_table_and_writes_a_file(runs: list[Run], tmp_path: Path) -> None:
    sizes = {"--steps": 3, "--batch": 4, "--tests": 40, "--edge": 8, "--graph": 8, "--device": "cpu"}
    options = [word for pair in sizes.items() for word in pair]
    done = run_here("reason", runs[0].path, runs[1].path, *options, "--csv", tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    assert "12" in done.stdout.splitlines()[1]
    assert all(run.path.name in done.stdout for run in runs)
    assert "chance: 0.167" in done.stdout
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3
    for words, message in (
        ((tmp_path / "nosuch",), "Name the folder of a run or of a study."),
        ((), "unweave reason needs the folder of a run or of a study."),
        ((runs[0].path, "--edge", "a"), '--edge takes widths such as 512,512; got "a".'),
        ((runs[0].path, "--dropout", "1"), "dropout must be at least 0 and below 1; got 1.0."),
    ):
        failed = run_here("reason", *words)
        assert (failed.returncode, len(failed.stderr.splitlines())) == (2, 1)
        assert message in failed.stderr


def test_a_stopped_command_says_what_is_kept(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReasoningTraining, "update", stopped)
    done = run_here("reason", runs[0].path, "--steps", 3, "--edge", 8, "--graph", 8, "--device", "cpu")
    assert done.returncode == 130
    assert "It keeps complete results; other runs start from the beginning." in done.stderr


def test_intervals_have_known_ends() -> None:
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, Table I, method 3.
    for (right, tests), ends in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson_interval(right, tests) == pytest.approx(ends, abs=5e-5)
    with pytest.raises(UnweaveError, match="got 3 of 2"):
        wilson_interval(3, 2)


def test_results_as_text_and_table() -> None:
    checks = (Check(1, 32, 10, 60), Check(5, 160, 30, 60))
    result = Reasoning(
        (Curve("a run", "toys", TINY, checks), Curve("b", "toys", TINY, checks[:1])), ("A note.",)
    )
    lines = str(result).splitlines()
    assert [line.split() for line in lines[:1]] == [["matrices", "32", "160"]]
    assert lines[1].split() == ["a", "run", "0.167", "0.500"]
    assert lines[-1] == "A note."
    frame = result.frame()
    assert frame["matrices"].tolist() == [32, 160, 32]
    assert (frame["low"] < frame["accuracy"]).all()
    assert result.curves[0].after(160).accuracy == 0.5
    drawn = list(result.plot().axes[0].lines)[:2]
    assert [np.asarray(line.get_xdata()).tolist() for line in drawn] == [[32, 160], [32]]
    short = Reasoning((Curve("c", "toys", TINY, (Check(1, 1_600, 10, 60), Check(3, 4_800, 30, 60))),)).plot()
    short.canvas.draw()  # no power of ten lies between 1,600 and 4,800
    assert any(label.get_text() for label in short.axes[0].get_xticklabels(which="minor"))
    with pytest.raises(UnweaveError, match="no check after 64 matrices; there are checks after 32, 160"):
        result.curves[0].after(64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1; got 0"),
        ({"edge": ()}, "edge must have at least one number"),
        ({"graph": (8, 0)}, "graph must be a whole number >= 1; got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"alternatives": "odd"}, "alternatives must be hard or easy; got 'odd'"),
        ({"levels": True}, "levels must be a number, or numbers of values by factor"),
        ({"edge": "512,512"}, r"edge must be whole numbers, such as \(512, 512, 512, 512\); got '512,512'"),
        ({"graph": None}, r"graph must be whole numbers, such as \(256, 256\); got None"),
        ({"dropout": None}, r"dropout must be a number, such as 0\.5; got None"),
        ({"learning_rate": "fast"}, r"learning_rate must be a number, such as 0\.001; got 'fast'"),
        ({"levels": "3"}, "levels must be a number, or numbers of values by factor"),
        ({"relations": "4"}, "relations must be mixed or 1 or 2 or 3; got '4'"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        ReasoningSpec(**settings)  # type: ignore[arg-type]


def test_numbers_are_accepted_for_one_layer_and_for_relations() -> None:
    spec = ReasoningSpec(relations=2, edge=64, graph=[32])  # type: ignore[arg-type]
    assert spec == ReasoningSpec(relations="2", edge=(64,), graph=(32,))
    assert ReasoningSpec.from_dict(spec.to_dict()) == spec
    counted = ReasoningSpec(steps=np.int64(5), edge=np.array([8, 8]))  # type: ignore[arg-type]
    assert json.loads(json.dumps(counted.to_dict()))["edge"] == [8, 8]


def test_wrong_subjects_are_one_sentence() -> None:
    truth: GroundTruth = small_truth((3, 3, 3))
    for subject, data, message in (
        (np.zeros((5, 2)), truth, "codes must be those of all 27 images of small"),
        (np.zeros((27, 2)), None, "codes and encoders need the data that they encode"),
        ([], truth, "The list is empty"),
        (np.full((27, 2), np.nan), truth, "codes 0 has codes that are not finite numbers"),
    ):
        with pytest.raises(UnweaveError, match=message):
            reason(subject, TINY, data=data, device="cpu")
    with pytest.raises(UnweaveError, match="spec must be a ReasoningSpec"):
        reason(perfect_codes(truth), {"steps": 3}, data=truth)  # type: ignore[arg-type]
    assert baselines(truth, TINY, "values", device="cpu").curves[0].subject == "values"
    with pytest.raises(UnweaveError, match="a baseline is one of values, one_hot, end_to_end; got 'odd'"):
        baselines(truth, TINY, ["odd"], device="cpu")  # type: ignore[list-item]
