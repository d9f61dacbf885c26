"""Abstract visual reasoning: how quickly a network learns to solve Raven-like matrices from codes."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names
from unweave.reasoning.curves import Check, Curve, Reasoning
from unweave.reasoning.reason import baselines, reason
from unweave.reasoning.spec import ReasoningSpec

__all__ = ["Check", "Curve", "Reasoning", "ReasoningSpec", "baselines", "reason"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
