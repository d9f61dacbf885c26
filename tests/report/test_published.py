from pathlib import Path

import pandas as pd
import pytest

from unweave.errors import UnweaveError
from unweave.methods import method_named, settings_of
from unweave.metrics import METRICS
from unweave.report.published import PROTOCOLS, SCORES, STUDY_SCORES, published
from unweave.results import METHOD_ORDER, Results, setting_text, wide


def made_up(data: str = "'cars3d'", method: str = "'dip_vae_i'") -> pd.DataFrame:
    """Two rows as in a published file: a DIP-VAE-I with all scores 0.5, and a FactorVAE without ELBO."""
    frame = pd.DataFrame(
        {
            "model_num": [9650, 9300],
            "dataset": [data, data],
            "model_name": [method, "'factor_vae'"],
            "vae_beta": [None, None],
            "factor_vae_gamma": [None, 30.0],
            "dip_vae_lambda_d_factor": [10.0, None],
            "dip_vae_lambda_od": [5.0, None],
            "beta_tc_vae_beta": [None, None],
            "annealed_vae_c_max": [None, None],
            "model_random_seed": [49, 0],
        }
    )
    for column in SCORES.values():
        frame[column] = 0.5
    frame.loc[1, "elbo"] = None
    return frame


def test_a_file_becomes_rows_of_the_table(tmp_path: Path) -> None:
    made_up().to_csv(tmp_path / "results_cars3d.csv")
    (tmp_path / "results_cars3d_aggregated.csv").write_text("averages of no interest")
    results = published(tmp_path)
    assert len(results.table) == 2 * len(SCORES) - 1
    runs = results.table.drop_duplicates("run")
    columns = ["source", "run", "data", "method", "setting", "strength", "seed"]
    assert runs[columns].to_numpy().tolist() == [
        [
            "published",
            "published-cars3d-9650",
            "cars3d",
            "dip_vae_i",
            "lambda_od=5,lambda_d_factor=10",
            5.0,
            49,
        ],
        [
            "published",
            "published-cars3d-9300",
            "cars3d",
            "factor_vae",
            "gamma=30,second_batch=False",
            30.0,
            0,
        ],
    ]
    of_the_run = results.table[results.table["representation"] == ""]
    assert set(of_the_run["score"]) == {"elbo.reconstruction", "elbo.kl", "elbo.elbo"}
    assert "published: 2 of 1,800 runs on cars3d." in results.notes
    assert "published: 0 of 1,800 runs on dsprites." in results.notes
    assert results.notes[-1] == "published: factor_vae has no elbo.elbo for 1 of 1 runs on cars3d."


def test_folders_that_are_not_the_published_ones(tmp_path: Path) -> None:
    with pytest.raises(
        UnweaveError, match=r"has no file of published results; .* results_dsprites_full\.csv"
    ):
        published(tmp_path)
    path = tmp_path / "results_cars3d.csv"
    made_up().drop(columns=["sap_score"]).to_csv(path)
    with pytest.raises(UnweaveError, match="it has no column sap_score"):
        published(tmp_path)
    made_up(data="'cars'").to_csv(path)
    with pytest.raises(UnweaveError, match=r'has "cars" as dataset\. Did you mean "cars3d"'):
        published(tmp_path)
    made_up(method="'dip_vae'").to_csv(path)
    with pytest.raises(UnweaveError, match=r'has "dip_vae" as model_name\. Did you mean "dip_vae_i"'):
        published(tmp_path)


def test_protocols_are_those_of_the_metrics() -> None:
    ours = {metric.name: metric.protocol("mean") for metric in METRICS}
    assert {name: ours[name] for name in PROTOCOLS} == PROTOCOLS
    assert {name.split(".")[0] for name in SCORES} == set(PROTOCOLS)
    assert set(STUDY_SCORES) <= set(SCORES)


def test_all_models_are_read_and_what_is_missing_is_said(published_results: Results) -> None:
    runs = published_results.table.drop_duplicates("run")
    assert len(runs) == 10_800
    assert len(published_results.table) == 10_800 * len(SCORES) - 1_800 - 2 * 7
    assert runs.groupby(["data", "method", "setting"], observed=True)["seed"].nunique().tolist() == [50] * 216
    seven = "of mean codes for 7 of 300 runs on noisy_dsprites."
    six = "cars3d, color_dsprites, dsprites, noisy_dsprites, scream_dsprites, smallnorb"
    assert published_results.notes == (
        f"published: annealed_vae has no dci.completeness {seven}",
        f"published: annealed_vae has no dci.disentanglement {seven}",
        f"published: factor_vae has no elbo.elbo for 1,800 of 1,800 runs on {six}.",
    )


def test_settings_are_written_as_for_own_runs(published_results: Results) -> None:
    strengths = {
        "beta_vae": ("beta", [1, 2, 4, 6, 8, 16]),
        "factor_vae": ("gamma", [10, 20, 30, 40, 50, 100]),
        "dip_vae_i": ("lambda_od", [1, 2, 5, 10, 20, 50]),
        "dip_vae_ii": ("lambda_od", [1, 2, 5, 10, 20, 50]),
        "beta_tcvae": ("beta", [1, 2, 4, 6, 8, 10]),
        "annealed_vae": ("c_max", [5, 10, 25, 50, 75, 100]),
    }
    assert tuple(strengths) == METHOD_ORDER
    own = [
        (name, setting_text(settings_of(method_named(name)(**{main: strength}))), float(strength))
        for name, (main, grid) in strengths.items()
        for strength in grid
    ]
    runs = wide(published_results.table)
    found = runs[runs["data"] == "dsprites"][["method", "setting", "strength"]].drop_duplicates()
    assert [tuple(each) for each in found.to_numpy().tolist()] == own


# On dSprites over 50 seeds, as printed in notes on these files: means of scores, medians of losses.
@pytest.mark.parametrize(
    ("method", "strength", "factor_vae", "mig", "dci", "sap", "reconstruction", "kl"),
    [
        ("beta_vae", 1, 0.647, 0.075, 0.145, 0.046, 18.7, 27.7),
        ("factor_vae", 50, 0.753, 0.174, 0.264, 0.066, 54.4, 17.9),
        ("dip_vae_i", 5, 0.591, 0.086, 0.130, 0.045, 20.5, 29.7),
        ("dip_vae_ii", 5, 0.566, 0.062, 0.114, 0.035, 21.5, 25.2),
        ("beta_tcvae", 10, 0.719, 0.238, 0.363, 0.067, 75.6, 9.8),
        ("annealed_vae", 5, 0.601, 0.352, 0.379, 0.076, 148.2, 5.0),
    ],
)
def test_means_of_settings(
    published_results: Results,
    method: str,
    strength: float,
    factor_vae: float,
    mig: float,
    dci: float,
    sap: float,
    reconstruction: float,
    kl: float,
) -> None:
    runs = wide(published_results.table)
    chosen = runs[(runs["data"] == "dsprites") & (runs["method"] == method) & (runs["strength"] == strength)]
    scores = ["factor_vae_score.eval_accuracy", "mig", "dci.disentanglement", "sap"]
    assert chosen[scores].mean().tolist() == pytest.approx([factor_vae, mig, dci, sap], abs=6e-4)
    losses = chosen[["elbo.reconstruction", "elbo.kl"]].median().tolist()
    assert losses == pytest.approx([reconstruction, kl], abs=0.06)
