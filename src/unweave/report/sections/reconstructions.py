"""The section on the question: what do models keep of an image."""

from __future__ import annotations

from functools import partial

from unweave.report.figures import pictures
from unweave.report.sections.section import Drawing, Material, Section


def reconstructions(material: Material) -> Section | str:
    """What is left of an image."""
    if not material.sheets:
        return "there are no run folders with pictures of reconstructions"
    draw = partial(pictures.reconstructions, material.sheets)
    return Section(
        "reconstructions",
        "What do models keep of an image?",
        f"{len(material.sheets)} runs: images, and what they become after encoding and decoding.",
        (Drawing("reconstructions", "Images and reconstructions, in turns.", draw),),
    )
