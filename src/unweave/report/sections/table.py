"""The sections of the report in their order: one question, one file, one line here.

A section is a function of the runs of one source. It returns a sentence that says what is missing where the
runs cannot answer the question. The questions are those of Locatello et al.: Challenging common assumptions
in the unsupervised learning of disentangled representations, ICML 2019, and of J. Hartmann (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from unweave.report.sections import (
    agreement_of_metrics,
    codes_and_regularisation,
    correlated_factors,
    downstream_tasks,
    fairness,
    few_labels,
    five_comparisons,
    generalisation,
    method_setting_seed,
    reasoning,
    reconstructions,
    symmetry,
    transfer_of_settings,
    unsupervised_choice,
)
from unweave.report.sections.section import Material, Section


class Question(NamedTuple):
    """The name of a section, its question, and the function that answers it from runs."""

    name: str
    text: str
    answer: Callable[[Material], Section | str]


SECTIONS: tuple[Question, ...] = (
    Question("reconstructions", reconstructions.QUESTION, reconstructions.reconstructions),
    Question("codes", codes_and_regularisation.QUESTION, codes_and_regularisation.codes_and_regularisation),
    Question("metrics", agreement_of_metrics.QUESTION, agreement_of_metrics.agreement_of_metrics),
    Question("methods", method_setting_seed.QUESTION, method_setting_seed.method_setting_seed),
    Question("choice", unsupervised_choice.QUESTION, unsupervised_choice.unsupervised_choice),
    Question("few_labels", few_labels.QUESTION, few_labels.few_labels),
    Question("transfer", transfer_of_settings.QUESTION, transfer_of_settings.transfer_of_settings),
    Question("downstream", downstream_tasks.QUESTION, downstream_tasks.downstream_tasks),
    Question("fairness", fairness.QUESTION, fairness.fairness),
    Question("generalisation", generalisation.QUESTION, generalisation.generalisation),
    Question("correlated", correlated_factors.QUESTION, correlated_factors.correlated_factors),
    Question("reasoning", reasoning.QUESTION, reasoning.reasoning),
    Question("symmetry", symmetry.QUESTION, symmetry.symmetry),
    Question("comparison", five_comparisons.QUESTION, five_comparisons.five_comparisons),
)
