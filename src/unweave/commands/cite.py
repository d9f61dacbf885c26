"""`unweave cite`: BibTeX entries of unweave itself, and of data sets, metrics and methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from unweave.commands.console import print_problem
from unweave.errors import UnweaveError, did_you_mean

CITATION_FILE = "CITATION.cff"
OWN_NAME = "unweave"


def citation(name: str) -> str:
    """The BibTeX entry of unweave, a data set, a metric or a method."""
    if name == OWN_NAME:
        return own_citation(_citation_file().read_text(encoding="utf-8"))
    of_condition = _with_condition(name)
    if of_condition:
        return of_condition
    known: dict[str, str] = {}
    for entries in (_data_sets, _metrics, _methods):  # torch, which takes seconds to import, comes last
        known |= entries()
        if name in known:
            return known[name]
    raise UnweaveError(
        f'there is no data set, metric or method "{name}". {did_you_mean(name, [OWN_NAME, *known])}'
    )


def own_citation(text: str) -> str:
    r"""BibTeX of the text of a citation file.

    >>> print(own_citation('title: "a: b"\nauthors:\n  - name: The authors\nversion: 1.2.0\n'))
    @software{unweave,
      author = {{The authors}},
      title = {a: b},
      version = {1.2.0}
    }
    """
    fields = {name: value.strip("\"' ") for name, value in re.findall(r"(?m)^([\w-]+):[ ]+(.+)$", text)}
    authors = [f"{{{name.strip()}}}" for name in re.findall(r"(?m)^ +- name: (.+)$", text)]
    values = {
        "author": " and ".join(authors),
        "title": fields["title"],
        "version": fields["version"],
        "year": fields.get("date-released", "")[:4],
        "url": fields.get("repository-code", ""),
    }
    lines = [f"  {name} = {{{value}}}" for name, value in values.items() if value]
    return "\n".join([f"@software{{{OWN_NAME},", ",\n".join(lines), "}"])


def _citation_file() -> Path:
    """The citation file: inside an installed package, or at the root of the repository."""
    package = Path(__file__).parents[1]
    installed = package / CITATION_FILE
    return installed if installed.is_file() else package.parents[1] / CITATION_FILE


def _with_condition(name: str) -> str:
    """The BibTeX entry of a data set whose name has a condition; empty for other names."""
    from unweave.data.catalogue import entry_of, has_condition

    return entry_of(name).card.citation if has_condition(name) else ""


def _data_sets() -> Mapping[str, str]:
    from unweave.data.catalogue import CATALOGUE, plugin_entries

    return {entry.name: entry.card.citation for entry in (*CATALOGUE, *plugin_entries(print_problem))}


def _metrics() -> Mapping[str, str]:
    from unweave.metrics.lookup import plugin_metrics
    from unweave.metrics.table import METRICS

    return {metric.name: metric.citation for metric in (*METRICS, *plugin_metrics(print_problem))}


def _methods() -> Mapping[str, str]:
    from unweave.methods import METHODS, plugin_methods

    return {kind.name: kind.citation for kind in (*METHODS, *plugin_methods(print_problem))}
