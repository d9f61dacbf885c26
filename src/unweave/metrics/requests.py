"""What a metric may ask for, by the word in `Metric.needs`.

This table says what the function of a metric is called with and what the protocol states about it.
`unweave.evaluation.requests` says how each of these is gathered for an evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from unweave.errors import UnweaveError

Needs: TypeAlias = Literal[
    "codes",
    "codes+test",
    "codes+test+periods",
    "representation",
    "interventions",
    "posterior",
    "likelihood",
    "density",
    "unsupervised",
    "images",
    "blocks",
    "blocks+test",
    "blocks+factors",
    "swaps",
    "orbits",
]


class Conditions(NamedTuple):
    """What the data of a score are like, as far as scores depend on it. The defaults are as published."""

    counted: int = 10_000  # points that codes are counted on
    train: int = 10_000  # points that something is fitted on
    test: int = 5_000  # points that it is tested on
    drawn: int = 10_000  # images whose likelihood is computed
    rows: int | None = None  # among which matching ones were looked for, where no others can be encoded
    disjoint: bool = False  # whether test points show other images than training points
    standardised: bool = False  # whether metrics that depend on the scale of codes get standardised ones
    part: str = ""  # of restricted data, where it is not what was trained on: all or held_out
    blocks: str = ""  # which factors the blocks of codes should hold, as `block_word` states it
    readout: str = ""  # which directions codes were read along, such as read:pca10-n10000-seed0


PUBLISHED = Conditions()
SIZES = ("counted", "train", "test", "drawn")  # the conditions that are numbers of points


@dataclass(frozen=True)
class Inputs:
    """What the function of a metric gets, and what the protocol says about it."""

    summary: str
    arguments: tuple[str, ...]  # passed by position, in this order
    options: tuple[str, ...] = ()  # passed by name
    needs_factors: bool = True
    of_codes: bool = True  # it measures codes, so means and samples of q(z|x) score differently
    uses: tuple[str, ...] = ("counted",)  # the conditions that scores depend on

    def protocol_words(self, conditions: Conditions) -> list[str]:
        """What the protocol says about the data; nothing where they are as in the published study."""
        stated = {name: getattr(conditions, name) for name in self.uses}
        other = {name: value for name, value in stated.items() if value != getattr(PUBLISHED, name)}
        sizes = [str(value) for name, value in stated.items() if name in SIZES]
        words = ["n" + "+".join(sizes)] if any(name in other for name in SIZES) else []
        if "rows" in other:
            words.append(f"rows{conditions.rows}")
        if "disjoint" in other:
            words.append("disjoint")
        if "blocks" in other:
            words.append(conditions.blocks)
        if conditions.part:
            words.append(f"on:{conditions.part}")
        if conditions.readout:
            words.append(conditions.readout)
        return words


def block_word(columns: Mapping[str, Sequence[int]], names: Sequence[str]) -> str:
    """The word of a protocol for the factors that blocks should hold, whatever the blocks are called.

    Groups are in the order of the factors. Characters with a meaning in protocols become "_" in the names.

    >>> block_word({"style": [0, 2], "content": [1]}, ["size", "shape", "x, y"])
    'factors:size+x__y|shape'
    """
    plain = [re.sub(r"[^\w.-]", "_", name) for name in names]
    groups = sorted(sorted(held) for held in columns.values() if held)
    return f"factors:{'|'.join('+'.join(plain[j] for j in held) for held in groups)}" if groups else ""


INPUTS: dict[Needs, Inputs] = {
    "codes": Inputs("codes and factors", ("codes", "factors")),
    "codes+test": Inputs(
        "codes and factors, and test data or a third of them",
        ("codes", "factors"),
        options=("test",),
        uses=("train", "test", "disjoint"),
    ),
    "codes+test+periods": Inputs(
        "codes and factors, test data or a third of them, and the periods of circular factors",
        ("codes", "factors", "periods"),
        options=("test",),
        uses=("train", "test", "disjoint"),
    ),
    "representation": Inputs(
        "a Representation: codes of any factors it asks for", ("representation",), uses=("rows",)
    ),
    "interventions": Inputs(
        "a Representation: codes of any factors it asks for, some ten thousand",
        ("representation",),
        uses=("rows",),
    ),
    "posterior": Inputs(
        "means and log variances of q(z|x), and factors",
        ("codes", "log_var", "factors"),
        of_codes=False,
        uses=("rows",),
    ),
    "likelihood": Inputs(
        "a run: how likely images are, and means and log variances of q(z|x)",
        ("losses", "codes", "log_var"),
        needs_factors=False,
        of_codes=False,
        uses=("drawn",),
    ),
    "density": Inputs(
        "a run of a flow, such as glow: bits per dimension of images",
        ("losses",),
        needs_factors=False,
        of_codes=False,
    ),
    "unsupervised": Inputs("codes only", ("codes",), needs_factors=False),
    "images": Inputs("codes and factors, and the images they belong to", ("codes", "factors", "images")),
    "blocks": Inputs(
        "codes and factors, and which codes form a block, such as content and style",
        ("codes", "factors", "blocks"),
    ),
    "blocks+test": Inputs(
        "codes and factors, test data or a third of them, and which codes form a block",
        ("codes", "factors", "blocks"),
        options=("test",),
        uses=("train", "test", "disjoint"),
    ),
    "blocks+factors": Inputs(
        "codes, factors, test data or a third of them, and the codes and factors of each block",
        ("codes", "factors", "blocks", "block_factors"),
        options=("test", "factor_names"),
        uses=("train", "test", "disjoint", "blocks"),
    ),
    "swaps": Inputs(
        "a run: codes and factors, the codes and factors of each block, and a judge of decoded images",
        ("codes", "factors", "blocks", "block_factors", "judge"),
        options=("factor_names",),
        uses=("counted", "blocks"),
    ),
    "orbits": Inputs(
        "codes of all values of circular factors, other factors fixed, and which factors are circular",
        ("representation", "circular"),
        options=("categorical", "factor_names"),
        uses=("rows",),
    ),
}


def check_needs(name: str, needs: object) -> None:
    """Refuse a word that is not in the table; `name` is the metric's."""
    if needs not in INPUTS:
        raise UnweaveError(
            f"a metric needs one of {', '.join(INPUTS)}; {name} says needs={needs!r}. Use one of these words."
        )
