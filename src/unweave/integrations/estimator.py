"""Methods of unweave as a transformer of scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from unweave.data import Collection
from unweave.data.grid import Card
from unweave.errors import UnweaveError
from unweave.methods.method import Method
from unweave.nn.networks.architectures import architecture_named
from unweave.runs.run import Run
from unweave.runs.train import train

LARGEST_SEED = 2**31 - 1


@final
class DisentanglingTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn codes of images, or of rows of numbers, with a method of unweave.

    X is (n, c, h, w), or (n, features) with an `image_shape` (c, h, w) whose product is the number of
    features. Without an `image_shape`, rows are taken as they are and need the architecture "mlp". Values are
    mapped to [0, 1] by the smallest and the largest number of the training data, and rounded to 256 levels
    while the networks are trained.

    Parameters
    ----------
    method
        The name of a method, or a method with its settings, such as BetaVAE(beta=4).
    image_shape
        (c, h, w) of the images that are the rows of X.
    latents, steps, batch, learning_rate, device
        As in `unweave.train`.
    architecture
        The networks. Default: "released" for images that it takes, else "mlp".
    random_state
        The seed of the run, or a generator that draws it; None is a random seed.

    Attributes
    ----------
    encoder_, decoder_
        Modules of torch; see `Run.modules`.
    losses_
        The last line of the log.

    >>> from unweave import Stream
    >>> X = Stream.of(0).uniform(50, 8)
    >>> DisentanglingTransformer(latents=2, steps=5, random_state=0).fit_transform(X).shape
    (50, 2)
    """

    def __init__(
        self,
        method: str | Method = "beta_vae",
        *,
        image_shape: tuple[int, int, int] | None = None,
        latents: int = 10,
        steps: int = 3_000,
        batch: int = 64,
        learning_rate: float = 1e-3,
        architecture: str | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.image_shape = image_shape
        self.latents = latents
        self.steps = steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.architecture = architecture
        self.device = device
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, N803  scikit-learn's names
        """Train the networks on X; y is not used."""
        rows, shape = self._rows(X, fits=True)
        self.minimum_, self.maximum_ = float(rows.min()), float(rows.max())
        images = np.round(self._scaled(rows) * 255).astype(np.uint8).reshape(-1, *shape)
        self.shape_ = shape
        with TemporaryDirectory() as folder:
            run = self._train(images, Path(folder))
            if run.result["outcome"] != "finished":
                raise UnweaveError(
                    f"training diverged after {run.result['steps']} steps. Use a lower learning_rate than "
                    f"{self.learning_rate:g}."
                )
            self.encoder_, self.decoder_ = (module.double() for module in run.modules())
            self.losses_ = dict(run.result["terms"])
            self._n_features_out = run.spec.latents
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The mean codes of X, (n, latents)."""
        check_is_fitted(self)
        rows, _ = self._rows(X, fits=False)
        images = torch.from_numpy(self._scaled(rows).reshape(-1, *self.shape_))
        with torch.no_grad():
            mean, _ = self.encoder_(images)
        codes: NDArray[np.float64] = mean.numpy()
        return codes

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """What the decoder makes of codes (n, latents): rows (n, features) in the units of the data."""
        check_is_fitted(self)
        codes = np.asarray(X, np.float64)
        if codes.ndim != 2 or codes.shape[1] != self._n_features_out:
            raise UnweaveError(f"codes must be (n, {self._n_features_out}); got {codes.shape}.")
        with torch.no_grad():
            images = self.decoder_(torch.from_numpy(codes)).numpy()
        rows: NDArray[np.float64] = images.reshape(len(codes), -1) * self._range() + self.minimum_
        return rows

    def _rows(self, X: Any, *, fits: bool) -> tuple[NDArray[np.float64], tuple[int, int, int]]:  # noqa: N803
        """X as checked rows, and the shape of the image that a row is."""
        is_images = getattr(X, "ndim", None) == 4
        rows = validate_data(
            self,
            X.reshape(len(X), -1) if is_images else X,
            reset=fits,
            dtype=np.float64,
            ensure_min_samples=2 if fits else 1,
        )
        image_shape = tuple(X.shape[1:]) if is_images else self.image_shape or (1, 1, rows.shape[1])
        if len(image_shape) != 3 or math.prod(image_shape) != rows.shape[1]:
            raise UnweaveError(
                f"image_shape must be (c, h, w) of {rows.shape[1]} features; got {self.image_shape}."
            )
        return rows, image_shape

    def _train(self, images: NDArray[np.uint8], folder: Path) -> Run:
        shape = self.shape_
        nothing_known, card = np.empty((len(images), 0)), Card("arrays", "not known", "")
        data = Collection("arrays", (), shape, nothing_known, images.__getitem__, card, "arrays")
        suitable = "released" if architecture_named("released").sizes.accepts(shape) else "mlp"
        return train(
            self.method,
            data,
            out=folder,
            device=self.device,
            progress=False,
            seed=int(check_random_state(self.random_state).randint(LARGEST_SEED)),
            latents=self.latents,
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            architecture=self.architecture or suitable,
        )

    def _range(self) -> float:
        return (self.maximum_ - self.minimum_) or 1.0

    def _scaled(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in [0, 1]; what lies outside of the training data is clipped."""
        return np.clip((rows - self.minimum_) / self._range(), 0, 1)
