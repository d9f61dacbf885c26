"""Numbers that a metric gives for any run, but that mean nothing for the codes of some methods.

The evidence lower bound needs codes that are drawn from q(z|x), and a prior. Deterministic codes state a
standard deviation of 0.01, which is a convention, and so would be their divergence from a prior. Without a
prior nothing sets the scale of codes either, so active ones cannot be counted. The reconstruction remains.
"""

from __future__ import annotations

from typing import Any

from unweave.evaluation.likelihoods import Meaningless
from unweave.metrics.metric import Measured

BOUND, ACTIVE = ("elbo.kl", "elbo.elbo"), "elbo.active"


def meaningless_numbers(run: Any) -> Meaningless:
    """The numbers to leave out for a run."""
    method = run.spec.method
    without_prior = len(method.codes_without_prior(run.spec.latents))
    if without_prior:
        part = "" if without_prior == run.spec.latents else f"{without_prior} of the "
        return dict.fromkeys((*BOUND, ACTIVE), f"{part}codes of {method.name} have no standard normal prior")
    if not method.has_divergence:
        reason = f"codes of {method.name} are not drawn from q(z|x), so they have no KL divergence"
        return dict.fromkeys(BOUND, reason)
    return {}


def without_meaningless(measured: Measured, meaningless: Meaningless) -> Measured:
    """What was measured, without these numbers."""
    kept = {name: value for name, value in measured.numbers.items() if name not in meaningless}
    return measured._replace(numbers=kept)
