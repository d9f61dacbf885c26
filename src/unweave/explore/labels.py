"""Display names for the pages, the same as in reports: "FactorVAE" for the method `factor_vae`."""

from __future__ import annotations

from collections.abc import Iterable

from unweave.report.names import DATA, METHODS, label, score_label


def labels_of(
    methods: Iterable[str], data: Iterable[str], scores: Iterable[str]
) -> dict[str, dict[str, str]]:
    """For methods, data sets and scores, the display name of each that has one besides its own.

    >>> labels_of(["factor_vae", "mine"], ["rooms"], ["mig (sampled)"])
    {'method': {'factor_vae': 'FactorVAE'}, 'data': {}, 'score': {'mig (sampled)': 'MIG (sampled)'}}
    """
    named = {
        "method": {name: label(name, METHODS) for name in methods},
        "data": {name: label(name, DATA) for name in data},
        "score": {name: _score_label(name) for name in scores},
    }
    return {
        kind: {name: text for name, text in labels.items() if text != name} for kind, labels in named.items()
    }


def _score_label(name: str) -> str:
    """The label of a score; that of "mig (sampled)" is the label of mig and the same addition."""
    base, space, addition = name.partition(" (")
    known = score_label(name)
    return known if known != name else f"{score_label(base)}{space}{addition}"
