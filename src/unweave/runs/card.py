"""The model card of a run: what a person must know who finds its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unweave.methods import settings_of
from unweave.runs.spec import RunSpec

CARD = """# {method} on {data}

A model of {data} ({source}; drawn {drawn}), trained by unweave with the method {method}{settings}.
It {outcome} after {steps:,} of {planned:,} steps.

| setting | value |
|---|---|
{fields}

| loss, mean over the last steps | |
|---|---|
{losses}

Trained in {seconds:,.0f} seconds with {others} other run(s) on {device}, with unweave {unweave},
torch {torch}, Python {python}. The licence of the images: {licence}.

## Use

```python
import unweave

run = unweave.load("path/of/this/folder")
codes = run.encode(images)  # (n, {latents}) means, of (n, {shape}) images in uint8 or [0, 1]
images = run.decode(codes)
```

## Cite

```bibtex
{citations}
```
"""


def model_card(spec: RunSpec, origin: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """The card as Markdown, from the run's own records and nothing else."""
    settings = ", ".join(f"{name} = {value}" for name, value in settings_of(spec.method).items())
    apart = ("version", "method", "plugins")
    fields = {name: value for name, value in spec.to_dict().items() if name not in apart}
    fields |= {f"{plugin.kind} from": f"{plugin.place}, source {plugin.hash}" for plugin in spec.plugins}
    citations = [spec.method.citation, origin.get("data_citation", "")]
    return CARD.format(
        method=spec.method.name,
        settings=f" ({settings})" if settings else "",
        data=spec.data,
        source=origin["data_source"],
        drawn=origin["data_drawn"],
        licence=origin.get("data_licence") or "not known",
        outcome="was finished" if result["outcome"] == "finished" else "diverged",
        steps=result["steps"],
        planned=spec.steps,
        fields=_rows(fields),
        losses=_rows(result["terms"]),
        seconds=result["seconds"],
        others=result["runs_beside"],
        device=origin["device"],
        unweave=origin["unweave"],
        torch=origin["torch"],
        python=origin["python"],
        latents=spec.latents,
        shape=", ".join(str(size) for size in origin["image_shape"]),
        citations="\n\n".join(citation for citation in citations if citation),
    )


def _rows(values: Mapping[str, Any]) -> str:
    """The rows of a table with two columns."""
    shown = {name: "none" if value is None else value for name, value in values.items()}
    return "\n".join(
        f"| {name.replace('_', ' ')} | {f'{value:.6g}' if isinstance(value, float) else value} |"
        for name, value in shown.items()
    )
