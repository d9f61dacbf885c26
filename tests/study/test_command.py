"""`unweave study` as its user sees it."""

from pathlib import Path

import pandas as pd
import pytest

from study.chaos import STUDY
from unweave.commands.study import study_app
from unweave.errors import UnweaveError

TINY = STUDY.format(last=0).replace("[1, 2, 4, 8, 16, 32]", "[1, 4]")


def command(*words: object) -> None:
    study_app()([str(word) for word in words], exit_on_error=False, result_action="return_value")


def test_from_plan_to_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(TINY)
    command("plan", tmp_path / "mine.toml", "--device", "cpu", "--no-measure")
    said = capsys.readouterr().out
    assert "2 runs in 1 populations; data dsprites; 1 methods in 2 settings" in said
    assert "to train: 2 runs, 8 model-steps" in said
    folder = tmp_path / "s"
    command("run", tmp_path / "mine.toml", "-o", folder, "--device", "cpu", "--workers", 1)
    said = capsys.readouterr().out
    assert "2 of 2 runs done" in said
    assert f"-> {folder / 'results.parquet'}" in said
    assert set(pd.read_parquet(folder / "results.parquet")["score"]) == {"mig", "modularity"}
    command("status", folder)
    assert "2 of 2 runs done, 2 trained" in capsys.readouterr().out
    command("run", folder, "--device", "cpu", "--workers", 1, "--metrics", "irs")
    assert set(pd.read_parquet(folder / "results.parquet")["score"]) == {"mig", "modularity", "irs"}
    command("export", folder, "-o", tmp_path / "runs.csv", "--what", "runs")
    assert list(pd.read_csv(tmp_path / "runs.csv")["outcome"]) == ["finished", "finished"]
    command("collect", folder, "-o", tmp_path / "t.csv")
    assert len(pd.read_csv(tmp_path / "t.csv")) == 2 * 2 * 3
    command("retry", folder)
    assert "0 tasks are open again" in capsys.readouterr().out
    (folder / "ledger.sqlite").unlink()
    command("status", folder)
    assert "2 of 2 runs done" in capsys.readouterr().out


def test_a_shard_is_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(TINY)
    for shard in ("0/2", "1/2"):
        command(
            "run", tmp_path / "mine.toml", "-o", tmp_path / "s", "--device", "cpu", "--workers", 1,
            "--population", 1, "--shard", shard,
        )  # fmt: skip
        assert "1 of 1 runs done" in capsys.readouterr().out
    assert not (tmp_path / "s" / "ledger.sqlite").exists()
    command("collect", tmp_path / "s")
    assert "of 2 runs" in capsys.readouterr().out
    for wrong in ("2/2", "x", "1"):
        with pytest.raises(UnweaveError, match=r"shard"):
            command("run", tmp_path / "mine.toml", "-o", tmp_path / "s", "--device", "cpu", "--shard", wrong)


def test_what_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    for name, message in [
        ("smok", r'no study "smok"\. Did you mean "smoke"'),
        (tmp_path, "not the folder of a study"),
        (tmp_path / "file.txt", "is no study: give a preset"),
    ]:
        with pytest.raises(UnweaveError, match=message):
            command("run", name, "--device", "cpu")


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    command("presets")
    assert "locatello2019: The 12,600 models" in capsys.readouterr().out
