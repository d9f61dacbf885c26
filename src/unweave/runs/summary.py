"""A trained run in a notebook: settings, outcome, last losses and a picture."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from unweave.data.grid import Images
from unweave.display.notebook import facts, heading, paragraph, picture, strip, table
from unweave.layout import PICTURES_FOLDER, TRAVERSALS_FILE
from unweave.methods import settings_of
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder

LARGEST_PICTURE = 500_000  # bytes of traversals.png that are shown inline


def summary_html(folder: RunFolder, result: dict[str, Any], samples: Images | None) -> str:
    """The run as HTML; `samples` are shown if the folder has no picture of traversals."""
    spec = folder.spec
    parts = [heading(f"{spec.method.name} on {spec.data}, seed {spec.seed}: {result['outcome']}")]
    parts.append(facts(_settings(spec) | {"folder": folder.path}))
    if terms := result.get("terms"):
        parts.append(paragraph(f"Losses at step {result['steps']:,}:"))
        values = ["not finite" if value is None else f"{value:.4g}" for value in terms.values()]
        parts.append(table(list(terms), [values]))
    parts.append(_picture(folder, samples))
    return "".join(parts)


def _settings(spec: RunSpec) -> dict[str, Any]:
    """The settings of the method, then the other fields of the run."""
    shared = {field.name: getattr(spec, field.name) for field in fields(spec)}
    apart = ("method", "data", "seed", "plugins")
    left = {name: value for name, value in shared.items() if name not in apart}
    texts = {
        name: f"{value:,g}" if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in (settings_of(spec.method) | left).items()
    }
    return {name: "none" if value is None else value for name, value in texts.items()}


def _picture(folder: RunFolder, samples: Images | None) -> str:
    drawn = folder.path / PICTURES_FOLDER / TRAVERSALS_FILE
    if drawn.is_file() and drawn.stat().st_size <= LARGEST_PICTURE:
        return picture(drawn.read_bytes(), "traversals")
    if samples is None or not (shown := strip(samples, "samples")):
        return ""
    return paragraph("Images of codes drawn from the prior:") + shown
