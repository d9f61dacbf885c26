from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.results import (
    COLUMNS,
    TEXT_COLUMNS,
    Results,
    check_table,
    combine,
    from_columns,
    read_table,
    setting_text,
    wide,
)

PAIR_OF_RULES = (("a", ""), ("b", ",disjoint"))


def row(**cells: Any) -> dict[str, Any]:
    usual = {
        "source": "own",
        "run": "r0",
        "data": "dsprites",
        "method": "beta_vae",
        "setting": "beta=4",
        "strength": 4.0,
        "seed": 0,
        "representation": "mean",
        "score": "mig",
        "protocol": "mig[bins20,mean]",
        "value": 0.1,
    }
    return usual | cells


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def two_runs() -> pd.DataFrame:
    """Run a has mig of both codes and a KL; run b, of a method without strength, has mig of means only."""
    b = {"run": "b", "method": "vae", "setting": "", "strength": np.nan, "seed": 3}
    return frame(
        row(run="a", value=0.1),
        row(run="a", representation="sampled", protocol="mig[bins20,sampled]", value=0.2),
        row(run="a", representation="", score="elbo.kl", protocol="elbo[sample1]", value=12.0),
        row(**b, value=0.3),
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"beta": 4}, "beta=4"),
        ({"beta": 4.0}, "beta=4"),
        ({"beta": np.float32(0.5)}, "beta=0.5"),
        ({"lambda_od": 5.0, "lambda_d_factor": 10.0}, "lambda_od=5,lambda_d_factor=10"),
        ({"gamma": 0.1 + 0.2}, "gamma=0.30000000000000004"),  # no digit is lost
        ({"iteration_threshold": 100_000.0}, "iteration_threshold=100000"),
        ({"second_batch": True, "estimator": "weighted"}, "second_batch=True,estimator=weighted"),
        ({}, ""),
    ],
)
def test_setting_text(given: dict[str, Any], text: str) -> None:
    assert setting_text(given) == text


def test_a_checked_table_has_the_columns_in_order_and_small() -> None:
    table = check_table(two_runs()[list(reversed(COLUMNS))].astype({"seed": float})).table
    assert tuple(table.columns) == (*COLUMNS, "on")
    assert all(isinstance(table[name].dtype, pd.CategoricalDtype) for name in TEXT_COLUMNS)
    assert table["seed"].dtype == np.int64
    assert table["seed"].tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_give_back_what_was_written(tmp_path: Path, suffix: str) -> None:
    before = two_runs()
    before["data"] = "NA"  # a word like any other
    path = tmp_path / f"results.{suffix}"
    if suffix == "csv":
        before.to_csv(path, index=False)
    else:
        before.to_parquet(path)
    after = read_table(path).table
    for name in COLUMNS:
        pd.testing.assert_series_equal(after[name].astype(before[name].dtype), before[name])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"\.csv or \.parquet file; got .*results\.xlsx"):
        read_table(tmp_path / "results.xlsx")
    with pytest.raises(UnweaveError, match="there is no file"):
        read_table(tmp_path / "results.csv")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"not a table")
    with pytest.raises(UnweaveError, match=r"broken\.parquet cannot be read as a \.parquet file"):
        read_table(broken)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(UnweaveError, match=r"empty\.csv cannot be read"):
        read_table(empty)


def test_values_that_are_no_numbers_are_left_out_and_counted() -> None:
    results = check_table(
        frame(row(run="a"), row(run="b", value=np.nan), row(run="c", value=np.inf), row(run="d"))
    )
    assert results.table["run"].tolist() == ["a", "d"]
    assert results.notes == ("2 of 4 values are missing or infinite and were left out.",)


def test_scores_that_some_runs_lack_are_named() -> None:
    sap = {"score": "sap", "protocol": "sap[svm-ovr,C0.01,mean]"}
    results = check_table(
        frame(
            *(row(run=f"{data}{i}", data=data, seed=i) for data in ("cars3d", "dsprites") for i in range(3)),
            row(run="cars3d0", data="cars3d", **sap),
            row(run="f", method="factor_vae", **sap),
            row(run="other", source="theirs"),  # has no sap, but neither has anything of its source
        )
    )
    assert results.notes == (
        "own: beta_vae has no sap of mean codes for 5 of 6 runs on cars3d, dsprites.",
        "own: factor_vae has no mig of mean codes for 1 of 1 runs on dsprites.",
    )


def test_runs_without_labels_lack_no_loss_on_held_out_labels() -> None:
    loss = {"score": "few_labels.xent", "protocol": "supervised_loss[xent,held-out-labels]"}
    taught = [row(run=f"s{i}", method="s2_beta_vae", seed=i) for i in range(3)]
    losses = [row(run=f"s{i}", method="s2_beta_vae", seed=i, representation="", **loss) for i in range(2)]
    results = check_table(frame(row(run="a"), *taught, *losses))
    assert results.notes == ("own: s2_beta_vae has no few_labels.xent for 1 of 3 runs on dsprites.",)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (frame(row()).drop(columns=["seed", "value"]), "lacks seed, value. Tables of another form"),
        (frame(row(value="high")), 'column "value" of the results must hold numbers; .*high'),
        (frame(row(seed=0.5)), 'column "seed" of the results must hold whole numbers; got 0.5'),
        (frame(row(run=17)), 'column "run" of the results must hold words; got 17'),
        (frame(row(data=None)), 'column "data" of the results has empty cells'),
        (frame(row(value=np.nan)), "no row with a number"),
        (frame(row(score="seed")), 'a score cannot be called "seed"'),
        (frame(row(), row(seed=1, score="sap")), 'run "r0" of source "own" stands for runs that differ'),
        (frame(row(), row(value=0.5)), 'mig of run "r0" .* is in the table twice'),
    ],
)
def test_bad_tables(bad: pd.DataFrame, sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        check_table(bad)


def test_wide_has_one_row_a_run_and_one_column_a_score() -> None:
    runs = wide(check_table(two_runs()).table)
    assert list(runs) == ["source", "run", "data", "method", "setting", "strength", "seed", "elbo.kl", "mig"]
    assert runs["run"].tolist() == ["a", "b"]
    assert runs["mig"].tolist() == [0.1, 0.3]
    np.testing.assert_equal(runs["elbo.kl"].to_numpy(), [12.0, np.nan])
    np.testing.assert_equal(runs["strength"].to_numpy(), [4.0, np.nan])


def test_wide_of_samples_has_the_scores_of_the_run_too() -> None:
    runs = wide(two_runs(), "sampled")  # an unchecked table is checked first
    assert runs[["run", "mig", "elbo.kl"]].to_numpy().tolist() == [["a", 0.2, 12.0]]
    with pytest.raises(UnweaveError, match=r'no scores of "sample" codes\. Did you mean "sampled"'):
        wide(two_runs(), "sample")


def test_runs_of_two_sources_may_have_the_same_id() -> None:
    runs = wide(frame(row(value=0.1), row(source="published", value=0.2)))
    assert runs[["source", "run", "mig"]].to_numpy().tolist() == [
        ["own", "r0", 0.1],
        ["published", "r0", 0.2],
    ]


def test_methods_have_the_order_of_the_study() -> None:
    methods = ["aae", "annealed_vae", "beta_tcvae", "dip_vae_ii", "dip_vae_i", "factor_vae", "beta_vae"]
    runs = wide(frame(*(row(run=method, method=method) for method in methods)))
    assert runs["method"].tolist() == [*reversed(methods[1:]), "aae"]


def test_wide_refuses_two_protocols_under_one_name() -> None:
    mixed = frame(row(run="a"), row(run="b", protocol="mig[bins50,mean]"))
    sentence = (
        r"mig was measured under 2 protocols, mig\[bins20,mean\] and mig\[bins50,mean\].*Keep one of them"
    )
    with pytest.raises(UnweaveError, match=sentence):
        wide(mixed)
    assert wide(mixed[mixed["protocol"] != "mig[bins50,mean]"])["run"].tolist() == ["a"]


def test_wide_keeps_scores_of_different_blocks_apart() -> None:
    def score(run: str, factors: str, data: str = "glyphs") -> dict[str, object]:
        protocol = f"block_separation[mlp128-128,factors:{factors},mean]"
        return row(run=run, score="block_separation", protocol=protocol, data=data)

    same = wide(frame(score("a", "shape|x"), score("b", "shape|x"), score("c", "wall|floor", "rooms")))
    assert same["block_separation"].notna().all()  # one assignment for each data set
    other = wide(frame(score("a", "shape|x"), score("b", "shape+x")))
    assert "block_separation" not in other
    for name, run in (("block_separation (shape|x)", "a"), ("block_separation (shape+x)", "b")):
        assert other.loc[other[name].notna(), "run"].tolist() == [run]


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(4)))
def test_the_order_of_the_table_does_not_matter(order: list[int]) -> None:
    pd.testing.assert_frame_equal(wide(two_runs().iloc[order]), wide(two_runs()))


def test_data_sets_may_be_split_by_different_rules() -> None:
    """Restricted data are split by image; within a data set all runs follow one rule."""
    rows = [row(run=run, protocol=f"sap[C1{word},mean]", score="sap") for run, word in PAIR_OF_RULES]
    rows[1]["data"] = "dsprites:x~y=0.2"
    assert wide(frame(*rows))["sap"].notna().all()
    rows[1]["data"] = "dsprites"
    with pytest.raises(UnweaveError, match=r"sap was measured under 2 protocols"):
        wide(frame(*rows))


def test_combine() -> None:
    own = check_table(frame(row(run="a", value=np.nan), row(run="b")))
    other = check_table(frame(row(source="published", run="c", data="cars3d")))
    both = combine(own, other)
    assert isinstance(both.table["run"].dtype, pd.CategoricalDtype)
    assert both.table[["source", "run", "data"]].to_numpy().tolist() == [
        ["own", "b", "dsprites"],
        ["published", "c", "cars3d"],
    ]
    assert both.notes == own.notes
    with pytest.raises(UnweaveError, match="in the table twice"):
        combine(own, own)
    with pytest.raises(UnweaveError, match="got none"):
        combine()


THEIRS = pd.DataFrame(
    {
        "model": ["BetaVAE", "DIP"],
        "rng": [7, 8],
        "b": [4.0, np.nan],
        "od": [np.nan, 5.0],
        "d": [np.nan, 50.0],
        "MIG score": [0.25, np.nan],
        "sap": [0.5, 0.75],
    }
)
MAPPING: dict[str, Any] = {
    "columns": {"method": "model", "seed": "rng"},
    "constants": {"data": "dsprites", "source": "tool"},
    "settings": {"beta": "b", "lambda_od": "od", "lambda_d": "d"},
    "scores": {"mig": "MIG score", "sap": "sap"},
    "protocols": {"mig": "mig[bins20,mean]"},
}


def test_results_of_other_tools() -> None:
    results = from_columns(THEIRS, MAPPING)
    columns = ["run", "method", "setting", "seed", "score", "protocol", "value"]
    assert results.table[columns].to_numpy().tolist() == [
        ["tool-0", "BetaVAE", "beta=4", 7, "mig", "mig[bins20,mean]", 0.25],
        ["tool-0", "BetaVAE", "beta=4", 7, "sap", "sap[tool]", 0.5],
        ["tool-1", "DIP", "lambda_od=5,lambda_d=50", 8, "sap", "sap[tool]", 0.75],
    ]
    np.testing.assert_equal(results.table["strength"].to_numpy(), [4.0, 4.0, np.nan])
    assert set(results.table["representation"]) == {"mean"}
    assert results.notes == ("tool: DIP has no mig of mean codes for 1 of 1 runs on dsprites.",)


def test_columns_may_say_it_all() -> None:
    theirs = THEIRS.assign(id=[11, 12], which="sampled", text="as it was", how_much=[1, 2])
    columns = {"run": "id", "representation": "which", "setting": "text", "strength": "how_much"}
    mapping = MAPPING | {"columns": MAPPING["columns"] | columns, "settings": {}}
    table = from_columns(theirs, mapping).table
    assert table[["run", "representation", "setting", "strength"]].to_numpy().tolist() == [
        ["11", "sampled", "as it was", 1.0],
        ["11", "sampled", "as it was", 1.0],
        ["12", "sampled", "as it was", 2.0],
    ]


def test_other_tools_from_files(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(
        """
        [columns]
        method = "model"
        seed = "rng"
        [constants]
        data = "dsprites"
        source = "tool"
        [settings]
        beta = "b"
        lambda_od = "od"
        lambda_d = "d"
        [scores]
        mig = "MIG score"
        sap = "sap"
        [protocols]
        mig = "mig[bins20,mean]"
        """
    )
    THEIRS.to_csv(tmp_path / "theirs.csv", index=False)
    THEIRS.to_parquet(tmp_path / "theirs.parquet")
    expected: Results = from_columns(THEIRS, MAPPING)
    for name in ("theirs.csv", "theirs.parquet"):
        result = from_columns(tmp_path / name, tmp_path / "map.toml")
        pd.testing.assert_frame_equal(result.table, expected.table)
    (tmp_path / "map.toml").write_text("columns = ")
    with pytest.raises(UnweaveError, match=r"map\.toml cannot be read as a TOML file"):
        from_columns(THEIRS, tmp_path / "map.toml")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"colums": {}}, '"colums" cannot be part of a mapping of columns. Did you mean "columns"'),
        ({"scores": "mig"}, "scores must be a table of names"),
        ({"scores": {"mig": "MIG scores"}}, 'scores names "MIG scores".*Did you mean "MIG score"'),
        ({"scores": {}, "protocols": {}}, "the mapping names no score"),
        ({"settings": {"beta": "bb"}}, 'settings names "bb", but there is nothing in the table'),
        ({"columns": {"methd": "model"}}, 'columns and constants name "methd".*Did you mean "method"'),
        ({"columns": {"method": "model"}}, 'which column is "seed"'),
        ({"protocols": {"dci": "x"}}, 'protocols names "dci", but there is nothing under scores'),
        ({"scores": {"mig": "model"}, "protocols": {}}, 'column "model" of the results must hold numbers'),
    ],
)
def test_bad_mappings(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        from_columns(THEIRS, MAPPING | change)
