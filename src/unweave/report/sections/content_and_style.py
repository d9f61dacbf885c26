"""The section on the question: do content and style come apart."""

from __future__ import annotations

from functools import partial

from unweave.report.figures import pictures
from unweave.report.sections.section import Drawing, Material, Section


def content_and_style(material: Material) -> Section:
    """What becomes of an image that takes its content from one and its style from another."""
    draw = partial(pictures.reconstructions, material.swaps)
    return Section(
        "swaps",
        "Do content and style come apart?",
        f"{len(material.swaps)} runs whose codes have two parts: in each row the content of the first image, "
        "in each column the style of the image above.",
        (Drawing("swaps", "Content of one image, style of another.", draw),),
    )
