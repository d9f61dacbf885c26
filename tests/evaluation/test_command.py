"""`unweave evaluate` on files, on read-only folders, and on folders with runs that cannot be measured."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unweave
from metrics.grids import grid
from training.tiny import TINY
from unweave.cli import app
from unweave.errors import DiskFullError, UnweaveError
from unweave.evaluation import score_store as kept
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.files import read_codes_and_factors
from unweave.evaluation.score_store import evaluate_run
from unweave.files import write_json

FACTORS = grid(3, 4, repeats=5)
CODES = FACTORS * 1.0
EFFORT = Effort(points=(60, 30))
SMALL = ("--metrics", "mig", "--points", "60", "30", "--device", "cpu")


def command(*words: object) -> int:
    """Run the command in this process; returns its exit status."""
    try:
        app(
            ["evaluate", *map(str, words)],
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs on a tiny data set."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        unweave.train(
            unweave.methods.VAE(), TINY, out=folder, steps=2, batch=4, latents=3, seed=seed, device="cpu"
        )
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the runs, whose data is known although it is not in the catalogue."""
    monkeypatch.setattr(unweave.Run, "data", TINY)
    return Path(shutil.copytree(trained, tmp_path / "runs"))


def refuse_to_write(error: int) -> Callable[..., None]:
    def write(*_arguments: object) -> None:
        raise OSError(
            error, "Read-only file system" if error == errno.EROFS else "No space left", "scores.lock"
        )

    return write


def test_scores_of_a_read_only_folder_are_printed_with_a_note(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = min(runs.iterdir())
    monkeypatch.setattr(kept, "hold", refuse_to_write(errno.EROFS))
    assert command(run, *SMALL) == 0
    said = capsys.readouterr()
    assert "mig[bins20,n60,mean]" in said.out
    assert "->" not in said.out
    assert said.err == (
        f"unweave: the scores were not kept: cannot write {run / 'scores.json'}: read-only file system.\n"
    )
    assert not (run / "scores.json").exists()


def test_scores_that_cannot_be_kept_are_returned_and_are_an_error_for_a_study(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unweave.load(min(runs.iterdir()))
    expected = dict(unweave.evaluate(run, metrics="mig, sap", points=EFFORT.points))
    evaluate_run(run, "mig", effort=EFFORT)
    monkeypatch.setattr(kept, "write_json", refuse_to_write(errno.EROFS))
    failures: list[UnweaveError] = []
    [record] = evaluate_run(run, "mig, sap", effort=EFFORT, on_unwritable=failures.append)
    assert dict(record) == expected  # what was kept before, and what is new
    [failure] = failures
    assert "scores.json: read-only file system." in str(failure)
    with pytest.raises(UnweaveError, match="the scores were not kept: cannot write"):
        evaluate_run(run, "sap", effort=EFFORT)
    (run.path / "scores.json").unlink()
    monkeypatch.undo()
    monkeypatch.setattr(unweave.Run, "data", TINY)
    monkeypatch.setattr("os.fsync", refuse_to_write(errno.ENOSPC))
    with pytest.raises(DiskFullError, match="the scores were not kept"):
        evaluate_run(run, "mig", effort=EFFORT)


def test_runs_that_cannot_be_measured_do_not_stop_the_others(
    runs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken, unfinished, good = sorted(runs.iterdir())
    (broken / "weights.safetensors").write_bytes(b"not weights")
    (unfinished / "result.json").unlink()
    for name, text in (("foreign", "{}"), ("text", "not JSON")):
        (runs / name).mkdir()
        (runs / name / "spec.json").write_text(text)
        write_json(runs / name / "result.json", {"outcome": "finished"})
    assert command(runs, *SMALL, "--json", tmp_path / "s.json") == 1
    said = capsys.readouterr()
    [record] = json.loads((tmp_path / "s.json").read_text())
    assert record["subject"] == str(good)
    lines = said.err.splitlines()
    assert len(lines) == 5
    for path in (broken, unfinished, runs / "foreign", runs / "text"):
        assert sum(line.startswith(f"unweave: skipped {path}: ") for line in lines) == 1
    assert f"unweave: skipped {unfinished}: the run in {unfinished} is not finished." in said.err
    assert lines[4].startswith("unweave: skipped 4: ")
    assert "Traceback" not in said.err


def test_a_run_that_is_named_alone_is_refused(runs: Path) -> None:
    run = min(runs.iterdir())
    (run / "result.json").unlink()
    with pytest.raises(UnweaveError, match=r"is not finished\. Run the command that trains it again"):
        command(run, *SMALL)
    with pytest.raises(
        UnweaveError, match=r"is not finished, so its codes cannot be measured\. Train it to the"
    ):
        evaluate_run(unweave.load(run), "mig", effort=EFFORT)


def test_nothing_that_can_be_measured_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in runs.iterdir():
        (run / "result.json").unlink()
    with pytest.raises(UnweaveError, match="none of the 3 could be measured"):
        command(runs, *SMALL)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_codes_are_read_from_arrays_and_tables(tmp_path: Path) -> None:
    names = {"z0": CODES[:, 0], "z_1": CODES[:, 1], "shape": np.array(["box", "disc", "star"])[FACTORS[:, 0]]}
    table = pd.DataFrame(names | {"x": FACTORS[:, 1]})
    table.to_csv(tmp_path / "all.csv", index=False)
    table.to_csv(tmp_path / "all.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "all.parquet")
    np.save(tmp_path / "codes.npy", CODES)
    np.save(tmp_path / "factors.npy", FACTORS)
    np.savez(tmp_path / "codes.npz", codes=CODES)
    table[["shape", "x"]].to_csv(tmp_path / "factors.csv", index=False)
    expected = dict(unweave.evaluate(CODES, FACTORS, metrics="mig, sap"))
    for codes, factors in (
        ("all.csv", None),
        ("all.tsv", None),
        ("all.parquet", None),
        ("codes.npy", "factors.npy"),
        ("codes.npy", "factors.csv"),
        ("codes.npz", "factors.csv"),
    ):
        given = read_codes_and_factors(tmp_path / codes, None if factors is None else tmp_path / factors)
        assert dict(unweave.evaluate(given["codes"], given["factors"], metrics="mig, sap")) == expected
    assert command(tmp_path / "codes.npy", "--factors", tmp_path / "factors.csv", "--metrics", "mig") == 0


def test_files_without_factors_or_codes_are_one_sentence(tmp_path: Path, runs: Path) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    np.savez(tmp_path / "codes.npz", codes=CODES)
    pd.DataFrame(CODES, columns=["z0", "z1"]).to_csv(tmp_path / "codes.csv", index=False)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    (tmp_path / "codes.txt").write_text("1 2")
    (tmp_path / "bad.parquet").write_text("no table")
    for words, message in (
        (["codes.npy"], "holds one array, and codes need their factors: add --factors factors.npy"),
        (["codes.npz"], "must hold codes .* it holds codes"),
        (["codes.csv"], "must have columns z0, z1, .* it has z0, z1. If it holds codes only, add --factors"),
        (["empty.csv"], "cannot be read as a .csv file"),
        (["bad.parquet"], "cannot be read as a .parquet file"),
        (["bad.npy", "--factors", tmp_path / "codes.npy"], "cannot read .*bad.npy as numbers saved by NumPy"),
        (["codes.txt"], "are read from .npz, .npy, .csv, .tsv and .parquet files; got"),
        (["codes.npy", "--factors", tmp_path / "none.npy"], "there is no file"),
        (["codes.npy", "--factors", tmp_path / "codes.txt"], "codes and factors are read from"),
    ):
        with pytest.raises(UnweaveError, match=message):
            command(tmp_path / str(words[0]), *words[1:])
    options: list[list[object]] = [
        ["--factors", tmp_path / "codes.npy"],
        ["--kinds", "a=b"],
        ["--standardise"],
    ]
    for option in options:
        with pytest.raises(UnweaveError, match=f"{option[0]} belongs to a file of codes"):
            command(min(runs.iterdir()), *option)
    np.savez(tmp_path / "good.npz", codes=CODES, factors=FACTORS)
    for name, *values in (("--data", "dsprites"), ("--keep-codes",), ("--on", "all")):
        with pytest.raises(UnweaveError, match=f"{name} belongs to runs and encoders; .* is a file"):
            command(tmp_path / "good.npz", name, *values)


def test_codes_of_a_file_are_standardised_if_asked(tmp_path: Path) -> None:
    np.savez(tmp_path / "codes.npz", codes=1e-4 * CODES, factors=FACTORS)
    counted = {}
    for words in ((), ("--standardise",)):
        target = tmp_path / "scores.json"
        command(tmp_path / "codes.npz", "--metrics", "factor_vae_score, mig", "--json", target, *words)
        [record] = json.loads(target.read_text())
        scores = {score["name"]: score for score in record["scores"]}
        counted[words] = scores["factor_vae_score.active"]["value"]
        assert ("standardised" in scores["factor_vae_score.active"]["protocol"]) == bool(words)
        assert "standardised" not in scores["mig"]["protocol"]
    assert counted == {(): 0, ("--standardise",): 2}
