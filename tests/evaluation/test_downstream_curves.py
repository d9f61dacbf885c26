"""Downstream curves on hand-made codes: perfect, entangled, uninformative, circular, and with shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import unweave
from command_line import run_here
from training.tiny import TINY
from unweave.data import conditioned
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.evaluation import downstream
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import source_of
from unweave.evaluation.intervals import mean_and_interval
from unweave.evaluation.sources import GroundTruthSource
from unweave.metrics.downstream import downstream as accuracies
from unweave.streams import Stream

SIZES = (3, 8, 24)


def _render(factors: Factors, _stream: Stream) -> Images:
    """The first pixels are the factors."""
    images = np.zeros((len(factors), 1, 4, 4), np.uint8)
    images[:, 0, 0, :3] = factors
    return images


FACTORS = (Factor("shape", 3, "categorical"), Factor("x", 8), Factor("angle", 24, "circular"))
DATA = GroundTruth("shown", FACTORS, (1, 4, 4), _render, Card("shown", "none", ""), "made up")
Encode = Callable[[NDArray[np.uint8]], NDArray[np.float64]]


def factors_in(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.asarray(np.rint(255 * images[:, 0, 0, :3].astype(float)))


def perfect(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Shape, x, and the angle as a point on the circle."""
    factors = factors_in(images)
    angle = 2 * np.pi * factors[:, 2] / SIZES[2]
    return np.stack([factors[:, 0], factors[:, 1] / 2, np.cos(angle), np.sin(angle)], axis=1)


TURN = np.linalg.qr(Stream.of(1).normal(4, 4))[0]


def measured(encode: Encode, **options: Any) -> Any:
    settings: dict[str, Any] = {
        "data": DATA,
        "sizes": (20, 200),
        "repeats": 3,
        "test": 600,
        "model": "linear",
    }
    return downstream(encode, **settings | options)


def test_perfect_and_entangled_codes() -> None:
    good, mixed = measured(perfect), measured(lambda images: perfect(images) @ TURN)
    for factor in ("x", "angle", "mean"):
        for curves in (good, mixed):
            assert curves["r2", factor, 20].estimate == pytest.approx(1)  # a line undoes a rotation
    assert good["angular_error", "angle", 20].estimate == pytest.approx(0, abs=1e-4)
    assert good["accuracy", "shape", 200].estimate == good["accuracy", "x", 200].estimate == 1
    # Trees cut along the codes, so entangled codes need more labels.
    assert mixed["accuracy", "x", 200].high < good["accuracy", "x", 200].low
    assert good["accuracy", "x", 20].estimate < good["accuracy", "x", 200].estimate
    with pytest.raises(KeyError, match='no "r2" of shape for 20 labels'):
        _ = good["r2", "shape", 20]  # a category has no order


def test_codes_that_know_nothing_are_at_chance() -> None:
    curves = measured(lambda images: Stream.of(len(images)).normal(len(images), 4), sizes=(500,))
    assert curves["accuracy", "shape", 500].estimate == pytest.approx(1 / 3, abs=0.06)
    assert curves["r2", "mean", 500].estimate == pytest.approx(0, abs=0.05)
    assert curves["angular_error", "angle", 500].estimate == pytest.approx(90, abs=8)


def test_an_angle_with_a_jump_is_no_circle_for_a_line() -> None:
    """The best line through cos(t) and sin(t) for evenly spaced t in [0, 2 pi): 3 / pi^2 for many values."""
    values = np.arange(SIZES[2])
    angles = 2 * np.pi * values / SIZES[2]
    errors = [
        target - np.polyval(np.polyfit(values, target, 1), values)
        for target in (np.cos(angles), np.sin(angles))
    ]
    expected = 1 - np.sum(np.mean(np.square(errors), axis=1))
    assert expected == pytest.approx(3 / np.pi**2, abs=0.01)
    curves = measured(factors_in, sizes=(500,), test=2000, predictor="logistic")
    assert curves["r2", "angle", 500].estimate == pytest.approx(expected, abs=0.03)
    assert curves["angular_error", "angle", 500].estimate > 25
    nonlinear = measured(factors_in, sizes=(300,), model="kernel", repeats=1, predictor="logistic")
    assert nonlinear["r2", "angle", 300].estimate > 0.9


def cut_off(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """x up to 3 only; the sign of the shape depends on x."""
    factors = factors_in(images)
    sign = np.where(factors[:, 1] < 4, 1, -1)
    return np.stack([sign * factors[:, 0], np.minimum(factors[:, 1], 3), factors[:, 2]], axis=1)


def test_shortcuts_fail_on_held_out_combinations() -> None:
    good, bad = (measured(encode, split="hold(x>=4)", sizes=(200,)) for encode in (perfect, cut_off))
    for curves in (good, bad):
        assert curves.data == "shown:hold(x=4..7)"
        assert curves["accuracy", "shape", 200].estimate == 1
        assert curves["r2", "x", 200].estimate == pytest.approx(1)
        assert curves["accuracy", "x", 200, "held_out"].estimate == 0  # these values were never seen
    assert good["accuracy", "shape", 200, "held_out"].estimate == 1
    assert good["r2", "x", 200, "held_out"].estimate == pytest.approx(1)
    # Shapes 1 and 2 are read as 0. The prediction 3 for 4 .. 7 has a mean squared error of 7.5; the
    # variance of 0 .. 7 is 5.25.
    assert bad["accuracy", "shape", 200, "held_out"].estimate == pytest.approx(1 / 3, abs=0.05)
    assert bad["r2", "x", 200, "held_out"].estimate == pytest.approx(1 - 7.5 / 5.25, abs=0.1)


def test_nothing_is_fitted_to_held_out_combinations() -> None:
    """Other codes of held-out images change no number on the training combinations."""
    curves = [
        measured(encode, split="hold(x>=4)", sizes=(50,), predictor="logistic")
        for encode in (
            cut_off,
            lambda images: cut_off(images) * np.where(factors_in(images)[:, 1:2] < 4, 1, 99),
        )
    ]
    seen, other = ([point for point in one.points if point.part == "training"] for one in curves)
    assert seen == other
    assert curves[0].points != curves[1].points


def test_numbers_are_those_of_the_metric_on_the_rows_of_each_repeat() -> None:
    effort = Effort((3 * 60, 200))
    source = source_of(perfect, effort, data=DATA)
    assert isinstance(source, GroundTruthSource)
    sample = source.sample(effort.points, "mean", effort.stream)
    test = (sample.test_codes, sample.test_factors)
    by_hand = [
        accuracies(
            sample.codes[rows], sample.factors[rows], test=test, predictor="logistic", sizes=[30]
        ).test_accuracy[0]
        for rows in (slice(start, start + 60) for start in (0, 60, 120))
    ]
    curves = measured(perfect, sizes=(30, 60), test=200, predictor="logistic")
    for j, factor in enumerate(FACTORS[:2]):
        values = [accuracy[j] for accuracy in by_hand]
        point = curves["accuracy", factor.name, 30]
        assert point.estimate == pytest.approx(np.mean(values))
        reach = stats.t.ppf(0.975, 2) * stats.sem(values)
        ends = np.clip([np.mean(values) - reach, np.mean(values) + reach], 0, 1)
        assert (point.low, point.high) == pytest.approx(tuple(ends))
    assert curves["accuracy", "mean", 30].estimate == pytest.approx(np.mean(by_hand))
    assert np.isnan(mean_and_interval([0.5])[1:]).all()


def test_a_run_and_what_is_shown(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"steps": 2, "batch": 8, "latents": 3, "architecture": "mlp", "device": "cpu"}
    data = conditioned(TINY, "hold(size=2,x>=2)")
    run = unweave.train("ae", data, out=tmp_path, progress=False, **settings)
    reported: list[int] = []
    curves = downstream(
        run,
        sizes=(60, 20),
        repeats=2,
        test=50,
        predictor="logistic",
        tell=lambda done, *_: reported.append(done),
    )
    assert {point.part for point in curves.points} == {"training", "held_out"}
    assert list(curves.frame()["size"][:2]) == [20, 60]
    assert reported[-1] == 4
    assert str(curves).splitlines()[0].split() == ["labels", "20", "60"]
    assert "accuracy mean held_out" in str(curves)
    curves.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_mistakes_raise_clear_errors() -> None:
    for options, message in (
        ({"sizes": ()}, "sizes, repeats and test must be whole numbers from 1"),
        ({"sizes": 10}, "got sizes=10, repeats=3 and test=600"),
        ({"sizes": (0.5,)}, "got sizes=.0.5,., repeats=3 and test=600"),
        ({"test": 0}, "repeats=3 and test=0"),
        ({"predictor": "forest"}, "predictor must be one of the known ones"),
        ({"model": "forest"}, "`model` must be one of linear, kernel, mlp"),
        ({"split": "x~angle=0.2"}, '`split` must hold combinations out, such as "hold'),
        ({"split": "hold(z=1)"}, 'no factor "z"'),
        ({"data": conditioned(DATA, "hold(x=1)"), "split": "hold(x=2)"}, "Leave `split` out"),
        (
            {"data": replace(DATA, factors=(Factor("mean", 3), *FACTORS[1:]))},
            'has a factor "mean", a name that',
        ),
        ({"data": None}, "needs a run, or an encoder and data with a full grid"),
    ):
        with pytest.raises(UnweaveError, match=message):
            measured(perfect, **options)


def test_your_own_data_may_have_moved_since_a_run_was_trained(tmp_path: Path) -> None:
    factors = np.stack(np.meshgrid(np.arange(4), np.arange(6), indexing="ij"), axis=-1).reshape(-1, 2)
    images = np.zeros((24, 1, 8, 8), np.uint8)
    images[:, 0, 0, :2] = 40 * factors
    old = tmp_path / "toys.npz"
    np.savez(old, images=images, factors=factors)
    settings: dict[str, Any] = {"steps": 2, "batch": 8, "latents": 3, "architecture": "mlp", "device": "cpu"}
    run = unweave.train("ae", f"{old}:hold(factor_0=3)", out=tmp_path, progress=False, **settings)
    new = old.rename(tmp_path / "moved.npz")
    words = ["downstream", run.path, "--sizes", "5", "--repeats", "1", "--test", "5"]
    advice = run_here(*words).stderr
    assert "Name its new place: --data FILE" in advice
    done = run_here(*words, "--data", new)
    assert done.returncode == 0, done.stderr
    assert "accuracy factor_1 held_out" in done.stdout


def test_bad_input_of_the_command_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    for words, message in (
        ([tmp_path / "none"], "there is no folder"),
        ([tmp_path, "--sizes", "10,1.5"], "--sizes takes whole numbers, as in 10,100,1000; got 10,1.5."),
        ([tmp_path, "--sizes", "10²"], "--sizes takes whole numbers, as in 10,100,1000; got 10²."),
        ([tmp_path, "--plot", "curves.txt"], "curves.txt must end in .png"),
    ):
        done = run_here("downstream", *words)
        assert done.returncode == 2
        assert message in done.stderr
