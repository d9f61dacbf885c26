"""ML-VAE [1] and GVAE [2]: the images of a group share the posterior of their content.

[1] Bouchacourt, Tomioka, Nowozin: Multi-level variational autoencoder: learning disentangled representations
from grouped observations, AAAI 2018.
[2] Hosoya: Group-based learning of disentangled representations with generalizability for novel contents,
IJCAI 2019.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Losses, Method, Setting, StepContext
from unweave.methods.sampling import Groups, factors_in
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.sharing import average, group_kl, in_groups, product, share_content, ungrouped


@dataclass(frozen=True)
class _GroupVAE(Method):
    """The common part of both methods: all but the rule for the posterior of a group's content."""

    beta: Setting = 1.0
    """Weight of the divergences; 1 in both papers."""
    content: int | Literal["half"] = "half"
    """Dimensions of the content, the first ones: a number, or half of the latents."""
    group_size: int = 2
    """Images in a group."""
    shared: int | str = "class"
    """Factors that all images of a group share: names with commas between them, class (the first
    categorical factor), or a number of first factors."""

    strength: ClassVar[str | None] = "beta"
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3}  # of the authors of [1]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_size < 1:
            raise UnweaveError(
                f"group_size of {self.name} must be a whole number >= 1; got {self.group_size}. "
                "The default is 2."
            )

    @staticmethod
    @abstractmethod
    def rule(posterior: Gaussian) -> Gaussian:
        """The shared posterior of the m images of a group: (..., m, D) -> (..., 1, D)."""

    @property
    def sampling(self) -> Groups:
        """Groups of images with the same content."""
        return Groups(self.group_size, factors_in(self.shared), chosen="first")

    def content_dimensions(self, latents: int) -> int:
        """The value of `content`, or half of the latents."""
        return self.content if isinstance(self.content, int) else latents // 2

    def group_posterior(self, posterior: Gaussian) -> Gaussian:
        """Posteriors (..., m, D) of the m images of a group of any size, with shared content."""
        return share_content(posterior, self.content_dimensions(posterior.mean.shape[-1]), self.rule)

    def merged(self, posterior: Gaussian, labels: Tensor | None) -> Gaussian:  # noqa: ARG002
        """Share the content in each group of the batch."""
        return ungrouped(self.group_posterior(in_groups(posterior, self.group_size)))

    def losses(self, step: StepContext) -> Losses:
        """The objective of [1], negated."""
        forward = step.forward
        content = self.content_dimensions(forward.posterior.mean.shape[-1])
        content_kl, style_kl = group_kl(forward.posterior, content, self.group_size)
        rec, kl = forward.reconstruction, content_kl + style_kl
        terms = {"reconstruction": rec, "kl": kl, "elbo": -(rec + kl)}
        kl_parts = {"content_kl": content_kl, "style_kl": style_kl}
        return Losses({AUTOENCODER: rec + self.beta * kl}, terms | kl_parts)


@dataclass(frozen=True)
class MLVAE(_GroupVAE):
    """ML-VAE: images of a group share their content; posteriors are multiplied.

    1/m (sum_i rec_i + beta (sum_i KL_style_i + KL_content)) of a group of m images; [1], equation 5.

    The first `content` dimensions of the code are content. Their posterior is one for the group,
    q(c|x_1 .. x_m) proportional to prod_i q(c|x_i), so KL_content counts once per group. The other
    dimensions, the style, have a posterior for each image. Each image samples its own c from the group's
    posterior; [1], footnote 1, reports that this works as well as one c for all. beta = 1 is [1], and
    content = 0 the VAE.

    All groups share the same factors, and the method gets no other label: `shared` is their names, as in
    "shape,scale", or their number, counted from the first factor of the data set. "class" is the first
    categorical factor: a group is some images of one class, as in [1]. A batch of 64 is 64 groups.

    In the authors' runs on MNIST a group is all images of a digit in a batch of 256. KL_content counts once
    for m images, so large groups favour the content, but a single image then says less about it.

    Differs from [1]: the loss is divided by the number of images and not of groups in a batch, a constant
    factor that does not change the updates of Adam; groups are drawn again at each step and have one size.
    """

    name: ClassVar[str] = "ml_vae"
    citation: ClassVar[str] = """@inproceedings{bouchacourt2018mlvae,
  author = {Diane Bouchacourt and Ryota Tomioka and Sebastian Nowozin},
  title = {Multi-Level Variational Autoencoder: Learning Disentangled Representations from Grouped
           Observations},
  booktitle = {AAAI Conference on Artificial Intelligence},
  year = {2018}
}"""

    @staticmethod
    def rule(posterior: Gaussian) -> Gaussian:
        """The product."""
        return product(posterior)


@dataclass(frozen=True)
class GVAE(_GroupVAE):
    """GVAE: images of a group share their content; posteriors are averaged.

    The objective of `MLVAE`, with another posterior of the content; [2].

    Its mean is the mean of the images' means, and its variance the mean of their variances: the posterior of
    a large group is not narrower than that of a small one. Settings are those of `MLVAE`.

    Differs from [2]: one encoder computes content and style, where [2] has one for each; groups are drawn
    again at each step.
    """

    name: ClassVar[str] = "gvae"
    citation: ClassVar[str] = """@inproceedings{hosoya2019gvae,
  author = {Haruo Hosoya},
  title = {Group-based Learning of Disentangled Representations with Generalizability for Novel Contents},
  booktitle = {International Joint Conference on Artificial Intelligence},
  year = {2019}
}"""

    @staticmethod
    def rule(posterior: Gaussian) -> Gaussian:
        """The average."""
        return average(posterior)
