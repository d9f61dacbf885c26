"""What a folder shows of runs in training: states, increments, time left, a thousand runs at little cost."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from explore.live_folders import add_lines, end_run, locked, spec_of, write_run, write_study
from unweave.explore.live import watch, watched_run
from unweave.explore.live.folders import spec_hash
from unweave.explore.live.watch import LiveFolder
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the files whenever asked."""
    monkeypatch.setattr(watch, "PAUSE", 0.0)
    monkeypatch.setattr(watched_run, "HOLDER_EVERY", 0.0)


def states(folder: LiveFolder) -> dict[int, str]:
    """The state of each run by its seed."""
    return {record["seed"]: record["state"] for record in folder.changes(0, {})["runs"]}


def test_the_hash_of_a_spec_is_the_id_of_its_run() -> None:
    spec = RunSpec(BetaVAE(4.0), seed=3)
    assert spec_hash(json.loads(json.dumps(spec.to_dict()))) == spec.id


def test_the_states_of_runs(tmp_path: Path) -> None:
    specs = [spec_of(seed=seed) for seed in range(8)]
    write_study(tmp_path, *specs)
    live, runs = LiveFolder(tmp_path), tmp_path / "runs"
    assert set(states(live).values()) == {"waiting"}
    folders = [write_run(runs, spec, {"step": 100, "kl": 1.0}) for spec in specs[1:]]
    end_run(folders[1])
    end_run(folders[2], scores={"mig": 0.25})
    end_run(folders[3], "diverged")
    (folders[4] / "error.json").write_text(json.dumps({"doing": "train", "error": "no memory"}))
    end_run(folders[5])
    (folders[5] / "error.json").write_text(json.dumps({"doing": "evaluate", "error": "no data"}))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead = {"pid": child.pid, "host": os.uname().nodename, "born": "1"}
    (folders[6] / "train.lock").write_text(json.dumps(dead))
    with locked(folders[0]):
        assert states(live) == {
            0: "waiting",
            1: "training",
            2: "trained",
            3: "measured",
            4: "diverged",
            5: "failed",
            6: "failed",
            7: "stopped",
        }
    assert states(live)[1] == "stopped", "the process that trained it let go of it"
    record = live.changes(0, {spec_hash(specs[3]): ""})
    errors = {run["seed"]: run["error"] for run in record["runs"]}
    assert (errors[4], errors[5]) == ("the loss was not finite at step 1,000.", "no memory")
    assert record["shown"][spec_hash(specs[3])]["scores"][0]["value"] == 0.25
    once = {"waiting": 1, "trained": 1, "measured": 1, "diverged": 1}
    assert record["counts"] == {**once, "stopped": 2, "failed": 2}


def test_a_run_on_another_machine_trains_while_its_log_grows(tmp_path: Path) -> None:
    folder = write_run(tmp_path, spec_of(), {"step": 100, "kl": 1.0})
    (folder / "train.lock").write_text(json.dumps({"pid": 1, "host": "another machine"}))
    live = LiveFolder(tmp_path)
    assert states(live) == {0: "training"}
    for path in (folder / "log.jsonl", folder):
        os.utime(path, (time.time() - 3600,) * 2)
    assert states(LiveFolder(tmp_path)) == {0: "stopped"}


def test_only_what_changed_is_sent(tmp_path: Path) -> None:
    folders = [write_run(tmp_path, spec_of(seed=seed), {"step": 1, "kl": 1.0}) for seed in range(3)]
    live, keys = LiveFolder(tmp_path), [spec_hash(spec_of(seed=seed)) for seed in range(3)]
    first = live.changes(0, {keys[0]: ""})
    assert first["whole"]
    assert len(first["runs"]) == 3
    assert live.changes(first["version"], {})["runs"] == []
    add_lines(folders[0], {"step": 2, "kl": 0.5})
    shown = {keys[0]: first["shown"][keys[0]]["cursor"]}
    second = live.changes(first["version"], shown)
    assert [(run["key"], run["step"]) for run in second["runs"]] == [(keys[0], 2)]
    assert "settings" not in second["runs"][0], "what never changes is sent once"
    assert second["shown"][keys[0]]["terms"] == {"kl": [0.5]}
    shutil.rmtree(folders[1])
    write_run(tmp_path, spec_of(seed=9))
    third = live.changes(second["version"], {})
    assert third["removed"] == [keys[1]]
    assert [run["seed"] for run in third["runs"]] == [9]
    later = LiveFolder(tmp_path).changes(third["version"] - 10_000_000, {})
    assert later["whole"], "a page of an earlier server gets everything"


def test_a_folder_that_appears_later(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path / "later" / "runs")
    assert live.changes(0, {})["runs"] == []
    folder = write_run(live.path, spec_of())
    (folder / "spec.json").rename(folder / "hidden")
    assert live.changes(0, {})["runs"] == [], "its spec is not written yet"
    (folder / "hidden").rename(folder / "spec.json")
    assert states(live) == {0: "stopped"}
    alone = LiveFolder(folder)
    assert states(alone) == {0: "stopped"}


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside", spec_of(seed=1), {"step": 5, "kl": 1.0})
    inside = write_run(tmp_path / "runs", spec_of(seed=2))
    (tmp_path / "runs" / outside.name).symlink_to(outside)
    (inside / "log.jsonl").unlink()
    (inside / "log.jsonl").symlink_to(outside / "log.jsonl")
    key = spec_hash(spec_of(seed=2))
    record = LiveFolder(tmp_path / "runs").changes(0, {key: ""})
    assert [run["seed"] for run in record["runs"]] == [2]
    assert record["shown"][key]["steps"] == []


def test_rate_and_time_left(tmp_path: Path) -> None:
    """100 steps take 10 seconds, so the 800 that are left take 80, and those of the waiting run 100 more."""
    specs = [spec_of(seed=0), spec_of(seed=1)]
    write_study(tmp_path, *specs)
    folder, live, now = write_run(tmp_path / "runs", specs[0]), LiveFolder(tmp_path), time.time()
    with locked(folder):
        for step, at in ((100, now - 10), (200, now)):
            add_lines(folder, {"step": step, "kl": 1.0})
            os.utime(folder / "log.jsonl", (at, at))
            record = live.changes(0, {})
    training = next(run for run in record["runs"] if run["seed"] == 0)
    assert (training["rate"], training["left"]) == (10.0, 80.0)
    assert record["left"] == pytest.approx(180, rel=1e-3)
    assert record["done"] == pytest.approx(0.1)


def test_a_thousand_runs_cost_little(tmp_path: Path) -> None:
    specs = [spec_of(beta=beta, seed=seed) for beta in range(20) for seed in range(50)]
    write_study(tmp_path, *specs)
    for spec in specs:
        write_run(tmp_path / "runs", spec, {"step": 20, "kl": 1.0})
    live, folders = LiveFolder(tmp_path), list((tmp_path / "runs").iterdir())
    live.changes(0, {})
    for folder in folders:
        os.utime(folder, (time.time() - 60,) * 2)  # so that their files need not be listed again
    costs = []
    for step in range(21, 25):
        for folder in folders:
            add_lines(folder, {"step": step, "kl": 1.0})
        version = live.changes(0, {})["version"] - 1
        start = time.process_time()
        assert len(live.changes(version, {})["runs"]) == 1000
        assert live.changes(version + 1, {})["runs"] == []
        costs.append(time.process_time() - start)
    assert min(costs) < 0.3, "seconds of a processor for two looks at 1,000 runs"
