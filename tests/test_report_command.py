"""`unweave report` from the terminal."""

from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from command_line import run_here
from report.made_up import SIX, Rule, settings, table
from unweave.commands.report import show_agreement
from unweave.errors import UnweaveError
from unweave.report.inputs import RECONSTRUCTIONS, pictures_of_runs, read_results
from unweave.results import combine


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The folder of a study with a table of results."""
    folder = tmp_path / "study"
    folder.mkdir()
    table(settings(["dsprites"]), {"mig": SIX["mig"]}).table.to_parquet(folder / "results.parquet")
    return folder


@pytest.mark.usefixtures("quick_fonts")
def test_a_report_of_a_study(study: Path, tmp_path: Path) -> None:
    done = run_here("report", study, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"-> {tmp_path / 'out' / 'index.html'}\n"
    assert (tmp_path / "out" / "figures" / "scores_by_method.pdf").is_file()


def test_wrong_input_is_one_sentence(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    (run / "spec.json").write_text("{}")
    for arguments, words in (
        ([], "name what to report on"),
        ([tmp_path], "has no results.parquet"),
        (
            [tmp_path / "runs"],
            f"runs has runs that were trained one by one. Compare them with unweave explore {tmp_path}",
        ),
        ([run], "Compare them with unweave explore"),
        ([tmp_path / "none.csv"], "there is no file"),
    ):
        done = run_here("report", *arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_tables_of_several_kinds_are_put_together(study: Path, tmp_path: Path) -> None:
    other = pd.DataFrame({"set": ["dsprites"], "kind": ["their_vae"], "number": [0], "MIG": [0.3]})
    other.to_csv(tmp_path / "other.csv", index=False)
    (tmp_path / "mapping.toml").write_text(
        'columns = {data = "set", method = "kind", seed = "number"}\n'
        'scores = {mig = "MIG"}\nconstants = {source = "theirs"}\n'
    )
    results = read_results([study, tmp_path / "other.csv"], mapping=tmp_path / "mapping.toml")
    assert set(results.table["source"].unique()) == {"own", "theirs"}
    assert results.table["value"].iloc[-1] == 0.3
    with pytest.raises(UnweaveError, match="a table of results has the columns"):
        read_results([tmp_path / "other.csv"])


def test_what_was_chosen_in_a_study_is_reported_with_it(study: Path) -> None:
    before = read_results([study]).table
    made = table(settings(["dsprites"]), {"udr": SIX["mig"]}).table
    made.to_parquet(study / "selection.parquet")
    after = read_results([study]).table
    assert len(after) == len(before) + len(made)
    assert set(after["score"]) == {"mig", "udr"}


def test_one_picture_of_each_data_set_and_method(study: Path) -> None:
    runs = settings(["dsprites"]).assign(run=[f"{i:016x}" for i in range(18)])
    for run in ("1", "2", "b"):
        folder = study / f"beta_vae-dsprites-seed0-{run:0>16}" / "pictures"
        folder.mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(folder / "reconstructions.png")
    result = pictures_of_runs([study], table(runs, SIX), RECONSTRUCTIONS)
    # Runs 0 to 8 are of the first method, 9 to 17 of the second: strengths 1, 2, 4 with three seeds each.
    assert [title for title, _ in result] == ["dSprites: β-VAE 1", "dSprites: FactorVAE 1"]
    assert [path.parts[-3][-1] for _, path in result] == ["1", "b"]
    assert pictures_of_runs([study / "results.parquet"], table(runs, SIX), RECONSTRUCTIONS) == []


def test_settings_that_do_not_agree_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    own = settings(["dsprites"], ["beta_vae"], [1.0, 4.0])
    theirs = settings(["dsprites"], ["beta_vae"], [1.0, 4.0], source="published")
    shifted: dict[str, Rule] = {"mig": lambda at: SIX["mig"](at) + at.strength}
    show_agreement(combine(table(own, shifted), table(theirs, {"mig": SIX["mig"]})))
    printed = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "dSprites β-VAE 1 3 1 of 1" in lines
    assert "dSprites β-VAE 4 3 0 of 1 mig 1.160, 0.160" in lines
    assert any(line.startswith("1 of 2 scores of 2 shared settings (50%) agree") for line in lines)
    show_agreement(table(own, SIX))
    assert capsys.readouterr().out == ""
