"""`unweave select` as its user sees it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from cyclopts import CycloptsError

from command_line import run_here
from selection.tiny_study import IMAGES, trained_study
from unweave.cli import app
from unweave.commands.select import metrics_asked, supervised_scores
from unweave.errors import UnweaveError
from unweave.evaluation.score_store import kept_scores
from unweave.files import write_json
from unweave.report.names import CHOOSERS as KNOWN_TO_THE_REPORT
from unweave.results import read_table
from unweave.runs.store import RunFolder
from unweave.selection.select import CHOOSERS
from unweave.study import StudyFolder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_study(tmp_path_factory.mktemp("study") / "s").path


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def command(*words: object) -> None:
    tokens = ["select", *map(str, words), "--images", str(IMAGES), "--device", "cpu"]
    app(tokens, exit_on_error=False, print_error=False, result_action="return_value")


def test_the_best_runs_are_named_and_judged(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(study, "--top", 2)
    said = capsys.readouterr()
    assert "UDR: the best 2 of 6 runs" in said.out
    assert "ModelCentrality: the best 2 of 6 runs" in said.out
    table = read_table(study / "selection.parquet").table
    for score, title in (("udr.lasso", "UDR"), ("model_centrality", "ModelCentrality")):
        values = table[table["score"] == score].set_index("run")["value"]
        best = str(values.idxmax())
        [first, second] = said.out.partition(f"{title}: the best")[2].splitlines()[2:4]
        assert first.split()[:3] == ["1", best, "beta_vae"]
        assert first.split()[5] == f"{values.max():.4f}"
        assert float(second.split()[5]) == pytest.approx(values.sort_values().iloc[-2], abs=1e-4)
        assert f"chosen: {StudyFolder(study).run_path(best)}" in said.out
    judged = [line.split() for line in said.out.splitlines() if line.startswith(" UDR (lasso) ")]
    assert [line[2] for line in judged] == ["MIG", "Modularity"]
    assert f"-> {study / 'selection.parquet'}" in said.out
    assert "unweave report" not in said.out, "there is no table of results yet"
    assert "compared with 2 others only" in said.err


def test_the_judgement_is_right(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(study, "--by", "udr", "--metrics", "mig")
    said = capsys.readouterr().out
    assert "ModelCentrality" not in said
    [line] = [line for line in said.splitlines() if line.startswith(" UDR (lasso) ")]
    runs = read_table(study / "selection.parquet").table
    chosen = runs[runs["score"] == "udr.lasso"].set_index("run")["value"]
    folder = StudyFolder(study)
    mig = {}
    for run_id in folder.runs:
        [record] = kept_scores(folder.run_folder(run_id))
        mig[run_id] = record["mig"]
    of_best = mig[str(chosen.idxmax())]
    lower, equal = (
        sum(v < of_best for v in mig.values()),
        sum(v == of_best for v in mig.values()) - 1,
    )
    words = line.split()
    assert float(words[3]) == round(100 * (lower + equal + 1) / 6)
    assert float(words[4]) == pytest.approx((lower + equal / 2) / 5, abs=0.006)
    stats = pytest.importorskip("scipy.stats")
    correlation = stats.spearmanr(chosen.to_numpy(), [mig[str(i)] for i in chosen.index]).statistic
    assert float(words[-4]) == pytest.approx(correlation, abs=0.006)


def test_scores_of_another_call_stay_in_the_table(study: Path) -> None:
    command(study, "--by", "udr")
    command(study, "--by", "centrality", "--within", "study")
    command(study, "--by", "few_labels", "--labels", 45)
    command(study, "--by", "few_labels", "--labels", 50)
    table = read_table(study / "selection.parquet").table
    by_labels = [f"few_labels.{metric}_{labels}" for metric in ("dci", "mig") for labels in (45, 50)]
    names = [*KNOWN_TO_THE_REPORT[:3], *by_labels]
    assert table.groupby("score", observed=True).size().to_dict() == dict.fromkeys(names, 6)
    command(study, "--by", "centrality")
    table = read_table(study / "selection.parquet").table
    assert len(table) == 42
    assert table["protocol"].str.endswith((",setting]", ",labels45]", ",labels50]")).all()


def test_runs_are_chosen_by_imprecise_labels(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(study, "--by", "few_labels", "--labels", 50, "--labeller", "partial")
    assert "few_labels.dci_50_partial" in capsys.readouterr().out
    table = read_table(study / "selection.parquet").table
    assert set(table["score"]) == {"few_labels.dci_50_partial", "few_labels.mig_50_partial"}
    with pytest.raises(CycloptsError, match="nosy"):
        command(study, "--by", "few_labels", "--labeller", "nosy")


def test_the_table_may_be_csv(study: Path, tmp_path: Path) -> None:
    command(study, "-o", tmp_path / "mine.csv")
    assert len(read_table(tmp_path / "mine.csv").table) == 18
    assert not (study / "selection.parquet").exists()
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UnweaveError, match=r"other\.csv holds no scores of a selection: .* Choose another"):
        command(study, "-o", tmp_path / "other.csv")


def test_settings_that_differ_in_more_than_the_method(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [RunFolder(path) for path in sorted((study / "runs").iterdir())]
    for folder in folders[:2]:
        write_json(
            folder.path / "spec.json",
            {"spec": replace(folder.spec, steps=3).to_dict(), **folder.origin},
        )
    command(study / "runs", "--within", "study", "--by", "centrality")
    said = capsys.readouterr().out
    assert "beta=1, steps=3" in said
    assert "beta=4, steps=2" in said


def test_runs_without_scores_are_chosen_too(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in study.glob("runs/*/scores.json"):
        path.unlink()
    command(study)
    said = capsys.readouterr().out
    assert "chosen: " in said
    assert "There are no supervised scores of the runs" in said


def test_a_stop_is_explained(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unweave.commands.select.select", stop)
    with pytest.raises(SystemExit, match="130"):
        command(study)
    assert "stopped: run the same command again to resume." in capsys.readouterr().err


def test_wrong_metrics_are_told_first() -> None:
    assert metrics_asked(None) is None
    assert metrics_asked("mig, dci.completeness") == ["mig", "dci.completeness"]
    for text, message in (
        ("migg", 'Did you mean "mig"'),
        ("elbo", "judged by metrics that need labels; elbo needs none"),
        (",", "--metrics names no metric"),
    ):
        with pytest.raises(UnweaveError, match=message):
            metrics_asked(text)


def test_a_metric_stands_for_its_main_score() -> None:
    names = ["mig", "dci.completeness", "dci.disentanglement", "infomec.modularity", "infomec.compactness"]
    runs = pd.DataFrame({name: [0.5] for name in names})
    assert supervised_scores(runs, ["dci", "mig", "dci"]) == ["dci.disentanglement", "mig"]
    assert supervised_scores(runs, ["dci.completeness"]) == ["dci.completeness"]
    assert supervised_scores(runs, ["infomec"]) == ["infomec.modularity", "infomec.compactness"]
    assert supervised_scores(runs, None) == ["mig", "dci.disentanglement"]
    with pytest.raises(UnweaveError, match=r'the runs have no score "sap"\. Known: mig, dci'):
        supervised_scores(runs, ["sap"])


def test_the_report_knows_the_same_names() -> None:
    assert tuple(score for scores in CHOOSERS.values() for score in scores) == KNOWN_TO_THE_REPORT


def test_bad_input_is_one_sentence_and_status_2(study: Path, tmp_path: Path) -> None:
    for arguments, words in (
        ([tmp_path / "none"], "there is no folder"),
        ([study, "--by", "chance"], "chance"),
        ([study, "--top", "0"], "--top is how many runs to show"),
    ):
        done = run_here("select", *arguments)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert "Traceback" not in done.stderr
