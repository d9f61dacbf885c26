"""The part of the table of metrics about the structure of factors: symmetries and hierarchies."""

from __future__ import annotations

from unweave.metrics import citations
from unweave.metrics.d_lsbd import d_lsbd
from unweave.metrics.equivariance import equivariance
from unweave.metrics.metric import Change, Metric, Mixed
from unweave.metrics.r4 import r4, r4_mixed

_CIRCULAR = "Only circular factors count; codes of other factors may be anything."
_UNCHANGED: frozenset[Change] = frozenset({"permutation", "sign", "rotation", "copies", "dead", "row order"})

SYMMETRY: tuple[Metric, ...] = (
    Metric(
        "d_lsbd",
        d_lsbd,
        "d_lsbd[orbits200,frequencies10]",
        "orbits",
        "Does a circular factor turn codes in a plane? Distance from linear symmetry-based disentanglement.",
        citations.TONNAER2022,
        _UNCHANGED,
        higher_is_better=False,
        flaws=(
            _CIRCULAR,
            "Every combination of the other factors has a plane of its own, so codes that hold the angle of "
            "different shapes in different places score well. Read `d_lsbd.shared` too.",
            "Orbits are scaled, so codes that hardly depend on the factor can score well: images change "
            "smoothly along an orbit, and so do codes of untrained networks. Read `equivariance` too.",
            "The two components are scaled to the same variance: an ellipse scores as well as a circle.",
            "With few values, chance is well below 1: three values always score 0. Read `d_lsbd.chance`.",
            "A code that runs along a line scores about 0.8, not 1: it is one of the two coordinates.",
        ),
        factors_as="positions",
        depends_on_scale=True,
    ),
    Metric(
        "equivariance",
        equivariance,
        "equivariance[orbits200,linear]",
        "orbits",
        "How much of the change of codes under shifts of a circular factor does a linear map explain?",
        citations.TONNAER2022,
        _UNCHANGED,
        flaws=(
            _CIRCULAR,
            "It is no measure of disentanglement: all codes together are mapped.",
            "Codes of large variance count most.",
            "A code that runs along a line is right up to the seam, so it scores about 0.6, not 0.",
        ),
        factors_as="positions",
        depends_on_scale=True,
    ),
    Metric(
        "r4",
        r4,
        "r4[trees100,points1500]",
        "codes+test",
        "Is each factor an invertible function of one code, where the factor is active?",
        citations.ROSS2021,
        frozenset({"permutation", "copies", "dead"}),
        flaws=(
            "A code may hold several factors of a hierarchy, one where another is not active; this costs "
            "nothing.",
            "A circular factor has no invertible function to one code, so it cannot score 1.",
            "Accuracies and R^2 are multiplied, though they have different scales.",
            "Codes of at most 10 whole numbers count as classes, so scaling them changes the score.",
        ),
        mixed=Mixed(r4_mixed),
    ),
)
