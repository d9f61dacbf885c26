"""The runs of a study as JSON, and the traversal of a run."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

import unweave
from unweave.errors import UnweaveError
from unweave.explore.api.study import study_records, traversal_png
from unweave.methods import BetaVAE

PNG = b"\x89PNG\r\n\x1a\n"


def rows(
    run: str,
    method: str,
    setting: str,
    seed: int,
    scores: dict[tuple[str, str], float],
    strength: float = 4.0,
) -> list[dict[str, object]]:
    described = {"source": "own", "run": run, "data": "dsprites", "method": method, "setting": setting}
    return [
        {
            **described,
            "strength": strength,
            "seed": seed,
            "representation": codes,
            "score": score,
            "protocol": f"{score}[{codes}]",
            "value": value,
        }
        for (codes, score), value in scores.items()
    ]


def write(folder: Path, *parts: list[dict[str, object]]) -> Path:
    table = folder / "results.parquet"
    pd.DataFrame([row for part in parts for row in part]).to_parquet(table, index=False)
    return table


ONE = rows(
    "a1",
    "factor_vae",
    "gamma=10,second_batch=False",
    0,
    {("mean", "mig"): 0.1234567891, ("", "kl"): 12345.67},
)
TWO = rows("b2", "beta_vae", "beta=4", 1, {("mean", "mig"): 0.25, ("sampled", "mig"): -1e-7}, float("nan"))


def test_runs_are_sent_as_columns(tmp_path: Path) -> None:
    write(tmp_path, ONE, TWO)
    (tmp_path / "runs" / "beta_vae-dsprites-seed1-b2").mkdir(parents=True)
    record = json.loads(study_records(tmp_path))
    # Methods have the order of all tables, in which beta_vae is first; numbers have eight digits.
    assert record["runs"] == 2
    assert record["id"] == ["b2", "a1"]
    assert record["here"] == [1, 0]
    assert record["words"]["method"] == {"names": ["beta_vae", "factor_vae"], "codes": [0, 1]}
    assert record["words"]["setting"] == {"names": ["beta=4", "gamma=10,second_batch=False"], "codes": [0, 1]}
    assert record["settings"] == {"strength": [None, 4.0], "seed": [1, 0]}
    assert record["strengths"] == {"beta_vae": "strength", "factor_vae": "strength"}
    assert record["scores"] == {
        "kl": [None, 12345.67],
        "mig": [0.25, 0.12345679],
        "mig (sampled)": [-1e-7, None],
    }
    assert any("kl" in note for note in record["notes"])


def test_settings_that_differ_are_numbers_to_plot(tmp_path: Path) -> None:
    settings = ["alpha=1,beta=2", "alpha=1,beta=0.5", "gamma=1e-05,name=x3"]
    parts = [rows(f"r{i}", "m", text, i, {("mean", "mig"): 0.5}) for i, text in enumerate(settings)]
    found = json.loads(study_records(write(tmp_path, *parts)))
    order = [found["id"].index(f"r{i}") for i in range(3)]
    assert [found["settings"]["beta"][place] for place in order] == [2.0, 0.5, None]
    assert set(found["settings"]) == {"strength", "seed", "beta"}  # alpha and gamma have one value only


def test_the_axis_of_a_method_names_its_setting(tmp_path: Path) -> None:
    one = rows("a", "beta_tcvae", "alpha=1,beta=1,gamma=1", 0, {("mean", "mig"): 0.5}, strength=1.0)
    two = rows("b", "dip_vae_i", "lambda_od=4,lambda_d_factor=10", 0, {("mean", "mig"): 0.5})
    found = json.loads(study_records(write(tmp_path, one, two)))
    assert found["strengths"] == {"dip_vae_i": "lambda_od", "beta_tcvae": "beta"}


def test_settings_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    settings = ["beta=1", "beta=2", "beta=16", "c=-2,d=3", "c=-1,d=10", "c=1e-05", "c=0.5", "plain"]
    parts = [rows(f"r{i}", "m", text, 0, {("mean", "mig"): 0.5}) for i, text in enumerate(reversed(settings))]
    assert json.loads(study_records(write(tmp_path, *parts)))["words"]["setting"]["names"] == settings


def test_a_table_alone_has_no_folders(tmp_path: Path) -> None:
    table = write(tmp_path, TWO)
    (tmp_path / "runs" / "beta_vae-dsprites-seed1-b2").mkdir(parents=True)
    assert json.loads(study_records(table))["here"] == [0]
    assert json.loads(study_records(tmp_path))["here"] == [1]


def test_codes_of_another_kind_only(tmp_path: Path) -> None:
    table = write(tmp_path, rows("a", "m", "", 0, {("sampled", "mig"): 0.5}))
    assert json.loads(study_records(table))["scores"] == {"mig": [0.5]}


def test_a_table_is_read_again_when_it_changes(tmp_path: Path) -> None:
    table = write(tmp_path, ONE)
    first = study_records(tmp_path)
    assert study_records(tmp_path) is first
    write(tmp_path, ONE, TWO)
    os.utime(table, ns=(1, 1))
    assert json.loads(study_records(tmp_path))["runs"] == 2


def test_no_table_yet(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="has no table of results yet; `unweave study collect"):
        study_records(tmp_path)


def test_two_estimators_of_one_score_are_refused(tmp_path: Path) -> None:
    other = [row | {"protocol": "mig[bins5]"} for row in TWO if row["representation"] == "mean"]
    with pytest.raises(UnweaveError, match="mig was measured under 2 protocols"):
        study_records(write(tmp_path, ONE, other))


def test_the_picture_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "traversals.png").write_bytes(PNG + b"mine")
    assert traversal_png(tmp_path) == PNG + b"mine"


def test_no_file_outside_of_the_run_is_sent(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    (tmp_path / "run" / "pictures").mkdir(parents=True)
    (tmp_path / "run" / "pictures" / "traversals.png").symlink_to(secret)
    assert traversal_png(tmp_path / "run") is None


def test_a_run_without_weights_has_no_picture(tmp_path: Path) -> None:
    assert traversal_png(tmp_path) is None


def test_broken_weights_give_no_picture(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").write_bytes(b"broken")
    assert traversal_png(tmp_path) is None


def test_traversals_are_drawn_where_there_is_no_picture(tmp_path: Path) -> None:
    run = unweave.train(BetaVAE(), "dsprites", out=tmp_path, steps=2, batch=4, device="cpu")
    drawn = traversal_png(run.path)
    assert drawn is not None
    assert drawn.startswith(PNG)
    assert not (run.path / "pictures" / "traversals.png").exists()  # looking at a run writes nothing


def test_a_run_that_diverged_has_no_picture(tmp_path: Path) -> None:
    run = unweave.train(BetaVAE(), "dsprites", out=tmp_path, steps=2, batch=4, device="cpu")
    (run.path / "result.json").write_text(json.dumps(run.result | {"outcome": "diverged"}))
    assert traversal_png(run.path) is None
