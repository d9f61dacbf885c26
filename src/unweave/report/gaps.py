"""Scores that some runs lack, as a sentence for the captions of figures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.report.names import DATA, METHODS, data_sets, label, listed, measured, methods, score_label

MOST_NAMES = 3


def gap_sentence(runs: pd.DataFrame, scores: Sequence[str]) -> str:
    """Which of the scores some runs lack, how many and which; empty if there is no gap."""
    parts = []
    for score in measured(runs, scores):
        without = runs[runs[score].isna()]
        if len(without):
            parts.append(
                f"{score_label(score)} in {len(without):,} of {len(runs):,} runs{_which(without, runs)}"
            )
    return f"Missing: {listed(parts)}." if parts else ""


def _which(without: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The methods or data sets of runs without a score, if they are few and not all."""
    words = []
    for names, labels in ((methods, METHODS), (data_sets, DATA)):
        those = names(without)
        if len(those) <= MOST_NAMES and len(those) < len(names(runs)):
            words.append(listed([label(name, labels) for name in those]))
    return f" ({' on '.join(words)})" if words else ""
