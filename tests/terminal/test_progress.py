"""What progress displays draw, at any width; no terminal is needed for that."""

import io

import pytest
from rich.console import Console

from unweave.commands.listing import Listing
from unweave.display.progress import Frame, TrainingProgress, clock
from unweave.study.display import StudyProgress
from unweave.study.progress import Status
from unweave.training.trainer import Report

LOSSES = {"reconstruction": 123.456, "kl": 7.89, "elbo": -131.3, "total_correlation": 0.0123}
WIDTHS = [30, 40, 60, 80, 120, 200]


def drawn(thing: object, width: int) -> list[str]:
    """The lines of something that is drawn on a terminal."""
    screen = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    with screen.capture() as capture:
        screen.print(thing)
    return [line.rstrip() for line in capture.get().splitlines()]


def half_trained(clock_time: pytest.MonkeyPatch) -> TrainingProgress:
    """Two populations of one run; the first is at its second report, after 20 seconds."""
    now = 1000.0
    clock_time.setattr("unweave.display.progress.time.monotonic", lambda: now)
    progress = TrainingProgress({"a": 300_000, "b": 300_000})
    for step in (50_000, 100_000):
        now += 10.0
        progress.update(Report(step, 300_000, ("a",), (LOSSES,), now - 1000.0))
    return progress


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_important_is_lost_in_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(half_trained(monkeypatch).frame, width)
    assert all(len(line) <= width for line in lines)
    assert "━" in lines[0]
    assert "100,000/300,000 steps" in lines[0]
    if width >= 60:
        assert "100,000/300,000 steps  1:40 left  0/2 runs trained" in lines[0]
    if width < 80:
        return
    assert "5,000 steps/s" in lines[0]
    losses = lines[0] if width >= 200 else lines[1]
    assert "reconstruction 123.5, kl 7.89, total_correlation 0.0123" in losses


def test_losses_are_shortened_before_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(half_trained(monkeypatch).frame, 40)[1] == "rec 123.5, kl 7.89, tc 0.0123"


def test_before_the_first_report_all_that_is_known_is_shown() -> None:
    [line] = drawn(TrainingProgress({"a": 3000}).frame, 80)
    assert line.endswith("0/3,000 steps  0:00 elapsed")


def test_a_resumed_run_is_not_counted_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("unweave.display.progress.time.monotonic", lambda: now)
    progress = TrainingProgress({"a": 1000, "done": 1000}, {"a": 500, "done": 1000})
    now = 10.0
    progress.update(Report(600, 1000, ("a",), (LOSSES,), 10.0))
    assert progress.updates.value == pytest.approx(10.0)
    assert progress.seconds_left == pytest.approx(40.0)
    assert (progress.position, progress.trained) == ("600/1,000 steps", "1/2 runs trained")
    assert progress.share == pytest.approx(0.8)
    assert progress.line.startswith("step 600 of 1,000: reconstruction 123.5")
    assert progress.line.endswith("; 10 steps/s, 0:40 left")


def test_a_run_that_leaves_its_population_is_done() -> None:
    progress = TrainingProgress({"a": 100, "b": 100})
    progress.update(Report(10, 100, ("a", "b"), (LOSSES, LOSSES), 1.0))
    progress.update(Report(20, 100, ("b",), (LOSSES,), 2.0))  # the other has diverged
    assert progress.done == {"a": 100, "b": 20}
    progress.update(Report(100, 100, ("b",), (LOSSES,), 3.0))
    assert progress.complete
    assert progress.seconds_left is None


def test_what_goes_on_after_training_is_shown() -> None:
    progress = TrainingProgress({"a": 10})
    progress.update(Report(10, 10, ("a",), (LOSSES,), 1.0))
    progress.do("measuring run a")
    assert "measuring run a" in " ".join(drawn(progress.frame, 80))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_study_keeps_its_bar_and_remaining_time(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("unweave.study.display.time.monotonic", lambda: now)
    progress = StudyProgress()
    assert "starting" in drawn(progress.frame, width)[0]
    progress.update(Status(12_600, 0, 0, 0, 3, 1_000_000, 0.0))
    now = 100.0
    progress.update(Status(12_600, 3000, 2500, 12, 3, 1_000_000, 250_000.0))
    lines = drawn(progress.frame, width)
    assert all(len(line) <= width for line in lines)
    assert "━" in lines[0]
    assert "2,500/12,600 runs" in lines[0]
    if width >= 60:
        assert "5:00 left" in lines[0]
        assert "3,000 trained, 3 tasks running, 12 failed" in " ".join(lines)
    assert progress.line.endswith("12 failed; 2,500 model-steps/s, 5.0 minutes of training left")


def test_an_empty_frame_is_drawn() -> None:
    assert drawn(Frame(None, ["waiting"]), 20)[0].endswith("waiting")


def test_long_times() -> None:
    assert [clock(s) for s in (0, 59.6, 3600, 86_400)] == ["0:00", "1:00", "1:00:00", "1 day 0:00:00"]


def test_a_table_that_is_too_wide_is_stacked_and_never_cut() -> None:
    table = Listing("name", "range", "protocol", below="protocol")
    table.add_row("wasserstein_correlation_normalised", "0 to 2", "wasserstein\\[gaussian]" + " and more" * 5)
    assert len(drawn(table, 120)) == 2
    narrow = drawn(table, 60)
    assert narrow[2] == "wasserstein_correlation_normalised  0 to 2"
    assert narrow[3] == "    wasserstein[gaussian] and more and more and more and"
    assert "…" not in "".join(drawn(table, 40))
