"""The section on the question: what do models keep of an image."""

from __future__ import annotations

from functools import partial

from unweave.report.figures import pictures
from unweave.report.names import counted
from unweave.report.sections.section import Drawing, Material, Section

QUESTION = "What do models keep of an image?"


def reconstructions(material: Material) -> Section | str:
    """What is left of an image."""
    if not material.sheets:
        return "there are no run folders with pictures of reconstructions"
    draw = partial(pictures.reconstructions, material.sheets)
    return Section(
        "reconstructions",
        QUESTION,
        f"Pictures of {counted(len(material.sheets), 'run')}: images, and what they become after encoding "
        "and decoding. They are examples, and no effect is measured here.",
        (Drawing("reconstructions", "Images and reconstructions, in turns.", draw),),
    )
