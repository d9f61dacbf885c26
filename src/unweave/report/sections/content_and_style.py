"""The section on the question: are content and style separated."""

from __future__ import annotations

from functools import partial

from unweave.report.figures import pictures
from unweave.report.names import counted
from unweave.report.sections.section import Drawing, Material, Section

QUESTION = "Are content and style separated?"


def content_and_style(material: Material) -> Section:
    """What becomes of an image that takes its content from one and its style from another."""
    draw = partial(pictures.reconstructions, material.swaps)
    return Section(
        "swaps",
        QUESTION,
        f"Pictures of {counted(len(material.swaps), 'run')} whose codes have two parts; they are examples, "
        "and no effect is measured here. Each row has the content of its first image, each column the style "
        "of the image above.",
        (Drawing("swaps", "Content of one image, style of another.", draw),),
    )
