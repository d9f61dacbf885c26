"""How long a study takes: kinds of runs, rates that are made up, and sums that are worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from study.tiny import Pretend, tiny_spec
from unweave.commands.study import study_app
from unweave.data import load
from unweave.errors import UnweaveError
from unweave.methods import FactorVAE, Tripod
from unweave.progress import no_progress
from unweave.runs.spec import RunSpec
from unweave.study import PRESETS, StudyFolder, StudySpec, evaluation_time, measure, preset_named
from unweave.study.display import forecast_lines, training_table
from unweave.study.engines.local import Post
from unweave.study.evaluation_time import EvaluationTime, metrics_time
from unweave.study.forecast import START_UP, Crew, Forecast
from unweave.study.measure import Kind, Part, Timed, measured_rate, parts_of, timed
from unweave.study.planner import make_units, plan_of
from unweave.study.spec import grid
from unweave.study.work import TrainAndScore

HOUR = 3600
WITHOUT_FILES = ["scream_dsprites", "smallnorb", "cars3d", "shapes3d"]
KINDS = {(1, 0): 21_400.0, (1, 1): 9_700.0, (3, 0): 18_100.0, (3, 1): 8_900.0}  # of an H200


def made_up_rate(
    specs: Sequence[RunSpec],
    device: str = "auto",
    data_root: Path | None = None,
    seconds: float = 0.0,
    own: object = None,
) -> float:
    kind = Kind.of(specs[0])
    return KINDS[kind.channels, kind.players]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return StudyFolder.create(tmp_path_factory.mktemp("published"), preset_named("locatello2019"))


def test_the_published_study_has_four_kinds_of_runs(published: StudyFolder) -> None:
    parts = parts_of(published, make_units(published.spec.runs, 128), WITHOUT_FILES)
    found = [(p.kind.channels, p.kind.players, p.runs, p.model_steps) for p in parts]
    assert found == [  # 30 or 6 settings, 50 seeds; 2 data sets of one channel and 5 of three
        (3, 0, 7_500, 2_250_000_000),
        (1, 0, 3_000, 900_000_000),
        (3, 1, 1_500, 225_000_000),
        (1, 1, 600, 90_000_000),
    ]
    for part in parts:
        assert len(part.together) == 128
        assert {Kind.of(run) for run in part.together} == {part.kind}
        assert part.together[0].data not in WITHOUT_FILES


def test_data_that_is_not_here_has_a_stand_in_of_as_many_channels(tmp_path: Path) -> None:
    runs = grid([{"name": "vae"}], data=["smallnorb", "cars3d"], seed="0-1")
    study = StudyFolder.create(tmp_path, StudySpec("s", runs))
    parts = parts_of(study, make_units(runs, 4), ["smallnorb", "cars3d"])
    assert sorted(part.together[0].data for part in parts) == ["color_dsprites", "dsprites"]
    for part in parts:
        assert Kind.of(part.together[0]) == part.kind


def test_what_is_trained_does_not_count(tmp_path: Path) -> None:
    study = StudyFolder.create(tmp_path, tiny_spec("0-4"))
    units = plan_of(study, 4)
    Pretend().train(study, units[0], no_progress)
    [part] = parts_of(study, units)
    assert (part.runs, part.model_steps) == (6, 30)


def test_what_makes_steps_slower_makes_another_kind() -> None:
    run = RunSpec(preset_named("smoke").runs[0].method)
    others = [
        replace(run, data="rooms"),
        replace(run, batch=128),
        replace(run, architecture="mlp"),
        replace(run, precision="bf16"),
        RunSpec(Tripod()),
        RunSpec(FactorVAE()),  # as many players as tripod, other networks
    ]
    assert len({Kind.of(each) for each in (run, *others)}) == 7
    same = replace(run, seed=3, steps=7, learning_rate=0.1, data="dsprites_noshape")
    assert Kind.of(same) == Kind.of(run)


@pytest.mark.parametrize("name", PRESETS)
def test_every_kind_of_a_study_with_a_name_is_timed(name: str) -> None:
    study = preset_named(name)
    assert len({Kind.of(run, study.reference(run.data)) for run in study.runs}) <= measure.MOST


def test_methods_with_networks_of_their_own_are_named_in_the_table(tmp_path: Path) -> None:
    methods = [{"name": "beta_vae"}, {"name": "info_gan"}, {"name": "glow"}]
    study = StudyFolder.create(tmp_path, StudySpec("s", grid(methods, seed="0-1", steps=5)))
    parts = parts_of(study, make_units(study.spec.runs, 128))
    lines = training_table([Timed(part, 1.0) for part in parts])
    assert {line.split("  ")[0] for line in lines} == {
        "kind", "1 channel", "1 channel, glow, 2 more networks",
        "1 channel, info_gan, 2 more networks", "sum",
    }  # fmt: skip


def part(channels: int, players: int, runs: int, model_steps: int, images: int = 64) -> Part:
    example = RunSpec(preset_named("smoke").runs[0].method)
    return Part(Kind(channels, players, images, "released", "bf16"), runs, model_steps, (example,))


def test_the_seconds_are_shared_and_the_largest_kinds_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def rate(
        _specs: Sequence[RunSpec], _device: str, _root: Path | None, seconds: float, _own: object
    ) -> float:
        asked.append(seconds)
        return 100.0 * len(asked)

    monkeypatch.setattr(measure, "measured_rate", rate)
    found = timed([part(1, 0, 5, 1000, images=n) for n in range(8)])
    assert asked == [20 / 6] * 6
    assert [(each.rate, each.measured) for each in found] == [
        *((100.0 * n, True) for n in range(1, 7)), (100.0, False), (100.0, False),
    ]  # fmt: skip
    asked.clear()
    timed([part(1, 0, 5, 1000), part(1, 1, 5, 1000)])
    assert asked == [10.0, 10.0]


def test_the_table_of_the_published_study(published: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measured_rate", made_up_rate)
    found = timed(parts_of(published, make_units(published.spec.runs, 128)))
    assert training_table(found) == [
        "kind                          runs    model-steps  a second  hours",
        "3 channels                   7,500  2,250,000,000    18,100   34.5",
        "1 channel                    3,000    900,000,000    21,400   11.7",
        "3 channels, 1 more network   1,500    225,000,000     8,900   7.02",
        "1 channel, 1 more network      600     90,000,000     9,700   2.58",
        "sum                         12,600  3,465,000,000             55.8",
    ]


def test_a_table_says_what_was_not_measured_and_in_what_kinds_differ() -> None:
    lines = training_table([Timed(part(1, 0, 2, 7200), 1.0), Timed(part(1, 2, 1, 3600, 128), 0.5, False)])
    assert [line.split("  ")[0] for line in lines[:4]] == [
        "kind",
        "1 channel, 64 images a step",
        "1 channel, 128 images a step, 2 more networks",
        "sum",
    ]
    assert lines[1].split()[-4:] == ["2", "7,200", "1", "2"]
    assert lines[2].split()[-4:] == ["1", "3,600", "~0.5", "2"]
    assert lines[3].split() == ["sum", "3", "10,800", "4"]
    assert lines[4] == "~ not measured: as slow as the slowest that was"


def forecast(crew: Crew, evaluation: EvaluationTime, units: int = 5) -> Forecast:
    """1,000 runs in populations that train ten hours in all, one after another."""
    steps = tuple([10 * HOUR // units] * units)
    trained = replace(part(1, 0, 1000, 10 * HOUR), unit_steps=steps)
    return Forecast([Timed(trained, 1.0)], crew, evaluation, 1000)


def test_without_a_gpu_the_same_processes_train_and_measure() -> None:
    one, two = Crew(1, 1, 2, 2, separate=False), Crew(2, 2, 2, 2, separate=False)
    assert forecast(one, EvaluationTime(100 * HOUR)).total == START_UP + 110 * HOUR
    assert forecast_lines(forecast(one, EvaluationTime(100 * HOUR)), only_here=False) == [
        "evaluation of 1,000 runs: 360 seconds each, 4.2 days more",
        "about 4.6 days in all with 1 worker of 2 threads",
    ]
    # Five populations of two hours: one worker takes three of them.
    assert forecast(two, EvaluationTime(100 * HOUR)).total == START_UP + (6 + 50) * HOUR


def test_with_a_gpu_other_processes_measure_meanwhile() -> None:
    one, two = Crew(1, 15, 2, 1, separate=True), Crew(2, 14, 2, 1, separate=True)
    # The scores of the last of five populations come after its training: a fifth of 6 hours.
    found = forecast(one, EvaluationTime(90 * HOUR, 3 * HOUR))
    assert found.total == pytest.approx(START_UP + (10 + 3 + 6 / 5) * HOUR)
    assert forecast_lines(found, only_here=False) == [
        "evaluation of 1,000 runs: 324 seconds each, 3.0 hours more of the GPU to encode, and meanwhile "
        "6.0 hours of 15 processes",
        "about 14.2 hours in all with 1 GPU",
    ]
    slow = forecast(one, EvaluationTime(900 * HOUR, 3 * HOUR))
    assert slow.total == pytest.approx(START_UP + 60 * HOUR)
    lines = forecast_lines(slow, only_here=True)
    assert lines[0].startswith("evaluation of 1,000 runs, whose data is here: 3,240 seconds")
    assert lines[1] == "about 2.5 days in all with 1 GPU, but for evaluating the others"
    # Three of the five populations train on the first GPU, and each encodes for its half.
    assert forecast(two, EvaluationTime(14 * HOUR, 2 * HOUR)).total == pytest.approx(
        START_UP + (6 + 1 + 1 / 5) * HOUR
    )


def test_the_processes_of_a_study() -> None:
    work = TrainAndScore("cuda", hand_over=True)
    gpus = [Post(("train",), work, 2, gpu) for gpu in "01"] + [Post(("evaluate",), work, 1, "0")] * 6
    assert Crew.of(gpus) == Crew(2, 6, 2, 1, separate=True)
    shared = [Post(("evaluate", "train"), TrainAndScore("cpu", jobs=3), 3)] * 2
    assert Crew.of(shared) == Crew(2, 2, 3, 3, separate=False)


@pytest.mark.parametrize(
    ("device", "table_fits", "seconds", "gpu"),
    [
        # Two representations of 10 s; 500 images asked for, at 0.1 s; the grid of dSprites, 737,280 images,
        # is larger than that, so that not all of it would be encoded. Both representations are of the same
        # images where these are drawn at random. To make an image takes 0.02 s.
        ("cpu", True, 2 * (2 * 10 + 2 * 500 * 0.12) + 3 * (2 * 10 + 500 * 0.12), 0.0),
        ("cuda", False, 2 * 2 * 10 + 3 * (2 * 10 + 500 * 0.02), (2 * 2 + 3) * 500 * 0.001),
        ("cuda", True, 2 * 2 * 10 + 3 * 2 * 10, (2 * 2 + 3) * 500 * 0.001),
    ],
)
def test_a_gpu_encodes_and_cores_make_what_does_not_fit_there(
    monkeypatch: pytest.MonkeyPatch, device: str, table_fits: bool, seconds: float, gpu: float
) -> None:
    def encoding(_run: RunSpec, _truth: object, on: torch.device, _threads: int) -> float:
        return 0.001 if on.type == "cuda" else 0.1

    monkeypatch.setattr(evaluation_time, "metrics_time", lambda *_: (10.0, 500))
    monkeypatch.setattr(evaluation_time, "encoding_time", encoding)
    monkeypatch.setattr(evaluation_time, "making_time", lambda _truth: 0.02)
    monkeypatch.setattr(evaluation_time, "can_make_images", lambda *_: table_fits)
    spec = StudySpec(
        "s",
        (
            *grid([{"name": "vae"}], data="dsprites", seed="0-1"),
            *grid([{"name": "vae"}], data="color_dsprites", seed="0-2"),
        ),
    )
    data = {name: load(name) for name in ("dsprites", "color_dsprites")}
    found = evaluation_time.evaluation_time(spec, spec.runs, data, torch.device(device))
    assert (found.seconds, found.gpu) == pytest.approx((seconds, gpu))


def test_held_out_combinations_are_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts of 10 s, and 7 s for what is lost between them; other data has one part."""
    monkeypatch.setattr(evaluation_time, "metrics_time", lambda *_: (10.0, 0))
    monkeypatch.setattr(evaluation_time, "encoding_time", lambda *_: 0.0)
    monkeypatch.setattr(evaluation_time, "generalisation_time", lambda *_: 7.0)
    names = ["dsprites", "dsprites:hold(x=0..15)"]
    runs = [run for name in names for run in grid([{"name": "vae"}], data=name, seed="0-2")]
    spec = StudySpec("s", tuple(runs), on=("training", "held_out"), representations=("mean",))
    found = evaluation_time.evaluation_time(
        spec, runs, {name: load(name) for name in names}, torch.device("cpu")
    )
    assert found.seconds == 3 * 10 + 3 * (2 * 10 + 7)


def test_generalisation_is_timed_on_the_data() -> None:
    spec = tiny_spec("0", points=(60, 30))
    assert 0 < evaluation_time.generalisation_time(spec, load("dsprites:hold(shape=2,x<16)"), 3) < 60


def test_a_grid_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_time, "metrics_time", lambda *_: (0.0, 2_915_000))
    monkeypatch.setattr(evaluation_time, "encoding_time", lambda *_: 0.75)
    monkeypatch.setattr(evaluation_time, "making_time", lambda _truth: 0.25)
    spec, data = tiny_spec("0"), {"dsprites": load("dsprites")}
    found = evaluation_time.evaluation_time(spec, spec.runs[:1], data, torch.device("cpu"))
    assert found.seconds == 737_280


@pytest.mark.parametrize(
    ("metrics", "images"),
    [
        ("mig", 60 + 30),
        ("mig, elbo", 60 + 30 + 60),
        ("factor_vae_score", 64 * 15_000 + 10_000),  # votes, and points for the variances
    ],
)
def test_images_that_metrics_ask_for_are_counted(metrics: str, images: int) -> None:
    seconds, asked = metrics_time(tiny_spec("0", metrics=metrics), load("dsprites"), 3)
    assert asked == images
    assert seconds > 0


def test_images_are_encoded() -> None:
    run = tiny_spec("0").runs[0]
    assert 0 < evaluation_time.encoding_time(run, load("dsprites"), torch.device("cpu")) < 1
    assert 0 < evaluation_time.making_time(load("dsprites")) < 1


def test_as_many_runs_are_measured_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def rate(specs: Sequence[RunSpec], *_: object) -> float:
        tried.append(len(specs))
        if len(specs) > room:
            raise torch.cuda.OutOfMemoryError
        return 7.0

    monkeypatch.setattr(measure, "_rate", rate)
    room, runs = 3, tiny_spec("0-4").runs
    assert measured_rate(runs, "cpu") == 7.0
    assert tried == [10, 5, 2]
    room = 0
    with pytest.raises(UnweaveError, match="not even one run of beta_vae fits into the memory of cpu"):
        measured_rate(runs, "cpu")


def test_a_population_is_really_trained() -> None:
    assert measured_rate(tiny_spec("0").runs, "cpu", seconds=0.01) > 0


def test_the_plan_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(measure, "measured_rate", made_up_rate)
    monkeypatch.setattr(evaluation_time, "metrics_time", lambda *_: (10.0, 1_000_000))
    monkeypatch.setattr(evaluation_time, "encoding_time", lambda *_: 0.0007)
    monkeypatch.setattr(evaluation_time, "making_time", lambda _truth: 0.0003)
    words = ["plan", "locatello2019", "--device", "cpu", "--population", "128"]
    study_app()(words, exit_on_error=False, result_action="return_value")
    lines = capsys.readouterr().out.splitlines()
    assert f"files of {', '.join(WITHOUT_FILES)} are not here: unweave data fetch NAME" in lines
    start = lines.index(
        "training, measured for 20 seconds on cpu, 128 runs together, with color_dsprites and dsprites:"
    )
    assert lines[start + 6].split() == ["sum", "12,600", "3,465,000,000", "55.8"]
    estimated = "data sets without local files are estimated from one with the same number of channels"
    assert lines[start + 7] == estimated
    # dSprites: 2 x 10 s and a grid of 737.28 s; colour and noisy: 2 x 10 + 1000 s; 1,800 runs each.
    seconds = (757.28 + 2 * 1020) / 3
    assert lines[start + 8].startswith(
        f"evaluation of 5,400 runs, whose data is here: {seconds:,.0f} seconds each, "
    )
    assert lines[start + 9].startswith("about ")
    assert lines[start + 9].endswith(", but for evaluating the others")
