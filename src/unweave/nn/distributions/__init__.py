"""Densities and divergences: Gaussian, categorical, likelihoods of images, distances to a prior."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
