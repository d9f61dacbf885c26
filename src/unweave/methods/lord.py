"""LORD [1]: codes of classes and images are learned directly, and then encoders that predict them.

[1] Gabbay, Hoshen: Demystifying inter-class disentanglement, ICLR 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.method import AUTOENCODER, Adam, Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels
from unweave.nn.distributions.likelihood import likelihood_named, reconstruction_loss
from unweave.nn.layers import as_numbers
from unweave.nn.networks.perceptual import Perceptual, distance
from unweave.nn.networks.tables import CodeTables
from unweave.nn.networks.two_parts import Part, TwoPartAutoencoder, part_size
from unweave.nn.schedule import CosineStages

CODES = "codes"

# Learning rates of the authors' code at the beginning of each stage; all end at LAST_RATE.
GENERATOR_RATE, CODE_RATE, ENCODER_RATE, LAST_RATE = 3e-4, 3e-3, 1e-4, 1e-5


@dataclass(frozen=True)
class LORD(Method):
    """LORD: learns class and content codes of images first, then encoders for them.

    First d(G(e_y, c_i + noise), x_i) + content_decay |c_i|^2, then encoders that predict these codes.

    In the first stage the decoder G, a code e_y for each class and a code c_i for each labelled image x_i of
    class y are learned. All images of a class share one e_y, so it holds nothing else of them. Noise, normal
    with deviation content_std, and decay keep the class out of c_i. The second stage begins after the
    share `second_stage` of the steps. It trains G and two encoders, which apply to any image, by
    d(G(E_y(x_i), E_c(x_i)), x_i) + encoder_weight (|E_y(x_i) - e_y|^2 + |E_c(x_i) - c_i|^2), the squares as
    means over dimensions. d is rec / N, N pixels, plus a perceptual distance: "laplacian", of a Laplacian
    pyramid, needs no file; "vgg", as in [1], needs the weights of VGG-16.

    The class code is the first `class_latents` dimensions. (In [1] content is everything but the class; here
    the content of a swap is the class code.) The class is the combination of values of `class_factors`: names
    with commas between them; "class" is the first categorical factor. Training uses a fixed set of `points`
    images. With decoder = "adain" the class code modulates the layers of G, as in [1], and the architecture's
    decoder is not used.

    Learning rates are those of the authors' PyTorch code, not the run's: 3e-4 for G and 3e-3 for the codes in
    the first stage, 1e-4 for encoders and G in the second; each falls to 1e-5 by a cosine. Adam has beta1
    0.5. Weights are those of that code too. Codes of fewer dimensions than the authors' (256 and 128) are
    multiples of what Adam changes, so that their length grows as fast.

    Differs from [1]: by default the class code is an input of G next to the content. Without the weights of
    VGG-16 d is another distance. rec replaces |x - G|. One Adam trains G in both stages; the authors start a
    second one. The penalty is that of the code without noise, which has the same gradient on average.
    """

    content_std: Setting = 1.0
    """Standard deviation of the noise on content codes."""
    content_decay: Setting = 1e-4
    """Weight of the squared content codes."""
    encoder_weight: Setting = 10.0
    """Weight of the prediction errors in the second stage."""
    second_stage: Setting = 0.5
    """Share of the steps after which the second stage begins, more than 0 and less than 1."""
    perceptual: Perceptual = "laplacian"
    """Perceptual distance: laplacian or vgg."""
    class_latents: Part = "half"
    """Dimensions of the class code, the first ones: a number, or half of the latents."""
    class_factors: str = "class"
    """Names of the factors that make up the class, with commas between them; class: the first categorical
    factor; first: the first factor."""
    points: int = 10_000
    """Number of training images."""
    decoder: Literal["concatenated", "adain"] = "concatenated"
    """concatenated: both codes are inputs of the architecture's decoder; adain: the class code modulates
    the decoder's layers, as in the paper."""

    name: ClassVar[str] = "lord"
    has_prior: ClassVar[bool] = False
    added: ClassVar[frozenset[str]] = frozenset({"decoder"})
    own_networks: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"points": 1}
    strength: ClassVar[str | None] = "content_decay"
    citation: ClassVar[str] = """@inproceedings{gabbay2020lord,
  author = {Aviv Gabbay and Yedid Hoshen},
  title = {Demystifying Inter-Class Disentanglement},
  booktitle = {International Conference on Learning Representations},
  year = {2020}
}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.second_stage, Tensor) and not 0 < self.second_stage < 1:
            raise UnweaveError(
                "second_stage of lord, the share of the steps after which encoders are trained, must be more "
                f"than 0 and less than 1; got {self.second_stage}. The default is 0.5."
            )

    @property
    def sampling(self) -> Labels:
        """A fixed set of images whose classes are known."""
        return Labels(self.points, Chosen(self.class_factors), unlabelled=False)

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoders and decoder, and the codes, which stay as they are in the second stage."""
        networks = self._stages(GENERATOR_RATE, (GENERATOR_RATE, LAST_RATE), (ENCODER_RATE, LAST_RATE))
        codes = self._stages(CODE_RATE, (CODE_RATE, LAST_RATE), (0.0, 0.0))
        return (
            Player(AUTOENCODER, self._autoencoder, Adam(GENERATOR_RATE, beta1=0.5), schedule=networks),
            Player(CODES, self._tables, Adam(CODE_RATE, beta1=0.5), schedule=codes),
        )

    @property
    def stochastic(self) -> bool:
        """False: codes are deterministic."""
        return False

    def content_dimensions(self, latents: int) -> int:
        """The dimensions of the class code."""
        return part_size(self.class_latents, latents)

    def losses(self, step: StepContext) -> Losses:
        """Both stages are computed at every step; the step decides which of them is the objective."""
        model, labelled = step.network(AUTOENCODER, TwoPartAutoencoder), step.labelled
        images = as_numbers(labelled.images)
        learned_class, learned_content = step.networks[CODES](labelled.labels, labelled.index)
        noise = step.draws.normal("noise", *learned_content.shape[-2:])
        noisy = learned_content + _per_run(self.content_std) * noise
        decoded = model.decoder(torch.cat([learned_class, noisy], dim=-1))
        from_codes = self._distance(decoded, images, step)
        size = learned_content.square().sum(-1).mean(-1)
        first = from_codes + self.content_decay * size

        class_code, image_code = (part.mean for part in model.encode_parts(images))
        reconstructed = model.decoder(torch.cat([class_code, image_code], dim=-1))
        encoded = self._distance(reconstructed, images, step)
        class_error = (class_code - learned_class.detach()).square().mean((-2, -1))
        image_error = (image_code - learned_content.detach()).square().mean((-2, -1))
        second = encoded + self.encoder_weight * (class_error + image_error)

        begun = torch.as_tensor(step.step >= self.second_stage * step.steps).to(first)
        players = {AUTOENCODER: (1 - begun) * first + begun * second, CODES: (1 - begun) * first}
        terms = {
            "reconstruction": reconstruction_loss(reconstructed.detach(), images, step.likelihood),
            "distance": from_codes,
            "content_size": size,
            "encoded_distance": encoded,
            "class_error": class_error,
            "content_error": image_error,
            "stage": 1 + begun.expand_as(first),
        }
        return Losses(players, terms)

    def _distance(self, logits: Tensor, images: Tensor, step: StepContext) -> Tensor:
        """(P,): d. The gradient of the likelihood does not vanish where a sigmoid is saturated and wrong."""
        rec = reconstruction_loss(logits, images, step.likelihood) / math.prod(images.shape[-3:])
        return rec + distance(likelihood_named(step.likelihood).mean(logits), images, self.perceptual)

    def _stages(self, rate: float, first: tuple[float, float], second: tuple[float, float]) -> CosineStages:
        """The schedule of learning rates that fall in each stage from one number to another."""
        shares = [(begin / rate, end / rate) for begin, end in (first, second)]
        return CosineStages(self.second_stage, *shares)

    def _autoencoder(self, plan: Blueprint) -> TwoPartAutoencoder:
        first = self.content_dimensions(plan.latents)
        return TwoPartAutoencoder(
            plan.streams,
            plan.shape,
            plan.latents,
            first,
            plan.architecture,
            plan.likelihood,
            modulated=self.decoder == "adain",
        )

    def _tables(self, plan: Blueprint) -> CodeTables:
        first = self.content_dimensions(plan.latents)
        return CodeTables(plan.streams, plan.label_sizes, self.points, first, plan.latents - first)


def _per_run(setting: Setting) -> Setting:
    """One number, or one number per run, (P, 1, 1), for codes (P, B, D)."""
    return setting[:, None, None] if isinstance(setting, Tensor) else setting
