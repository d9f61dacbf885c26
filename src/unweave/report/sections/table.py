"""The sections of the report in their order: one question, one file, one line here.

A section is a function of the runs of one source. It returns a sentence that says what is missing where the
runs cannot answer the question. The questions are those of Locatello et al.: Challenging common assumptions
in the unsupervised learning of disentangled representations, ICML 2019, and of J. Hartmann (2021).
"""

from __future__ import annotations

from collections.abc import Callable

from unweave.report.sections.agreement_of_metrics import agreement_of_metrics
from unweave.report.sections.codes_and_regularisation import codes_and_regularisation
from unweave.report.sections.downstream_tasks import downstream_tasks
from unweave.report.sections.five_comparisons import five_comparisons
from unweave.report.sections.method_setting_seed import method_setting_seed
from unweave.report.sections.reconstructions import reconstructions
from unweave.report.sections.section import Material, Section
from unweave.report.sections.transfer_of_settings import transfer_of_settings
from unweave.report.sections.unsupervised_choice import unsupervised_choice

SECTIONS: tuple[tuple[str, Callable[[Material], Section | str]], ...] = (
    ("reconstructions", reconstructions),
    ("codes", codes_and_regularisation),
    ("metrics", agreement_of_metrics),
    ("methods", method_setting_seed),
    ("choice", unsupervised_choice),
    ("transfer", transfer_of_settings),
    ("downstream", downstream_tasks),
    ("comparison", five_comparisons),
)
