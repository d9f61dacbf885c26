"""A run or a user's model as one file that needs no server: its page, its decoder and its numbers."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from unweave.display.theme import BUTTON, theme_script
from unweave.errors import UnweaveError
from unweave.explore.api.run import intervention
from unweave.explore.model import RunModel
from unweave.explore.own_model import OwnModel
from unweave.explore.program import Program, program_of, program_of_module
from unweave.explore.run_view import CONTENTS, STYLES, RunView
from unweave.explore.scripts import bundle, pages
from unweave.files import write_text
from unweave.streams import Stream

EXAMPLES = CONTENTS + STYLES  # true images to start from and to swap, for want of an encoder
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
<script>
{theme}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<strong>unweave</strong> <span id="where">{title}</span>
{button}
</header>
<main id="main" tabindex="-1"></main>
<noscript><p class="message">This page needs JavaScript.</p></noscript>
<script type="application/json" id="record">{record}</script>
<script type="module">
{script}</script>
</body>
</html>
"""


def export_page(view: RunView, target: Path) -> None:
    """Write the page of a run or model with its decoder inside; about 2 MB for the published networks."""
    if target.is_dir():
        raise UnweaveError(f"{target} is a folder. Give the name of a file, such as {target / 'page.html'}.")
    text = PAGE.format(
        policy=POLICY,
        title=html.escape(view.model.card.name),
        theme=theme_script(),
        button=BUTTON,
        style=pages().joinpath("style.css").read_text(encoding="utf-8"),
        # "</script>" in a name would end the record.
        record=json.dumps(_record(view), allow_nan=False).replace("<", "\\u003c"),
        script=bundle("run/offline.js"),
    )
    write_text(target, text)


def _record(view: RunView) -> dict[str, Any]:
    program = _program(view)
    first_factors = view.description["first_factors"]
    return {
        "run": view.description,
        "decoder": program.words,
        "weights": _base64(program.numbers),
        "examples": _examples(view),
        "interventions": [
            intervention(view, np.array(first_factors), j) for j in range(len(first_factors or []))
        ],
    }


def _program(view: RunView) -> Program:
    """How the page decodes; only PyTorch says how its modules compute."""
    name = view.model.card.name
    if view.model.has_decoder and isinstance(view.model, RunModel):
        return program_of(view.model.run)
    decoder = view.model.decoder if isinstance(view.model, OwnModel) else None
    if isinstance(decoder, nn.Module):
        return program_of_module(decoder, view.model.latents, name)
    kind = "no decoder" if decoder is None else f"a decoder of the type {type(decoder).__name__}"
    raise UnweaveError(
        f"the page of {name} cannot be exported, because it has {kind}: an exported page computes what a "
        "torch module does. Give a torch module as the decoder, or serve the page with unweave explore."
    )


def _examples(view: RunView) -> list[dict[str, Any]]:
    """True images and their codes; the first is the one that the page starts from."""
    if view.examples is not None:
        images, codes = view.examples[:EXAMPLES], view.description["example_codes"][:EXAMPLES]
    elif view.truth is not None:
        drawn = view.truth.sample_factors(EXAMPLES - 1, Stream.of(0).child("examples"))
        factors = np.concatenate([[view.description["first_factors"]], drawn])
        images, codes = view.observe(factors), view.encode(factors).mean.astype(float).round(4).tolist()
    else:
        return []
    return [{"image": _base64(image), "code": code} for image, code in zip(images, codes, strict=True)]


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
