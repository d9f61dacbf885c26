"""The impossibility theorem: the law of the codes stays, and every new code depends on every old one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from numpy.typing import NDArray

import unweave
from training.tiny import TINY
from unweave.commands.impossibility import codes_of_run, subject_named
from unweave.errors import UnweaveError
from unweave.evaluation.evaluate import Effort
from unweave.impossibility import (
    Comparison,
    compare,
    cosines,
    direction,
    entangle,
    jacobian,
    largest_correlation,
    marginal_distances,
    reflection,
)
from unweave.impossibility.transform import Distribution
from unweave.streams import Stream

N = 20_000
PRIORS = {
    "uniform": scipy.stats.uniform(),
    "laplace": scipy.stats.laplace(),
    "normal": scipy.stats.norm(),
    "skewed": scipy.stats.beta(2, 5),
    "one a column": scipy.stats.norm(loc=[0, 1, -2], scale=[1, 3, 0.5]),
}
with_each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())


def normal_codes(d: int, n: int = N) -> NDArray[np.float64]:
    return Stream.of(7).normal(n, d)


def codes_of(prior: Distribution, n: int = N) -> NDArray[np.float64]:
    return np.asarray(prior.ppf(Stream.of(3).uniform(n, 3)))


@pytest.mark.parametrize("d", [2, 3, 4, 5, 10, 24])
def test_matrices_are_orthogonal_symmetric_and_nowhere_zero(d: int) -> None:
    for matrix in (reflection(direction(d)), cosines(d)):
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(d), atol=1e-12)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.abs(matrix).min() > 0.001


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.1, 1.0), min_size=3, max_size=12), st.floats(1e-3, 1e3))
def test_the_length_of_v_does_not_matter(v: list[float], length: float) -> None:
    assume(min(abs(x**2 - sum(y**2 for y in v) / 2) for x in v) > 1e-3)  # else A has a 0 on its diagonal
    matrix = reflection(v)
    np.testing.assert_allclose(reflection(length * np.array(v)), matrix, atol=1e-12)
    np.testing.assert_allclose(matrix @ v, -np.array(v), atol=1e-12)  # v is turned round
    assert np.linalg.det(matrix) == pytest.approx(-1)


def test_the_reflection_of_four_equal_entries() -> None:
    np.testing.assert_allclose(reflection(direction(4)), np.eye(4) - 0.5)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(reflection(direction(2)), [[half, -half], [-half, -half]])


def test_standard_normal_codes_stay_standard_normal() -> None:
    codes = normal_codes(5)
    new = entangle(codes, prior="normal")
    np.testing.assert_allclose(new, codes @ (np.eye(5) - 0.4), atol=1e-12)
    assert np.abs(np.cov(new.T) - np.eye(5)).max() < 0.03
    for column in new.T:
        assert scipy.stats.kstest(column, "norm").pvalue > 0.001
    np.testing.assert_allclose(entangle(new, prior="normal"), codes, atol=1e-12)


@with_each_prior
@pytest.mark.parametrize("mixing", ["reflection", "cosines", [0.3, 0.5, -0.7]], ids=str)
def test_codes_of_any_law_keep_it_and_come_back(prior: Distribution, mixing: str | list[float]) -> None:
    codes = codes_of(prior)
    new = entangle(codes, prior=prior, mixing=mixing)
    uniform = prior.cdf(new)
    for column in uniform.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 0.001
    # Independence: the 27 cells of a 3 x 3 x 3 cut of the cube are equally full.
    cells = np.ravel_multi_index(tuple((3 * uniform).astype(int).T), (3, 3, 3))
    assert scipy.stats.chisquare(np.bincount(cells, minlength=27)).pvalue > 0.001
    np.testing.assert_allclose(entangle(new, prior=prior, mixing=mixing), codes, rtol=1e-6, atol=1e-9)


def test_far_tails_keep_their_digits() -> None:
    codes = np.array([[9.0, 30.0], [-40.0, 0.0]])  # 1 - 1e-13 is all that a distribution function has of 30
    prior = scipy.stats.laplace()
    np.testing.assert_allclose(
        entangle(entangle(codes, prior=prior), prior=prior), codes, rtol=1e-9, atol=1e-9
    )


@with_each_prior
def test_the_jacobian_is_that_of_finite_differences(prior: Distribution) -> None:
    codes, step = codes_of(prior, 40), 1e-6
    result = jacobian(codes, prior=prior)
    assert (result != 0).all()
    for j in range(3):
        shift = step * np.eye(3)[j]
        up, down = entangle(codes + shift, prior=prior), entangle(codes - shift, prior=prior)
        np.testing.assert_allclose(result[:, :, j], (up - down) / (2 * step), rtol=2e-4, atol=1e-6)


@with_each_prior
def test_the_density_is_kept_point_by_point(prior: Distribution) -> None:
    """p(f(z)) |det J| = p(z): the change of variables, which says that the joint law is the same."""
    codes = codes_of(prior, 50)
    new = entangle(codes, prior=prior)
    volumes = np.abs(np.linalg.det(jacobian(codes, prior=prior)))
    np.testing.assert_allclose(
        prior.pdf(new).prod(axis=1) * volumes, prior.pdf(codes).prod(axis=1), rtol=1e-6
    )


def test_the_jacobian_of_normal_codes_is_the_matrix() -> None:
    result = jacobian(normal_codes(3, 5), mixing="cosines")
    np.testing.assert_array_equal(result, np.broadcast_to(cosines(3), (5, 3, 3)))


@pytest.mark.parametrize("mixing", ["reflection", "cosines"])
def test_each_new_code_follows_each_old_one_as_the_matrix_says(mixing: str) -> None:
    codes = np.exp(normal_codes(4))  # any increasing function: ranks are all that the empirical law uses
    new = entangle(codes, mixing=mixing)
    matrix = cosines(4) if mixing == "cosines" else reflection(direction(4))
    ranks = scipy.stats.spearmanr(new, codes).statistic[:4, 4:]
    # Spearman's correlation of two normal numbers whose correlation is r.
    np.testing.assert_allclose(ranks, 6 / np.pi * np.arcsin(matrix / 2), atol=0.03)
    assert marginal_distances(codes, new).max() < 0.02


def test_factors_on_a_grid_stay_on_it_with_their_law() -> None:
    sizes = (3, 6, 4)
    factors = Stream.of(1).integers(N, sizes)
    new = entangle(factors)
    assert new.dtype == factors.dtype
    for column, size in zip(new.T, sizes, strict=True):
        assert scipy.stats.chisquare(np.bincount(column, minlength=size)).pvalue > 0.001
    cells = np.ravel_multi_index(tuple(new.T), sizes)
    assert scipy.stats.chisquare(np.bincount(cells, minlength=72)).pvalue > 0.001
    assert 0.1 < (new == factors).mean() < 0.6


def test_unequal_marginals_are_kept_too() -> None:
    shares = np.array([0.7, 0.2, 0.1])
    codes = np.searchsorted(np.cumsum(shares), Stream.of(5).uniform(N, 3)) * 10.0
    new = entangle(codes)
    for column in new.T:
        assert [np.mean(column == value) for value in (0, 10, 20)] == pytest.approx(list(shares), abs=0.015)


def test_dead_codes_stay_and_touch_no_other() -> None:
    codes = normal_codes(3)
    with_dead = np.insert(codes, 1, 4.5, axis=1)
    stream = Stream.of(0)
    new = entangle(with_dead, mixing=[1, 9, 2, 4], seed=stream)
    assert (new[:, 1] == 4.5).all()
    # The same reflection as without the dead code, up to how values are spread inside of a 1/n.
    apart = entangle(codes, mixing=[1, 2, 4], seed=stream)
    assert np.abs(scipy.stats.rankdata(new[:, 2]) - scipy.stats.rankdata(apart[:, 1])).max() < 0.02 * N


def test_ties_are_broken_by_the_seed_and_nothing_else_is_random() -> None:
    factors = Stream.of(1).integers(500, (3, 3))
    np.testing.assert_array_equal(entangle(factors, seed=1), entangle(factors, seed=1))
    assert (entangle(factors, seed=1) != entangle(factors, seed=2)).any()
    codes = normal_codes(2, 500)
    np.testing.assert_array_equal(
        entangle(codes, prior="normal", seed=1), entangle(codes, prior="normal", seed=2)
    )


REFUSED = [
    ({"mixing": "mirror"}, 'there is no mixing "mirror". Known: reflection, cosines.'),
    ({"mixing": [1, 2]}, r"v must be \(3,\), one number for each code; got \(2,\)"),
    ({"mixing": [1, 0, 2]}, r"new code 0 would not depend on old code 1"),
    ({"mixing": [3, 4, 5]}, r"new code 2 would not depend on old code 2"),  # 5^2 = 3^2 + 4^2
    ({"mixing": [0, 0, 0]}, "v must be finite and not all 0"),
    ({"prior": "gaussian"}, 'there is no prior "gaussian"'),
    ({"prior": 3}, "or a distribution such as scipy.stats.uniform.*; got int"),
    ({"prior": scipy.stats.uniform(0, 0.5)}, r"codes must lie inside of the prior; 0.9 in row 0, column 2"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[text[:30] for _, text in REFUSED])
def test_what_cannot_entangle_is_explained(options: dict[str, object], message: str) -> None:
    codes = np.array([[0.1, 0.2, 0.9], [0.2, 0.3, 0.4]])
    with pytest.raises(UnweaveError, match=message):
        entangle(codes, **options)  # type: ignore[arg-type]


def test_one_code_alone_cannot_be_entangled() -> None:
    with pytest.raises(UnweaveError, match="only two codes or more that vary can be entangled; got 1"):
        entangle([[0.0, 5.0], [1.0, 5.0]])
    with pytest.raises(UnweaveError, match="got 1"):
        cosines(1)
    with pytest.raises(UnweaveError, match="empirical distribution has steps and no derivative"):
        jacobian([[0.0, 5.0], [1.0, 6.0]], prior="empirical")


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 60), st.integers(2, 60), st.integers(1, 9), st.integers(0, 99))
def test_distances_are_those_of_scipy(n: int, m: int, values: int, seed: int) -> None:
    before = Stream.of(seed).integers(n, [values])
    after = Stream.of(seed).child("after").integers(m, [values])
    expected = scipy.stats.ks_2samp(before[:, 0], after[:, 0], method="asymp").statistic
    assert marginal_distances(before, after)[0] == pytest.approx(expected)


def test_largest_correlation_of_hand_made_codes() -> None:
    codes = [[0, 1, 5, 0], [0, 2, 5, 2], [1, 1, 5, 1], [1, 2, 5, 3]]  # the last is 2 * column 1 + column 0
    assert largest_correlation(codes) == pytest.approx(2 / np.sqrt(5))
    assert largest_correlation([[0, 1], [0, 2]]) == 0


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    factors = Stream.of(2).integers(3000, (5, 6, 7))
    return compare(factors, factors, metrics="mig, dci, modularity", factor_names=("a", "b", "c"))


def test_perfect_codes_lose_their_scores_and_nothing_else_shows_it(comparison: Comparison) -> None:
    before, after = comparison.scores_before, comparison.scores_after
    for name in ("mig", "dci.disentanglement", "dci.completeness"):
        assert before[name] > 0.98
        assert after[name] < 0.25
    assert after["modularity"] < before["modularity"]
    table = comparison.table()
    assert "dci.informativeness_train" not in set(table["quantity"])
    seen = table[table["labels"]]
    assert seen["before"].tolist() == [before[name] for name in seen["quantity"]]
    assert seen["after"].tolist() == [after[name] for name in seen["quantity"]]
    blind = table[~table["labels"]]
    assert blind["quantity"].tolist() == [
        "largest distance of marginals",
        "largest correlation",
        "total_correlation",
        "wasserstein_correlation_normalised",
        "mean_pairwise_information",
    ]
    assert np.abs(blind["before"] - blind["after"]).max() < 0.03
    assert comparison.distances.max() < comparison.chance
    assert comparison.chance == pytest.approx(1.3581 * np.sqrt(2 / 3000), rel=1e-4)  # the table of Smirnov


def test_the_figure_shows_both(comparison: Comparison, tmp_path: Path) -> None:
    figure = comparison.plot(tmp_path / "figure.png")
    assert isinstance(figure, Figure)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    marginals, scatters, matrices, bars = (
        figure.axes[:3],
        figure.axes[3:5],
        figure.axes[6:8],
        figure.axes[-2:],
    )
    assert [axes.get_xlabel() for axes in marginals] == ["z0", "z1", "z2"]
    assert [axes.get_title() for axes in (*scatters, *matrices)] == ["before", "after"] * 2
    for axes, scores in zip(matrices, (comparison.scores_before, comparison.scores_after), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), scores.matrices["mutual_information"])
    assert [axes.get_title() for axes in bars] == ["Measured without labels", "Measured with labels"]
    assert bars[1].patches[0].get_width() == comparison.scores_before["mig"]  # type: ignore[attr-defined]
    with pytest.raises(UnweaveError, match="cannot write the picture"):
        comparison.plot(tmp_path / "no folder" / "figure.png")


def test_names_must_fit() -> None:
    factors = Stream.of(2).integers(30, (2, 3))
    with pytest.raises(UnweaveError, match="factor_names must be 2 names, one for each column; got 1"):
        compare(factors, factors, metrics="mig", factor_names=["a"])


def test_codes_of_a_run(tmp_path: Path) -> None:
    run = unweave.train(unweave.methods.VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=3, device="cpu")
    effort = Effort((60, 30))
    drawn, means = codes_of_run(run, "sampled", effort), codes_of_run(run, "mean", effort)
    assert drawn.codes.shape == (90, 3)
    assert drawn.factor_names == ("size", "x", "y")
    np.testing.assert_array_equal(drawn.factors, means.factors)
    np.testing.assert_allclose(means.codes, run.encode(TINY.observe(means.factors)), atol=1e-5)
    assert drawn.codes.std() > 2 * means.codes.std()  # an untrained posterior is wide
    assert "sampled codes" in drawn.title
    assert "mean codes" in means.title


def test_factors_need_no_files_and_unknown_names_are_told(tmp_path: Path) -> None:
    result = subject_named("cars3d", "mean", Effort((60, 30)), "cpu", tmp_path, None)
    assert result.codes.shape == (90, 3)
    assert result.code_names == ("elevation", "azimuth", "object")
    np.testing.assert_array_equal(result.codes, result.factors)
    with pytest.raises(UnweaveError, match=r'"dsprits" is neither .* Did you mean "dsprites"\?'):
        subject_named("dsprits", "mean", Effort(), "cpu", None, None)


def test_the_command_prints_a_table_and_draws_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from unweave.cli import app\n"
        "words = 'impossibility dsprites --metrics mig --points 2000 1000 -o a.png'\n"
        "try: app(words.split())\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "the factors of dsprites as codes, 3,000 points"
    [mig] = [line.split() for line in lines if line.split()[:1] == ["mig"]]
    assert mig[1] == "yes"
    assert float(mig[2]) > 0.85
    assert float(mig[3]) < 0.1
    assert lines[-2:] == ["-> a.png", "False"]
    assert (tmp_path / "a.png").exists()
