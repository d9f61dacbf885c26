"""Choice without labels: scores of several runs from their codes of the same images and nothing else.

Runs that found the factors agree with each other up to order, sign and scale; every run that failed does
so in a way of its own. UDR and ModelCentrality both score a run by how well it agrees with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.errors import UnweaveError, did_you_mean
from unweave.metrics.checks import check_bins, check_codes, scaled
from unweave.metrics.estimators.linear import lasso
from unweave.metrics.information import discretise
from unweave.metrics.mig import mig

Floats: TypeAlias = NDArray[np.float64]
# How well the codes of one run, taken as truth, are found in the codes of another.
Agreement: TypeAlias = Callable[[Floats, Floats], float]

LEAST_KL = 0.01
LASSO_ALPHA = 0.1


def udr(
    runs: Sequence[ArrayLike],
    *,
    kl: Sequence[ArrayLike] | None = None,
    method: Literal["lasso", "spearman"] = "lasso",
) -> Floats:
    """Unsupervised disentanglement ranking [1]: one score for each run.

    `runs` are codes (n, d) of the same n images, one array a run; `kl`, if given, holds for each run the
    mean KL divergence of each code from the prior, (d,). Only informative codes take part: not constant
    and, where `kl` is given, of KL > 0.01. Give it for VAEs: without it a collapsed code counts with what
    noise is left of it.

    R(a, b) >= 0 says how strongly code a of run i and code b of run j go together: "lasso": the size of the
    coefficient of a in the lasso (alpha 0.1) that predicts b from all codes of i, all standardised;
    "spearman": the absolute rank correlation. With d_i informative codes in run i,

        UDR_ij = [sum_b max_a R(a, b)^2 / sum_a R(a, b) + sum_a max_b R(a, b)^2 / sum_b R(a, b)] / (d_i + d_j)

    and the score of run j is the median of UDR_ij over the other runs i. Range 0 to about 1; higher is
    better. Copies of a run with uncorrelated codes score 1 ("spearman") or 1 - alpha = 0.9 ("lasso").
    A run without informative codes scores 0.

    Differs from disentanglement_lib: there the two sums were divided by their own number of codes and
    averaged, which is the same for d_i = d_j.

    Reference: [1] Duan et al., "Unsupervised model selection for variational disentangled representation
    learning", ICLR 2020.

    >>> codes = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    >>> udr([codes, -codes[:, ::-1]], method="spearman").round(12).tolist()
    [1.0, 1.0]
    """
    strengths: dict[str, Callable[[Floats, Floats], Floats]] = {"lasso": _lasso, "spearman": _correlation}
    if method not in strengths:
        raise UnweaveError(f'there is no method "{method}" of udr. {did_you_mean(method, strengths)}')
    codes = _informative(runs, kl)
    if method == "spearman":
        codes = [_ranks(array) for array in codes]
    table = _pairs(codes, lambda one, other: _relative_strength(strengths[method](one, other)))
    return np.asarray(np.nanmedian(table, axis=0))


def model_centrality(
    runs: Sequence[ArrayLike],
    *,
    kl: Sequence[ArrayLike] | None = None,
    agreement: Literal["factor_vae", "mig"] = "factor_vae",
    bins: int = 20,
) -> Floats:
    """ModelCentrality [1]: one score for each run, highest for the run in the middle of all.

    `runs` and `kl` as for `udr`. A_ij is how well run j would score if the codes of run i were the factors;
    B_ij = (A_ij + A_ji) / 2; the score of run i is the mean of B_ij over the other runs. Range 0 (codes that
    have nothing in common) to 1; higher is better. A run without informative codes scores 0. The `agreement`
    A_ij is

    "factor_vae", as in [1]: the FactorVAE score, on given images. Each code a of run i is cut
    into `bins` parts with equally many images (equal codes stay together). Each part gives a vote (a, code b
    of run j of the least variance in it, in units of its variance in all images), which weighs as much as it
    has images. Each code b stands for the a that it has most votes for; S is the share of votes which that
    gets right, and A_ij = (S - C) / (1 - C), or 0 if that is less; C is the share expected if votes for b did
    not depend on a. So a single code, whose votes are always right, scores 0. Like every FactorVAE score it
    does not see a rotation that leaves each factor a code of its own that it moves most.

    "mig": the mutual information gap (`mig`) of run j with the codes of run i, cut into `bins`, as factors.
    It does see rotations.

    Differs from [1]: there run i generates new images with one latent held fixed; here the images of a part
    have it nearly fixed, so that codes alone are enough and nothing is drawn. There A_ij is S, of all codes
    and not only of informative ones. S compares runs that all have the same number of codes: of fewer codes
    more votes are right by chance.

    Reference: [1] Lin et al., "InfoGAN-CR and ModelCentrality: self-supervised model training and selection
    for disentangling GANs", ICML 2020.

    >>> codes = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    >>> model_centrality([codes, -codes[:, ::-1]]).tolist()
    [1.0, 1.0]
    """
    bins = check_bins(bins)
    agreements: dict[str, Agreement] = {
        "factor_vae": lambda one, other: _factor_vae_score(one, other, bins),
        "mig": lambda one, other: mig(other, discretise(one, bins), bins=bins),
    }
    if agreement not in agreements:
        raise UnweaveError(f'there is no agreement "{agreement}". {did_you_mean(agreement, agreements)}')
    codes = _informative(runs, kl)
    if len(codes[0]) < 2 * bins:
        raise UnweaveError(
            f"{bins} parts of two images or more need at least {2 * bins} images; got {len(codes[0])}. "
            "Give more images or fewer bins."
        )
    table = _pairs(codes, agreements[agreement])
    return np.asarray(np.nanmean((table + table.T) / 2, axis=0))


def _informative(runs: Sequence[ArrayLike], kl: Sequence[ArrayLike] | None) -> list[Floats]:
    """The informative codes of each run, standardised."""
    if len(runs) < 2:
        raise UnweaveError(f"runs are compared with each other, so give at least two; got {len(runs)}.")
    arrays = [check_codes(codes, f"codes of run {i}") for i, codes in enumerate(runs)]
    for i, array in enumerate(arrays):
        if len(array) != len(arrays[0]):
            raise UnweaveError(
                f"all runs must have codes of the same images; run 0 has {len(arrays[0])} rows and run {i} "
                f"has {len(array)}."
            )
    if kl is None:
        return [_standardised(array) for array in arrays]
    if len(kl) != len(arrays):
        raise UnweaveError(f"kl must hold one array a run; got {len(kl)} for {len(arrays)} runs.")
    return [_standardised(array[:, _kept(kl[i], array, i)]) for i, array in enumerate(arrays)]


def _kept(kl: ArrayLike, codes: Floats, run: int) -> NDArray[np.bool_]:
    values = np.asarray(kl, np.float64)
    if values.shape != codes.shape[1:] or not np.isfinite(values).all():
        raise UnweaveError(
            f"kl of run {run} must be {codes.shape[1]} finite numbers, one a code; got shape {values.shape}"
            f"{'' if np.isfinite(values).all() else ' with NaN or infinity'}."
        )
    return values > LEAST_KL


def _standardised(codes: Floats) -> Floats:
    """Codes of mean 0 and variance 1, without those that are constant."""
    varied = codes[:, (codes != codes[0]).any(axis=0)]
    safe = scaled(varied, axis=0)[0]
    return np.asarray((safe - safe.mean(axis=0)) / safe.std(axis=0))


def _pairs(codes: list[Floats], score: Agreement) -> Floats:
    """(r, r): the score of run i with run j; 0 where one has no informative codes, NaN where i = j."""
    table = np.full((len(codes), len(codes)), np.nan)
    for i, one in enumerate(codes):
        for j, other in enumerate(codes):
            if i != j:
                table[i, j] = score(one, other) if one.size and other.size else 0.0
    return table


def _lasso(predictors: Floats, targets: Floats) -> Floats:
    return np.abs(lasso(predictors, targets, alpha=LASSO_ALPHA))


def _correlation(one: Floats, other: Floats) -> Floats:
    return np.abs(one.T @ other / len(one))


def _ranks(codes: Floats) -> Floats:
    from scipy.stats import rankdata

    return _standardised(rankdata(codes, axis=0))


def _relative_strength(strengths: Floats) -> float:
    total = 0.0
    for axis in (0, 1):
        sums = strengths.sum(axis=axis)
        total += (strengths.max(axis=axis) ** 2 / np.where(sums > 0, sums, 1.0)).sum()
    return float(total / sum(strengths.shape))


def _factor_vae_score(factors: Floats, codes: Floats, bins: int) -> float:
    """A_ij of `model_centrality`, from standardised codes, so that variances are in units already."""
    squares = codes**2
    votes, parts = np.zeros((factors.shape[1], codes.shape[1])), np.empty(factors.shape[1], np.int64)
    for a, factor in enumerate(factors.T):
        edges = np.quantile(factor, np.arange(1, bins) / bins)
        part = np.searchsorted(edges, factor)
        member = (part == np.arange(bins)[:, None]).astype(np.float64)
        sizes = member.sum(axis=1)
        used = sizes > 1  # the variance of one image says nothing
        member, sizes = member[used], sizes[used]
        variance = member @ squares / sizes[:, None] - (member @ codes / sizes[:, None]) ** 2
        np.add.at(votes[a], variance.argmin(axis=1), sizes)
        parts[a] = used.sum()
    right = float(votes.max(axis=0).sum() / votes.sum())
    by_chance = _right_by_chance(votes.sum(axis=0) / votes.sum(), parts)
    return max((right - by_chance) / (1 - by_chance), 0.0) if by_chance < 1 - 1e-12 else 0.0


def _right_by_chance(shares: Floats, parts: NDArray[np.int64]) -> float:
    """The expected share of right votes if all factors voted for code b with the same probability shares[b].

    Factor a gives parts[a] votes, so its share of votes for b is binomial. Code b gets right the largest of
    these shares, whose expectation is a sum over its distribution function.
    """
    from scipy.stats import binom

    values = np.unique(np.concatenate([np.arange(n + 1) / n for n in parts]))
    below = np.ones((len(shares), len(values)))  # P(all factors' shares <= value)
    for n in parts:
        below *= binom.cdf(np.floor(values * n + 0.5 / n), n, shares[:, None])
    largest = 1 - below[:, :-1] @ np.diff(values)
    return float(largest.sum() / len(parts))
