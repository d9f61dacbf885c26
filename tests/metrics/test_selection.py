"""UDR and ModelCentrality: copies agree, the odd one out comes last, and the formulas by hand."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.metrics.selection import _relative_strength, _right_by_chance, model_centrality, udr
from unweave.streams import Stream

Runs = list[NDArray[np.float64]]
Score = Callable[..., NDArray[np.float64]]

# Three codes on a full grid: exactly uncorrelated.
GRID = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3)

SCORES: dict[str, tuple[Score, float]] = {
    "lasso": (partial(udr, method="lasso"), 0.9),
    "spearman": (partial(udr, method="spearman"), 1.0),
    "centrality": (model_centrality, 1.0),
    "centrality by mig": (partial(model_centrality, agreement="mig"), 1.0),
}
all_scores = pytest.mark.parametrize(("score", "of_copies"), SCORES.values(), ids=SCORES.keys())


# Turns that leave no factor a code of its own: 45 degrees in one plane each.
TURNS = [np.eye(3), np.eye(3), np.eye(3)]
for turn, (i, j) in zip(TURNS, ((0, 1), (0, 2), (1, 2)), strict=True):
    turn[np.ix_((i, j), (i, j))] = np.array([[1, -1], [1, 1]]) / 2**0.5


def rotation(seed: int) -> NDArray[np.float64]:
    return np.linalg.qr(Stream.of(seed).child("rotation").normal(3, 3))[0]


def agreeing() -> Runs:
    return [GRID, -GRID[:, [2, 0, 1]], GRID[:, [1, 2, 0]] * [0.1, 5.0, -1e20] + [3.0, 0.0, 0.0]]


@all_scores
def test_permuted_flipped_and_rescaled_copies_score_highest(score: Score, of_copies: float) -> None:
    np.testing.assert_allclose(score(agreeing()), of_copies, atol=1e-9)


@all_scores
def test_an_entangled_run_comes_last(score: Score, of_copies: float) -> None:
    scores = score([*agreeing(), (GRID - 2.5) @ TURNS[0] @ TURNS[1]])
    assert scores.argmin() == 3
    assert scores[3] < 0.9 * scores[:3].min()


@all_scores
def test_runs_that_are_entangled_each_in_its_own_way_do_not_agree(score: Score, of_copies: float) -> None:
    scores = score([(GRID - 2.5) @ turn for turn in TURNS])
    assert (scores < 0.85 * of_copies).all()


@all_scores
def test_dead_codes_do_not_count_and_a_dead_run_scores_zero(score: Score, of_copies: float) -> None:
    dead = np.full((len(GRID), 2), 3.7)
    runs = [np.hstack([GRID, dead]), GRID[:, ::-1], np.hstack([dead, -GRID]), dead]
    scores = score(runs)
    assert scores[3] == 0
    assert (scores[:3] > 0.6 * of_copies).all()
    np.testing.assert_allclose(score(runs[:3]), of_copies, atol=1e-9)


@all_scores
def test_codes_of_little_kl_do_not_count(score: Score, of_copies: float) -> None:
    noise = Stream.of(0).normal(len(GRID), 4)
    runs = [np.hstack([GRID, noise[:, :2]]), np.hstack([noise[:, 2:], GRID])]
    kl = [np.array([3.0, 3.0, 3.0, 0.01, 0.0]), np.array([0.0, 0.001, 2.0, 2.0, 2.0])]
    np.testing.assert_allclose(score(runs, kl=kl), of_copies, atol=1e-9)
    assert (score(runs) < 0.95 * of_copies).all()


@all_scores
def test_runs_may_have_different_numbers_of_codes(score: Score, of_copies: float) -> None:
    scores = score([GRID[:, :1], GRID, GRID[:, ::-1]])
    assert scores[0] < scores[1] == pytest.approx(scores[2])


@all_scores
def test_order_of_runs_and_of_images_does_not_matter(score: Score, of_copies: float) -> None:
    runs = [*agreeing(), (GRID - 2.5) @ rotation(1), GRID + Stream.of(1).normal(len(GRID), 3)]
    scores = score(runs)
    np.testing.assert_allclose(score(runs[::-1]), scores[::-1], atol=1e-6)
    order = Stream.of(2).permutations(1, len(GRID))[0]
    np.testing.assert_allclose(score([run[order] for run in runs]), scores, atol=1e-6)


def test_relative_strength_by_hand() -> None:
    # Columns: 0.64 / 1.0, 0.25 / 0.5; rows: 0.64 / 0.8, 0.25 / 0.7, 0 / 0; five codes in all.
    strengths = np.array([[0.8, 0.0], [0.2, 0.5], [0.0, 0.0]])
    assert _relative_strength(strengths) == pytest.approx((0.64 + 0.5 + 0.8 + 0.25 / 0.7) / 5)


def test_spearman_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    one, other = Stream.of(3).normal(50, 2), Stream.of(4).normal(50, 3).round(1)
    table = [[abs(stats.spearmanr(a, b).statistic) for b in other.T] for a in one.T]
    expected = _relative_strength(np.array(table))
    np.testing.assert_allclose(udr([one, other], method="spearman"), expected, rtol=1e-12)


def test_lasso_predicts_the_scored_run_from_the_others() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    one = Stream.of(5).normal(200, 3)
    other = one[:, :2] @ np.array([[1.0, 0.5], [0.2, 1.0]]) + 0.3 * Stream.of(6).normal(200, 2)
    z = [(run - run.mean(axis=0)) / run.std(axis=0) for run in (one, other)]
    expected = [
        _relative_strength(np.abs(linear_model.Lasso(alpha=0.1, tol=1e-12).fit(a, b).coef_).T)
        for a, b in ((z[1], z[0]), (z[0], z[1]))
    ]
    np.testing.assert_allclose(udr([one, other], method="lasso"), expected, atol=1e-8)


def test_score_is_the_median_over_the_other_runs() -> None:
    runs = [*agreeing(), (GRID - 2.5) @ rotation(3)]
    pairs = [udr([run, runs[0]], method="spearman")[0] for run in runs[1:]]
    assert udr(runs, method="spearman")[0] == pytest.approx(np.median(pairs))


def test_centrality_is_the_mean_over_the_other_runs() -> None:
    runs = [*agreeing(), (GRID - 2.5) @ rotation(3)]
    pairs = [model_centrality([run, runs[0]])[0] for run in runs[1:]]
    assert model_centrality(runs)[0] == pytest.approx(np.mean(pairs))


def test_only_the_information_gap_sees_an_uneven_rotation() -> None:
    runs = [*agreeing(), (GRID - 2.5) @ rotation(0)]
    np.testing.assert_allclose(model_centrality(runs), 1.0)
    assert model_centrality(runs, agreement="mig")[3] < 0.5


def test_centrality_by_hand() -> None:
    assert model_centrality([GRID, GRID[:, [2, 1, 0]]], bins=6).tolist() == [1.0, 1.0]
    # With a single factor, or a single code, no more votes are right than by chance.
    assert model_centrality([GRID[:, :2], GRID[:, :1]], bins=6).tolist() == [0.0, 0.0]


def test_right_votes_by_chance_are_those_of_independent_votes() -> None:
    """Three factors of 4, 4 and 5 votes, each for one of two codes, against all cases counted."""
    expected = 0.0
    for votes in itertools.product(*(range(n + 1) for n in (4, 4, 5))):
        probability = math.prod(
            math.comb(n, x) * 0.3**x * 0.7 ** (n - x) for n, x in zip((4, 4, 5), votes, strict=True)
        )
        shares = [x / n for x, n in zip(votes, (4, 4, 5), strict=True)]
        expected += probability * (max(shares) + max(1 - share for share in shares)) / 3
    assert _right_by_chance(np.array([0.3, 0.7]), np.array([4, 4, 5])) == pytest.approx(expected)


@pytest.mark.parametrize("codes", [1, 2, 3, 10])
def test_a_run_of_noise_comes_last_however_many_codes_it_has(codes: int) -> None:
    """S alone ranks a run of one code above others: all of its votes are right."""
    runs = [
        GRID @ rotation(seed) + 2 * Stream.of(seed).child("own").normal(len(GRID), 3) for seed in range(5)
    ]
    scores = model_centrality([*runs, Stream.of(9).normal(len(GRID), codes)])
    assert scores.argmin() == 5
    assert scores[5] < 0.05


def test_bad_input_is_refused() -> None:
    with pytest.raises(UnweaveError, match="at least two; got 1"):
        udr([GRID])
    with pytest.raises(UnweaveError, match="run 0 has 216 rows and run 1 has 215"):
        udr([GRID, GRID[1:]])
    with pytest.raises(UnweaveError, match=r'no method "spearmen" of udr\. Did you mean "spearman"'):
        udr([GRID, GRID], method="spearmen")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match=r'no agreement "sap"\. Known: factor_vae, mig'):
        model_centrality([GRID, GRID], agreement="sap")  # type: ignore[arg-type]
    with pytest.raises(UnweaveError, match="kl must hold one array a run; got 1 for 2 runs"):
        udr([GRID, GRID], kl=[np.ones(3)])
    with pytest.raises(
        UnweaveError, match=r"kl of run 1 must be 3 finite numbers, one a code; got shape \(2,\)"
    ):
        udr([GRID, GRID], kl=[np.ones(3), np.ones(2)])
    with pytest.raises(UnweaveError, match="codes of run 1 must be finite"):
        model_centrality([GRID, np.where(GRID == 0, np.nan, GRID)])
    with pytest.raises(UnweaveError, match="need at least 40 images; got 30"):
        model_centrality([GRID[:30], GRID[:30]])
