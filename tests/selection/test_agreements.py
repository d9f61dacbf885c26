"""Agreements of two runs at a time make the scores of all, and none is computed twice."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave.errors import UnweaveError
from unweave.metrics import model_centrality, udr
from unweave.selection import agreements as module
from unweave.selection.agreements import AGREEMENTS, Floats, agreements
from unweave.selection.codes import Codes
from unweave.streams import Stream

# Three codes on a full grid: exactly uncorrelated.
GRID = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3)
LIVE = np.ones(3)
ALL = tuple(AGREEMENTS)


def noise(seed: int, n: int = 2000) -> Codes:
    return Codes(Stream.of(seed).normal(n, 3), LIVE)


def runs(*codes: Codes) -> dict[str, Codes]:
    return {f"run {i}": one for i, one in enumerate(codes)}


def mixed(count: int = 5) -> dict[str, Codes]:
    """Runs that share something, each with a dead code and noise of its own."""
    first = Stream.of(0).normal(500, 3)
    made = []
    for i in range(count):
        turn = np.eye(3) + 0.5 * Stream.of(i).child("turn").normal(3, 3)
        codes = np.hstack([first @ turn, 0.01 * Stream.of(i).child("dead").normal(500, 1)])
        made.append(Codes(codes, np.array([1.0, 2.0, 0.5, 0.001])))
    return runs(*made)


def test_a_permuted_and_flipped_copy_agrees_fully(tmp_path: Path) -> None:
    copy = Codes(-3 * GRID[:, [2, 0, 1]] + 1, LIVE)
    tables = agreements(runs(Codes(GRID, LIVE), copy), [[0, 1]], ALL, tmp_path / "a.parquet")
    for name, expected in (("udr.lasso", 0.9), ("udr.spearman", 1.0), ("model_centrality", 1.0)):
        assert tables[name][0, 1] == pytest.approx(expected, abs=1e-9)
        assert tables[name][1, 0] == pytest.approx(expected, abs=1e-9)
        assert np.isnan(np.diag(tables[name])).all()


def test_noise_does_not_agree(tmp_path: Path) -> None:
    tables = agreements(runs(noise(0), noise(1)), [[0, 1]], ALL, tmp_path / "a.parquet")
    assert tables["udr.lasso"][0, 1] == 0  # no coefficient is worth its price
    assert tables["udr.spearman"][0, 1] < 0.06
    assert tables["model_centrality"][0, 1] < 0.1


def test_averages_of_agreements_are_the_scores_of_all(tmp_path: Path) -> None:
    run_codes = mixed()
    tables = agreements(run_codes, [range(5)], ALL, tmp_path / "a.parquet")
    codes, kl = [one.mean for one in run_codes.values()], [one.kl for one in run_codes.values()]
    for name, expected in (
        ("udr.lasso", udr(codes, kl=kl)),
        ("udr.spearman", udr(codes, kl=kl, method="spearman")),
    ):
        np.testing.assert_allclose(np.nanmedian(tables[name], axis=0), expected, atol=1e-9)
    centrality = np.nanmean(tables["model_centrality"], axis=0)
    np.testing.assert_allclose(centrality, model_centrality(codes, kl=kl), atol=1e-9)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is computed."""
    calls: list[str] = []

    def noted(name: str) -> object:
        real = AGREEMENTS[name]

        def compute(*args: object, **options: object) -> Floats:
            calls.append(name)
            return real(*args, **options)

        return compute

    monkeypatch.setattr(module, "AGREEMENTS", {name: noted(name) for name in ALL})
    return calls


def test_what_is_known_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, path, run_codes = counted(monkeypatch), tmp_path / "a.parquet", mixed(4)
    first = agreements(run_codes, [[0, 1], [2, 3]], ["udr.lasso"], path)
    assert calls == ["udr.lasso"] * 2
    assert np.isnan(first["udr.lasso"][0, 2])
    again = agreements(run_codes, [[0, 1], [2, 3]], ["udr.lasso"], path)
    assert len(calls) == 2
    np.testing.assert_array_equal(again["udr.lasso"], first["udr.lasso"])
    # A wider pool: only pairs that are new.
    agreements(run_codes, [range(4)], ["udr.lasso"], path)
    assert len(calls) == 2 + 4
    # Another number of the same pairs.
    agreements(run_codes, [[0, 1]], ["model_centrality"], path)
    assert calls[6:] == ["model_centrality"]
    # A further run: only its own; the order does not matter.
    more = mixed(5)
    tables = agreements(dict(reversed(more.items())), [range(5)], ["udr.lasso"], path)
    assert len(calls) == 7 + 4
    alone = agreements(more, [range(5)], ["udr.lasso"], tmp_path / "b.parquet")
    np.testing.assert_array_equal(tables["udr.lasso"][::-1, ::-1], alone["udr.lasso"])


def test_a_stop_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, path, run_codes = counted(monkeypatch), tmp_path / "a.parquet", mixed()

    def stop(done: int, total: int, what: str = "") -> None:
        assert (total, what) == (10, "comparing")
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agreements(run_codes, [range(5)], ["udr.spearman"], path, stop)
    assert len(calls) == 4
    tables = agreements(run_codes, [range(5)], ["udr.spearman"], path)
    assert len(calls) == 10
    whole = agreements(run_codes, [range(5)], ["udr.spearman"], tmp_path / "b.parquet")
    np.testing.assert_array_equal(tables["udr.spearman"], whole["udr.spearman"])


def test_long_work_is_kept_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_EVERY", -1.0)
    path, seen = tmp_path / "a.parquet", []

    def look(done: int, total: int, what: str = "") -> None:
        seen.append(len(pd.read_parquet(path)) if path.exists() else 0)

    agreements(mixed(3), [range(3)], ["udr.lasso"], path, look)
    assert seen == [0, 2, 4]


def test_what_another_process_found_meanwhile_stays(tmp_path: Path) -> None:
    path, run_codes = tmp_path / "a.parquet", mixed(4)
    names = list(run_codes)

    def meanwhile(done: int, total: int, what: str = "") -> None:
        agreements(
            {names[2]: run_codes[names[2]], names[3]: run_codes[names[3]]}, [[0, 1]], ["udr.lasso"], path
        )

    agreements({names[0]: run_codes[names[0]], names[1]: run_codes[names[1]]}, [[0, 1]], ALL, path, meanwhile)
    frame = pd.read_parquet(path)
    assert {frozenset(pair) for pair in zip(frame["run"], frame["other"], strict=True)} == {
        frozenset(names[:2]),
        frozenset(names[2:]),
    }


def test_agreements_that_differ_by_rounding_are_equal(tmp_path: Path) -> None:
    tables = agreements(mixed(4), [range(4)], ["udr.spearman"], tmp_path / "a.parquet")["udr.spearman"]
    for i, j in combinations(range(4), 2):
        assert tables[i, j] == tables[j, i]


def test_codes_are_known_by_their_content() -> None:
    codes = noise(0)
    assert codes.digest("a") == Codes(codes.mean.copy(), LIVE).digest("a")
    others = [noise(1).digest("a"), Codes(codes.mean, 2 * LIVE).digest("a"), codes.digest("b")]
    assert len({codes.digest("a"), *others}) == 4


def test_centrality_of_an_earlier_version_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions did not subtract chance; their UDR is still valid."""
    path, run_codes = tmp_path / "a.parquet", mixed(2)
    new = agreements(run_codes, [[0, 1]], ALL, path)
    columns = {"model_centrality_above_chance": "model_centrality"}
    pd.read_parquet(path).rename(columns=columns).assign(model_centrality=0.99).to_parquet(path)
    calls = counted(monkeypatch)
    again = agreements(run_codes, [[0, 1]], ALL, path)
    assert "model_centrality" in calls
    for name in ALL:
        np.testing.assert_array_equal(again[name], new[name])
    assert "model_centrality" not in pd.read_parquet(path).columns


def test_another_file_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UnweaveError, match=r"a\.parquet is not a table of agreements\. Delete it"):
        agreements(mixed(2), [[0, 1]], ALL, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    with pytest.raises(UnweaveError, match=r"b\.parquet cannot be read as a \.parquet file"):
        agreements(mixed(2), [[0, 1]], ALL, tmp_path / "b.parquet")
