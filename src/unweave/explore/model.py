"""What the explorer needs of a model, and a trained run as such a model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import Images
from unweave.display.pictures import to_bytes
from unweave.evaluation.posteriors import Posterior
from unweave.evaluation.score_store import kept_scores
from unweave.methods import settings_of
from unweave.runs.run import Run
from unweave.runs.views import content_of


@dataclass(frozen=True)
class ModelCard:
    """What the page says about a model: its id in addresses (hexadecimal), its name, and where it is from.

    `method` is the heading. `seed` and `steps` are None where they are not known.
    """

    id: str
    name: str
    method: str
    data: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    steps: int | None = None


def own_card(name: str, data: str) -> ModelCard:
    """The card of a model that is not a run; its id follows from its name."""
    return ModelCard(hashlib.blake2b(name.encode(), digest_size=8).hexdigest(), name, name, data)


class ExploredModel(Protocol):
    """A model of images (n, c, h, w) with codes (n, d): a trained run, or a user's own.

    `has_prior` is whether codes have a standard normal prior: latents are then ordered by their KL divergence
    from it, which needs log variances. `content` is how many of the first latents are content; 0 if content
    and style are one. `has_decoder` is false where `decode` cannot be called.
    """

    @property
    def card(self) -> ModelCard:
        """What the page says about the model."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image."""

    @property
    def latents(self) -> int:
        """The number of latents, d."""

    @property
    def content(self) -> int:
        """How many of the first latents are content."""

    @property
    def has_prior(self) -> bool:
        """Whether codes have a standard normal prior."""

    @property
    def has_decoder(self) -> bool:
        """Whether codes can be decoded."""

    @property
    def scores(self) -> Mapping[str, float]:
        """Known scores by name."""

    def posterior(self, images: Images) -> Posterior:
        """Means and log variances of the codes of uint8 images."""

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Mean images of codes, as bytes."""


@runtime_checkable
class MixesLevels(Protocol):
    """A model whose codes enter the decoder at several levels."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Their names, the coarsest first; empty without levels."""

    def mix(self, coarse: Images, fine: Images, levels: int) -> Images:
        """Images of all pairs, as bytes: the first levels from `coarse`, the others from `fine`."""


@dataclass(frozen=True, eq=False)
class RunModel:
    """A trained run as the explorer's model."""

    run: Run
    has_decoder: bool = True

    @cached_property
    def card(self) -> ModelCard:
        """The run's spec in words."""
        spec = self.run.spec
        return ModelCard(
            id=spec.id,
            name=self.run.path.name,
            method=spec.method.name,
            data=spec.data,
            settings=settings_of(spec.method),
            seed=spec.seed,
            steps=self.run.result.get("steps"),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image."""
        return self.run.shape

    @property
    def latents(self) -> int:
        """The number of latents."""
        return self.run.spec.latents

    @property
    def content(self) -> int:
        """How many of the first latents are content."""
        return content_of(self.run)

    @property
    def has_prior(self) -> bool:
        """Whether the method draws codes and gives them a prior."""
        return self.run.spec.method.has_divergence

    @property
    def scores(self) -> Mapping[str, float]:
        """The finite scores of mean codes in the run's folder."""
        of_means = [record for record in kept_scores(self.run.folder) if record.representation == "mean"]
        known = {name: value for record in of_means for name, value in record.items()}
        return {name: value for name, value in known.items() if math.isfinite(value)}

    def posterior(self, images: Images) -> Posterior:
        """Means and log variances of the codes of images."""
        posterior = self.run.posterior(images)
        return Posterior(posterior.mean.cpu().numpy(), posterior.log_var.cpu().numpy())

    def decode(self, codes: NDArray[np.float32]) -> Images:
        """Mean images of codes, as bytes."""
        return to_bytes(self.run.decode(codes))

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of the code, the coarsest first; empty without levels."""
        return self.run.levels

    def mix(self, coarse: Images, fine: Images, levels: int) -> Images:
        """Images of all pairs, as bytes: the first levels from `coarse`, the others from `fine`."""
        return to_bytes(self.run.mix(coarse, fine, levels))
