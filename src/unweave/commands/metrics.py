"""`unweave metrics`: the table of metrics, and a page that explains each.

The page of a metric in the documentation is what `unweave metrics explain NAME` prints into a file.
"""

from __future__ import annotations

import inspect
import sys

from cyclopts import App

from unweave.commands.command_app import command_app
from unweave.commands.console import console, print_problem
from unweave.commands.listing import Listing
from unweave.metrics.examples import MEANING, TEST, TRAIN, stored_scores
from unweave.metrics.lookup import metric_named, plugin_metrics
from unweave.metrics.metric import Change, Metric
from unweave.metrics.table import METRICS

CHANGES: dict[Change, str] = {
    "permutation": "another order of the codes",
    "sign": "another sign of a code",
    "scale": "another scale of a code",
    "rotation": "a rotation of all codes",
    "copies": "a copy of each code",
    "dead": "further codes that are dead",
    "row order": "another order of the points",
}


def metrics_app() -> App:
    """The commands about metrics."""
    app = command_app("unweave metrics", "Metrics: list them, and explain one.")
    app.command(list_metrics, name="list")
    app.command(explain)
    return app


def list_metrics() -> None:
    """List all metrics: range, direction, what they need, and the protocol, which names the estimator."""
    from rich.markup import escape

    table = Listing("name", "range", "better", "needs", "protocol", below="protocol")
    for metric in (*METRICS, *plugin_metrics(print_problem)):
        table.add_row(metric.name, range_of(metric), better(metric), metric.needs, escape(metric.protocol()))
    console().print(table)


def explain(name: str) -> None:
    """Explain a metric: formula, range, what typical codes score, known flaws, citation.

    Parameters
    ----------
    name
        The metric, as in `unweave metrics list`.
    """
    text = page(metric_named(name))
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.markdown import Markdown

    console().print(Markdown(text))


def page(metric: Metric) -> str:
    """All about a metric, in Markdown."""
    source = inspect.getmodule(metric.function)
    formula = (inspect.getdoc(metric.function) or "").partition(">>>")[0].strip()
    flaws = "\n".join(f"- {flaw}" for flaw in metric.flaws) or "None are stated."
    return f"""# {metric.name}

**{metric.summary}**

{inspect.getdoc(source)}

{_facts(metric)}

## How it is computed

```text
{formula}
```

## What typical codes score

{_typical_scores(metric)}

## Known flaws

{flaws}

## Citation

```bibtex
{metric.citation}
```
"""


def _facts(metric: Metric) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in metric.options.items())
    rows = [
        (
            "function",
            f"`{_module(metric)}.{metric.function.__name__}`" + (f" with `{options}`" if options else ""),
        ),
        ("protocol", f"`{metric.protocol()}`"),
        ("needs", metric.inputs.summary),
        ("range", f"{range_of(metric)}, {better(metric)} is better"),
        ("unchanged by", ", ".join(CHANGES[change] for change in CHANGES if change in metric.unchanged_by)),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value or 'nothing'} |" for name, value in rows)])


def _module(metric: Metric) -> str:
    """Where users import the function from."""
    module = metric.function.__module__
    return "unweave.metrics" if module.startswith("unweave.") else module


def _typical_scores(metric: Metric) -> str:
    rows = [
        f"| `{name}` | " + " | ".join(f"{value:.3f}" for value in values.values()) + " |"
        for name, values in stored_scores().items()
        if name.split(".")[0] == metric.name
    ]
    if not rows:
        return "Not measured: this metric is from a plug-in."
    lines = [
        f"Ten codes of the factors of dSprites, {TRAIN:,} points and {TEST:,} test points:",
        "",
        f"| | {' | '.join(MEANING)} |",
        "|---" * (len(MEANING) + 1) + "|",
        *rows,
        "",
        *(f"- *{example}*: {meaning}" for example, meaning in MEANING.items()),
    ]
    return "\n".join(lines)


def range_of(metric: Metric) -> str:
    """From least to largest, as text."""
    return " to ".join(f"{end:.4g}" for end in metric.range)


def better(metric: Metric) -> str:
    """Which direction is better."""
    return "higher" if metric.higher_is_better else "lower"
