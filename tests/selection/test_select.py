"""Selection over trained runs: scores against a slow computation, kept scores, refused input."""

import shutil
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from selection.tiny_study import IMAGES, trained_study
from unweave.data import from_arrays, load
from unweave.errors import UnweaveError
from unweave.evaluation.encoders import Posterior
from unweave.files import write_json
from unweave.methods import AE
from unweave.results import check_table
from unweave.runs.run import Run
from unweave.runs.store import RunFolder, read_tensors, write_tensors
from unweave.selection import Selection, candidates_in, select
from unweave.selection import codes as codes_module
from unweave.selection.codes import drawn_images, encoded, mean_kl
from unweave.study import StudyFolder

OPTIONS: dict[str, Any] = {"images": IMAGES, "device": "cpu"}
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_study(tmp_path_factory.mktemp("study") / "s").path


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> StudyFolder:
    """A copy that a test may change."""
    return StudyFolder(Path(shutil.copytree(trained, tmp_path / "study")))


def values(chosen: Selection, score: str) -> dict[str, float]:
    return {run.id: value for run, value in chosen.ranking(score)}


def slow_codes(study: StudyFolder) -> dict[str, Array]:
    """Informative codes of each run, standardised, one image after the other."""
    images = drawn_images(load("dsprites"), IMAGES)
    chosen = {}
    for run_id in study.runs:
        run = Run(study.run_folder(run_id), "cpu")
        posterior = run.posterior(images)
        mean, log_var = posterior.mean.double().numpy(), posterior.log_var.double().numpy()
        live = []
        for d in range(mean.shape[1]):
            kl = sum(0.5 * (m**2 + np.exp(v) - v - 1) for m, v in zip(mean[:, d], log_var[:, d], strict=True))
            if kl / len(mean) > 0.01:
                live.append(d)
        chosen[run_id] = (mean[:, live] - mean[:, live].mean(0)) / mean[:, live].std(0)
    return chosen


def slow_udr(one: Array, other: Array) -> float:
    """UDR_ij of Duan et al., eq. 3, the other run scored, with scikit-learn's lasso."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    strengths = np.array(
        [np.abs(linear_model.Lasso(alpha=0.1, tol=1e-10).fit(one, target).coef_) for target in other.T]
    ).T
    total = 0.0
    for table in (strengths, strengths.T):
        for column in table.T:
            total += max(column) ** 2 / sum(column) if sum(column) else 0.0
    return total / sum(strengths.shape)


def slow_share(one: Array, other: Array, bins: int = 20) -> float:
    """The FactorVAE score, above chance, of a run whose factors are the codes of another."""
    votes = np.zeros((one.shape[1], other.shape[1]))
    for a in range(one.shape[1]):
        edges = np.quantile(one[:, a], np.arange(1, bins) / bins)
        parts = [sum(edge < value for edge in edges) for value in one[:, a]]
        for part in range(bins):
            rows = [i for i, p in enumerate(parts) if p == part]
            if len(rows) > 1:
                votes[a, np.argmin([np.var(other[rows, b]) for b in range(other.shape[1])])] += len(rows)
    right, chance = votes.max(0).sum() / votes.sum(), 0.0
    for share in votes.sum(0) / votes.sum():  # the largest of several binomial numbers, by its distribution
        at_most = [
            sum(comb(bins, i) * share**i * (1 - share) ** (bins - i) for i in range(x + 1))
            for x in range(bins)
        ]
        chance += sum(1 - p ** one.shape[1] for p in at_most) / bins / one.shape[1]
    return max(float((right - chance) / (1 - chance)), 0.0)


def test_scores_are_those_of_a_slow_computation(study: StudyFolder) -> None:
    chosen, codes = select(study.path, **OPTIONS), slow_codes(study)
    assert {codes_of_run.shape[1] for codes_of_run in codes.values()} == {3}, "code 3 is dead"
    for run_id, spec in study.runs.items():
        others = [i for i, other in study.runs.items() if i != run_id and other.method == spec.method]
        assert len(others) == 2
        expected = np.median([slow_udr(codes[i], codes[run_id]) for i in others])
        assert values(chosen, "udr.lasso")[run_id] == pytest.approx(expected, abs=1e-5)
        both = [
            (slow_share(codes[i], codes[run_id]) + slow_share(codes[run_id], codes[i])) / 2 for i in others
        ]
        assert values(chosen, "model_centrality")[run_id] == pytest.approx(np.mean(both), abs=1e-5)


def test_the_table_is_one_of_results(study: StudyFolder) -> None:
    table = check_table(select(study.path, **OPTIONS).table).table
    assert len(table) == 6 * 3
    assert set(table["protocol"]) == {
        "udr[lasso0.1,kl0.01,images400,setting]",
        "udr[spearman,kl0.01,images400,setting]",
        "model_centrality[factor_vae,above_chance,bins20,kl0.01,images400,setting]",
    }
    assert set(table["setting"]) == {"beta=1", "beta=4"}
    assert set(table["strength"]) == {1.0, 4.0}
    assert set(table["run"]) == set(study.runs)


def test_copies_of_one_run_are_the_middle_of_a_study(study: StudyFolder) -> None:
    first, second, third, *_ = study.runs
    codes_of_second = study.run_path(second) / f"codes-{IMAGES}.safetensors"
    select(study.path, by=["centrality"], **OPTIONS)
    shutil.copy(study.run_path(first) / codes_of_second.name, codes_of_second)
    chosen = values(select(study.path, by=["centrality"], **OPTIONS), "model_centrality")
    assert chosen[first] == pytest.approx(chosen[second])
    assert chosen[first] > chosen[third]


def test_a_second_call_encodes_and_compares_nothing(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = select(study.path, **OPTIONS)
    monkeypatch.setattr(codes_module, "encoded", None)
    reports: list[tuple[int, int, str]] = []
    again = select(study.path, tell=lambda *words: reports.append(words), **OPTIONS)
    assert again.table.equals(first.table)
    assert reports == [(i, 6, "encoding") for i in range(1, 7)]


def test_encoding_that_was_stopped_goes_on(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    real = codes_module.encoded

    def stopping(run: Run, images: NDArray[np.uint8]) -> Any:
        if len(done) == 4:
            done.append("stopped")
            raise KeyboardInterrupt
        done.append(run.spec.id)
        return real(run, images)

    monkeypatch.setattr(codes_module, "encoded", stopping)
    with pytest.raises(KeyboardInterrupt):
        select(study.path, **OPTIONS)
    select(study.path, **OPTIONS)
    assert done == [*list(study.runs)[:4], "stopped", *list(study.runs)[4:]]


def test_all_runs_of_the_study_can_be_compared(study: StudyFolder) -> None:
    within = values(select(study.path, within="setting", **OPTIONS), "model_centrality")
    whole = select(study.path, within="study", by=["centrality"], **OPTIONS)
    assert whole.table["protocol"].unique().tolist() == [
        "model_centrality[factor_vae,above_chance,bins20,kl0.01,images400,study]"
    ]
    assert set(whole.table["score"]) == {"model_centrality"}
    assert values(whole, "model_centrality").keys() == within.keys()
    assert values(whole, "model_centrality") != within


def test_ranking_begins_with_the_best(study: StudyFolder) -> None:
    ranking = select(study.path, **OPTIONS).ranking("udr.lasso")
    numbers = [value for _, value in ranking]
    assert numbers == sorted(numbers, reverse=True)
    assert len(ranking) == 6


def test_few_seeds_are_told(study: StudyFolder) -> None:
    notes = select(study.path, **OPTIONS).notes
    assert notes == ("Some runs are compared with 2 others only, where 4 or more are advised.",)


def test_the_kl_divergence_by_hand() -> None:
    # KL(N(m, s^2) || N(0, 1)) = (m^2 + s^2 - log s^2 - 1) / 2: 0 for the prior, 2 for a shift by 2.
    mean, log_var = np.array([[0.0, 2.0, 1.0], [0.0, -2.0, 0.0]]), np.zeros((2, 3))
    log_var[1, 2] = 1.0
    np.testing.assert_allclose(mean_kl(Posterior(mean, log_var)), [0, 2, (0.5 + (np.e - 2) / 2) / 2])


def test_codes_without_noise_all_count(study: StudyFolder) -> None:
    run = Run(study.run_folder(next(iter(study.runs))), "cpu")
    images = drawn_images(load("dsprites"), 100)
    assert not (encoded(run, images).kl == 1).any()
    run.spec = replace(run.spec, method=AE())
    assert (encoded(run, images).kl == 1).all()


def test_images_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("noisy_dsprites")
    whole = drawn_images(data, 120)
    monkeypatch.setattr(codes_module, "CHUNK", 50)
    np.testing.assert_array_equal(drawn_images(data, 120), whole)


def test_images_of_a_collection_are_its_rows() -> None:
    pictures = np.arange(10, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 64, 64), np.uint8)
    mine = from_arrays(pictures, np.zeros((10, 1)), names=["x"])
    drawn = drawn_images(mine, 200)
    assert set(drawn[:, 0, 0, 0].tolist()) == set(range(10))


def test_a_folder_of_runs(study: StudyFolder, tmp_path: Path) -> None:
    expected = values(select(study.path, **OPTIONS), "udr.lasso")
    folder = tmp_path / "runs"
    shutil.copytree(study.path / "runs", folder)
    chosen = select(folder, **OPTIONS)
    assert values(chosen, "udr.lasso") == expected
    assert set(chosen.candidates.scores()["score"]) == {"mig", "modularity"}
    assert (folder / "agreements.parquet").exists()


def test_runs_that_cannot_be_used_are_left_out(study: StudyFolder) -> None:
    lost, open_run, diverged, *_ = study.runs
    (study.run_path(lost) / "weights.safetensors").unlink()
    (study.run_path(open_run) / "result.json").unlink()
    result = study.run_path(diverged) / "result.json"
    write_json(result, {"outcome": "diverged", "steps": 1, "terms": {}})
    chosen = select(study.path, **OPTIONS)
    assert len(chosen.candidates.runs) == 3
    assert chosen.notes[:3] == (
        "Left out, without trained weights (weights.safetensors): 1 of 6 runs.",
        "Left out, not finished: 1 of 6 runs.",
        "Left out, diverged: 1 of 6 runs.",
    )


def test_a_single_seed_has_no_score(study: StudyFolder) -> None:
    for run_id in list(study.runs)[:2]:
        (study.run_path(run_id) / "result.json").unlink()
    chosen = select(study.path, **OPTIONS)
    assert len(chosen.ranking("udr.lasso")) == 3
    assert "Without a score, the only seed of their setting: 1 of 4 runs." in chosen.notes


def test_dead_runs_are_told(study: StudyFolder) -> None:
    select(study.path, **OPTIONS)
    path = study.run_path(next(iter(study.runs))) / f"codes-{IMAGES}.safetensors"
    tensors = read_tensors(path)
    write_tensors(path, {**tensors, "kl": tensors["kl"] * 0})
    chosen = select(study.path, **OPTIONS)
    assert "Of score 0, without a code of KL > 0.01: 1 of 6 runs." in chosen.notes
    assert values(chosen, "udr.lasso")[next(iter(study.runs))] == 0


def test_too_few_seeds_are_refused(study: StudyFolder) -> None:
    for spec in study.runs.values():
        if spec.seed != 1:
            (study.run_path(spec.id) / "result.json").unlink()
    with pytest.raises(
        UnweaveError, match=r"each of the 2 settings in .* has one finished seed only\. Train"
    ):
        select(study.path, **OPTIONS)
    assert len(select(study.path, within="study", **OPTIONS).ranking("udr.lasso")) == 2
    (study.run_path(next(spec.id for spec in study.runs.values() if spec.seed == 1)) / "result.json").unlink()
    with pytest.raises(UnweaveError, match="has one finished run only on dsprites"):
        select(study.path, within="study", **OPTIONS)


def test_a_study_without_finished_runs_is_refused(study: StudyFolder) -> None:
    for run_id in study.runs:
        (study.run_path(run_id) / "weights.safetensors").unlink()
    with pytest.raises(UnweaveError, match=r"no run in .* can be chosen: Left out, without trained weights"):
        select(study.path, **OPTIONS)


def test_other_data_sets_are_refused(study: StudyFolder) -> None:
    runs = [RunFolder(path) for path in sorted((study.path / "runs").iterdir())]
    for folder in runs[3:]:
        record = {"spec": replace(folder.spec, data="rooms").to_dict(), **folder.origin}
        write_json(folder.path / "spec.json", record)
    with pytest.raises(
        UnweaveError, match=r"trained on 2 data sets, dsprites, rooms\. Choose one: --data dsp"
    ):
        candidates_in(study.path / "runs")
    assert len(candidates_in(study.path / "runs", "rooms").runs) == 3
    with pytest.raises(UnweaveError, match=r'no finished run on "room"\. Did you mean "rooms"'):
        candidates_in(study.path / "runs", "room")


def test_runs_on_other_data_of_the_same_name_are_left_out_or_refused(study: StudyFolder) -> None:
    folders = [study.run_folder(run) for run in study.runs]

    def change_data(folder: RunFolder) -> None:
        record = {"spec": folder.spec.to_dict(), **folder.origin, "data_source": "another file"}
        write_json(folder.path / "spec.json", record)

    change_data(folders[0])
    chosen = candidates_in(study.path)
    assert len(chosen.runs) == len(folders) - 1
    assert chosen.notes == (
        f'Left out {folders[0].path}: it was trained on other data of the name "dsprites" than most.',
    )
    change_data(folders[1])
    change_data(folders[2])
    with pytest.raises(UnweaveError, match=r'different data of the name "dsprites".* in two folders'):
        candidates_in(study.path)


def test_foreign_and_broken_runs_do_not_stop_the_others(study: StudyFolder, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(study.path / "runs", folder)
    broken, cut, *_ = sorted(folder.iterdir())
    (broken / "weights.safetensors").write_bytes(b"not weights")
    (cut / "result.json").write_text("{")
    for name, text in (("foreign", "{}"), ("text", "not JSON"), ("list", "[1]")):
        (folder / name).mkdir()
        (folder / name / "spec.json").write_text(text)
    chosen = select(folder, within="study", **OPTIONS)
    assert len(chosen.candidates.runs) == 4
    left_out = [note for note in chosen.notes if note.startswith(f"Left out {folder}")]
    assert len(left_out) == 5
    assert all("\n" not in note for note in left_out)


def test_wrong_words_are_refused(study: StudyFolder, tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r'cannot be chosen by "urd"\. Did you mean "udr"'):
        select(study.path, by=["urd"], **OPTIONS)
    with pytest.raises(UnweaveError, match='within setting or study; got "method"'):
        select(study.path, within="method", **OPTIONS)
    with pytest.raises(UnweaveError, match="100 images or more; got 10"):
        select(study.path, images=10)
    with pytest.raises(UnweaveError, match="there is no folder"):
        select(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnweaveError, match=r"has no study\.json\), and there is no run in it"):
        select(tmp_path / "empty")


def test_codes_of_another_number_of_images_are_refused(study: StudyFolder) -> None:
    select(study.path, **OPTIONS)
    path = study.run_path(next(iter(study.runs))) / f"codes-{IMAGES}.safetensors"
    path.rename(path.with_name("codes-200.safetensors"))
    with pytest.raises(UnweaveError, match=r"codes-200\.safetensors has no codes of 200 images\. Delete it"):
        select(study.path, images=200, device="cpu")
