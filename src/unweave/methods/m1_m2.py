"""M1+M2 [1]: M2 on the codes of a VAE that is trained first.

[1] Kingma, Rezende, Mohamed, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unweave.data.supervision import Chosen
from unweave.errors import UnweaveError
from unweave.methods.m1 import CITATION, most_likely
from unweave.methods.m2 import bounds_of, check_classes
from unweave.methods.method import Blueprint, Losses, Method, Player, Setting, StepContext
from unweave.methods.sampling import Labels, Sampling, label_dimensions
from unweave.methods.step import network_of
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.feature_model import FeatureModel

VAE, MODEL = "vae", "model"


class FeatureVAE(nn.Module):
    """M1: the architecture's encoder and decoder, with a code h of its own size."""

    def __init__(self, plan: Blueprint, features: int) -> None:
        super().__init__()
        own = replace(plan, latents=features)
        self.encoder, self.decoder = own.encoder(), own.decoder()


@dataclass(frozen=True)
class M1M2(Method):
    """M1+M2: trains a VAE first, and then M2 on its codes.

    First rec + KL of a VAE with code h; then M2 with h ~ q(h|x) in place of the image; [1], section 2.3.

    The model is p(y) p(z) p(h|y,z) p(x|h). The second stage begins after the share `second_stage` of the
    steps. It trains q(y|h), q(z|h,y) and a Gaussian p(h|y,z), with the objective and alpha of `m2`, and no
    longer the VAE. h has `features` dimensions. The code has one dimension for each labelled factor, first,
    and z in the others, as in M2.

    Differs from [1]: the authors' code drops dimensions of h whose means have a standard deviation below 0.1;
    here all are kept.
    """

    alpha: Setting = 1.0
    """Weight of the classification of labelled images; 0.1 in the paper."""
    second_stage: Setting = 0.5
    """Share of the steps after which M2 is trained."""
    features: int = 50
    """Dimensions of the features that M1 learns and M2 models."""
    factors: str = "class"
    """The labelled factors: names with commas between them, class (the first categorical factor), first
    or all."""
    labels: int = 1000
    """Number of labelled images."""

    name: ClassVar[str] = "m1_m2"
    own_networks: ClassVar[bool] = True
    run_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 3e-4}  # of the authors of [1]
    least: ClassVar[Mapping[str, int]] = {"labels": 1, "features": 1}
    strength: ClassVar[str | None] = "alpha"
    citation: ClassVar[str] = CITATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.second_stage, Tensor) and not 0 < self.second_stage < 1:
            raise UnweaveError(
                "second_stage of m1_m2, the share of the steps after which M2 is trained, must be more than "
                f"0 and less than 1; got {self.second_stage}. The default is 0.5."
            )

    @property
    def players(self) -> tuple[Player, ...]:
        """M1, and later M2."""
        return (
            Player(VAE, lambda plan: FeatureVAE(plan, self.features)),
            Player(MODEL, self._model, starts=self.second_stage, precise=True),
        )

    @property
    def sampling(self) -> Sampling:
        """Images, and a batch with labels of the chosen factors."""
        return Labels(self.labels, Chosen(self.factors))

    def content_dimensions(self, latents: int) -> int:  # noqa: ARG002
        """One for each labelled factor."""
        return label_dimensions(self.factors)

    def encode(self, networks: Mapping[str, nn.Module], images: Tensor) -> Gaussian:
        """The code of images: labels, and z, at the mean of q(h|x)."""
        vae, model = network_of(networks, VAE, FeatureVAE), network_of(networks, MODEL, FeatureModel)
        return model.code_of(vae.encoder.encode(images).mean)

    def decode(self, networks: Mapping[str, nn.Module], codes: Tensor) -> Tensor:
        """Decoder output at the mean of p(h|y,z)."""
        vae, model = network_of(networks, VAE, FeatureVAE), network_of(networks, MODEL, FeatureModel)
        return vae.decoder.decode(model.mean_of(codes))

    def predict(self, networks: Mapping[str, nn.Module], images: Tensor) -> Tensor:
        """(P, B, k): the most likely value of each labelled factor by q(y|h), at the mean of q(h|x)."""
        vae, model = network_of(networks, VAE, FeatureVAE), network_of(networks, MODEL, FeatureModel)
        mean = vae.encoder.encode(images).mean
        return most_likely([q.log_probabilities for q in model.label_posteriors(mean, mean)])

    def losses(self, step: StepContext) -> Losses:
        """The objectives of the VAE and, once it has started, of M2."""
        vae, images = step.network(VAE, FeatureVAE), step.batch.images
        posterior = vae.encoder.encode(images)
        codes = posterior.sample(step.draws.normal("noise", *posterior.mean.shape[-2:]))
        reconstruction = vae.decoder.reconstruction(codes, images, step.likelihood)
        kl = posterior.kl().mean(-1)
        begun = torch.as_tensor(step.step >= self.second_stage * step.steps).to(kl)
        players = {VAE: (1 - begun) * (reconstruction + kl)}
        terms = {"reconstruction": reconstruction, "kl": kl, "elbo": -(reconstruction + kl)}
        of_m2 = dict.fromkeys(("code_elbo", "labelled_elbo", "classification"), torch.zeros_like(kl))
        if MODEL in step.networks:
            with torch.no_grad():
                labelled_posterior = vae.encoder.encode(step.labelled.images)
            noise = step.draws.normal("labelled noise", *labelled_posterior.mean.shape[-2:])
            model = step.network(MODEL, FeatureModel)
            bounds = bounds_of(model, codes.detach(), labelled_posterior.sample(noise), step)
            players[MODEL] = bounds.objective(self.alpha, self.labels, step.data_size)
            of_m2 = {
                "code_elbo": -(bounds.reconstruction + bounds.kl) * begun,
                "labelled_elbo": -bounds.labelled * begun,
                "classification": bounds.classification * begun,
            }
        return Losses(players, terms | of_m2)

    def _model(self, plan: Blueprint) -> FeatureModel:
        check_classes(self.name, plan.label_sizes)
        return FeatureModel(plan.streams, self.features, plan.latents, plan.label_sizes)
