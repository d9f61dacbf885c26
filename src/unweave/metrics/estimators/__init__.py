"""Estimators that several metrics use: boosted trees, linear and logistic models, posteriors."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
