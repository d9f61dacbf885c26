"""The part of the table of metrics about blocks of codes, such as content and style."""

from __future__ import annotations

from unweave.metrics import citations
from unweave.metrics.block_mig import block_mig
from unweave.metrics.block_separation import block_separation
from unweave.metrics.metric import Metric
from unweave.metrics.swap_consistency import swap_consistency

_PROBE = "Knowledge is a lower bound: a larger probe, or more points, might find more."
_ASSIGNMENT = (
    "It depends on which factors a block should hold. The protocol states them, as factors:shape|scale+x."
)
_NOISE = (
    "Means of q(z|x) can show what is below the noise of q(z|x), which no decoder can use; samples do not."
)
_ONE_BLOCK = "How codes are laid out within a block is not seen: a rotation within a block hardly changes it."

BLOCKS: tuple[Metric, ...] = (
    Metric(
        "block_separation",
        block_separation,
        "block_separation[mlp128-128,adam2000]",
        "blocks+factors",
        "How much more does each block of codes know about its own factors than other blocks do?",
        citations.GABBAY2020,
        frozenset({"scale"}),
        range=(-1.0, 1.0),
        flaws=(_ASSIGNMENT, _PROBE, _NOISE, _ONE_BLOCK),
    ),
    Metric(
        "block_mig",
        block_mig,
        "block_mig[mlp128-128,adam2000]",
        "blocks+test",
        "Is each factor held by one block of codes only?",
        citations.CHEN2018,
        frozenset({"scale"}),
        flaws=(
            "It does not ask which block holds a factor: all factors in one block score 1.",
            _PROBE,
            _NOISE,
            _ONE_BLOCK,
        ),
    ),
    Metric(
        "swap_consistency",
        swap_consistency,
        "swap_consistency[cnn4000,pairs2000]",
        "swaps",
        "Do images of swapped blocks of codes show the factors that they should?",
        citations.GABBAY2020,
        frozenset({"sign", "scale", "dead"}),
        flaws=(
            "The judge learned from images of the data set, so it may misread very blurred decoded images.",
            _ASSIGNMENT,
            "Judges that were trained on different devices differ slightly.",
        ),
    ),
)
