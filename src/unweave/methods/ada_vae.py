"""Ada-GVAE and related methods [1]: two images share the dimensions in which they hardly differ.

[1] Locatello, Poole, Rätsch, Schölkopf, Bachem, Tschannen: Weakly-supervised disentanglement without
compromises, ICML 2020.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext, elbo_terms
from unweave.methods.sampling import Pairs
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.sharing import (
    Rule,
    average,
    below_midpoint,
    distance,
    in_groups,
    product,
    published_product,
    share,
    shared_dimensions,
    smallest,
    ungrouped,
)

# Product rules by the name of their variance.
PRODUCTS: Mapping[str, Rule] = {"exact": product, "published": published_product}

CITATION = """@inproceedings{locatello2020weakly,
  author = {Francesco Locatello and Ben Poole and Gunnar R{\\"a}tsch and Bernhard Sch{\\"o}lkopf and
            Olivier Bachem and Michael Tschannen},
  title = {Weakly-Supervised Disentanglement Without Compromises},
  booktitle = {International Conference on Machine Learning},
  year = {2020}
}"""


@dataclass(frozen=True)
class _PairVAE(Method):
    """rec + beta KL, mean over both images of a pair, whose posteriors share dimensions by a rule."""

    beta: Setting = 1.0
    """Weight of the KL divergence from the prior."""
    changed: int | Literal["random", "published"] = "published"
    """How many factors of a pair differ: published, random, or a number."""

    strength: ClassVar[str | None] = "beta"
    citation: ClassVar[str] = CITATION

    @abstractmethod
    def rule(self, posterior: Gaussian) -> Gaussian:
        """The shared posterior of two images: (..., 2, D) -> (..., 1, D)."""

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        loss = forward.reconstruction + self.beta * forward.kl
        shared = shared_dimensions(forward.posterior, 2)
        return Losses({AUTOENCODER: loss}, elbo_terms(forward) | {"shared_dimensions": shared})


@dataclass(frozen=True)
class _Adaptive(_PairVAE):
    """Methods that infer which dimensions to share."""

    k_known: bool = False
    """Whether the number of changed factors is known."""

    @property
    def sampling(self) -> Pairs:
        """Pairs that differ in a few factors."""
        return Pairs(self.changed, labels=self.k_known)

    def merged(self, posterior: Gaussian, labels: Tensor | None) -> Gaussian:
        """Each pair shares the dimensions in which it differs least."""
        return _adapted(posterior, labels, self.rule)


@dataclass(frozen=True)
class _KnownChanges(_PairVAE):
    """Methods that know which factors have changed, from labels."""

    @property
    def sampling(self) -> Pairs:
        """Pairs with labels, which show the factors that differ."""
        return Pairs(self.changed, labels=True)

    def merged(self, posterior: Gaussian, labels: Tensor | None) -> Gaussian:
        """Each pair shares the dimensions of the factors that have not changed."""
        return _share_unchanged(posterior, labels, self.rule)


@dataclass(frozen=True)
class AdaGVAE(_Adaptive):
    """Ada-GVAE: pairs share dimensions that differ little; posteriors are averaged.

    rec + beta KL, mean over both images of a pair, whose posteriors share dimensions; [1], section 4.

    With delta_d = KL(q(z_d|x_1) || q(z_d|x_2)), the dimensions in which delta_d < (max delta + min delta) / 2
    share one posterior: the mean of the two means and the mean of the two variances. With k_known=True the
    number k of changed factors is known for each pair, and the D - k dimensions with the smallest delta are
    shared. No gradient flows through the choice of dimensions; shared posteriors pass gradients to both
    images.

    `changed` says how many factors of a pair differ: a number; "random", uniform in 1 .. K - 1 as [1] writes
    it; or "published", as the models of [1] were trained: one factor in half of the pairs, and "random" in
    the others. A batch of 64 is 64 pairs.

    Differs from disentanglement_lib: a pair always differs; it has no k_known.
    """

    name: ClassVar[str] = "ada_gvae"

    def rule(self, posterior: Gaussian) -> Gaussian:
        """The average."""
        return average(posterior)


@dataclass(frozen=True)
class AdaMLVAE(_Adaptive):
    """Ada-ML-VAE: pairs share dimensions that differ little; posteriors are multiplied.

    The objective of `AdaGVAE`, where the shared posterior is the product of the two posteriors; [1].

    variance: "exact" is the variance of the product, v_1 v_2 / (v_1 + v_2). "published" is twice as much, as
    in disentanglement_lib, whose models are those of [1].
    """

    variance: Literal["exact", "published"] = "exact"
    """Variance of shared posteriors: exact, or published (twice as large)."""

    name: ClassVar[str] = "ada_ml_vae"
    added: ClassVar[frozenset[str]] = frozenset({"variance"})

    def rule(self, posterior: Gaussian) -> Gaussian:
        """The product, with the variance that `variance` names."""
        return PRODUCTS[self.variance](posterior)


@dataclass(frozen=True)
class GVAELabels(_KnownChanges):
    """GVAE on pairs whose changed factors are known; posteriors are averaged.

    The objective of `AdaGVAE` with known changed factors: the baseline that [1] calls GVAE.

    Dimension j belongs to factor j: each image keeps its own posterior where factor j has changed. All other
    dimensions are shared, those beyond the factors always, so there must be at least as many as factors.

    Differs from disentanglement_lib, whose label is only one of the changed factors, the last one drawn.
    """

    name: ClassVar[str] = "gvae_labels"

    def rule(self, posterior: Gaussian) -> Gaussian:
        """The average."""
        return average(posterior)


@dataclass(frozen=True)
class MLVAELabels(_KnownChanges):
    """ML-VAE on pairs whose changed factors are known; posteriors are multiplied.

    The objective of `GVAELabels`, where the shared posterior is the product of the two posteriors. `variance`
    is that of `AdaMLVAE`.
    """

    variance: Literal["exact", "published"] = "exact"
    """Variance of shared posteriors: exact, or published (twice as large)."""

    name: ClassVar[str] = "ml_vae_labels"
    added: ClassVar[frozenset[str]] = frozenset({"variance"})

    def rule(self, posterior: Gaussian) -> Gaussian:
        """The product, with the variance that `variance` names."""
        return PRODUCTS[self.variance](posterior)


def _adapted(posterior: Gaussian, labels: Tensor | None, rule: Rule) -> Gaussian:
    """With labels the number of changed factors is known; without labels it is estimated."""
    pairs = in_groups(posterior, 2)
    with torch.no_grad():
        apart = distance(pairs)
        if labels is None:
            shared = below_midpoint(apart)
        else:
            number = _changed(labels).sum(-1, keepdim=True)
            shared = smallest(apart, apart.shape[-1] - number)
    return ungrouped(share(pairs, shared, rule))


def _share_unchanged(posterior: Gaussian, labels: Tensor | None, rule: Rule) -> Gaussian:
    pairs = in_groups(posterior, 2)
    if labels is None:
        raise UnweaveError("labels are needed to know which factors of a pair have changed; got none.")
    changed = _changed(labels)
    latents, factors = posterior.mean.shape[-1], changed.shape[-1]
    if latents < factors:
        raise UnweaveError(
            f"each of the {factors} factors needs a dimension of the code; there are {latents}. "
            f"Set latents to {factors} or more."
        )
    beyond = changed.new_zeros(*changed.shape[:-1], latents - factors)
    return ungrouped(share(pairs, ~torch.cat([changed, beyond], dim=-1), rule))


def _changed(labels: Tensor) -> Tensor:
    """(..., n, 1, k): which factors of each pair differ, of labels (..., 2 n, k)."""
    values: Tensor = labels.unflatten(-2, (-1, 2))
    return values[..., :1, :].ne(values[..., 1:, :])
