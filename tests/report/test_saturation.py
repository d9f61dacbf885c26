import numpy as np
import pytest

from report.made_up import SIX, Rule, settings, table
from unweave.report.saturation import saturated_scores, saturation_sentence, without_saturated
from unweave.report.sections.agreement_of_metrics import agreement_of_metrics
from unweave.report.sections.five_comparisons import five_comparisons
from unweave.report.sections.method_setting_seed import method_setting_seed
from unweave.report.sections.section import Material, Section, material
from unweave.report.sections.table import SECTIONS
from unweave.results import wide

# 1 on Cars3D but for a few runs, as the published BetaVAE score.
RULES: dict[str, Rule] = {
    **SIX,
    "sap": lambda at: 1.0 if at.data and at.seed else 0.5 + 0.01 * at.method + 0.02 * at.strength,
}


def of(rules: dict[str, Rule]) -> Material:
    built = material(table(settings(), rules), "own")
    assert isinstance(built, Material)
    return built


def test_a_score_that_most_runs_have_at_its_end_is_saturated() -> None:
    runs = wide(table(settings(), RULES).table)
    result = saturated_scores(runs, ["mig", "sap", "modularity"])
    assert result.to_numpy().tolist() == [["cars3d", "sap", 18, 1.0, pytest.approx(2 / 3)]]
    masked = without_saturated(runs, ["mig", "sap"])
    assert masked.loc[masked["data"] == "cars3d", "sap"].isna().all()
    assert masked["mig"].equals(runs["mig"])
    assert masked.loc[masked["data"] == "dsprites", "sap"].notna().all()
    assert saturation_sentence(result) == (
        "Saturated, so left out of correlations, comparisons and averages: SAP on Cars3D (67% of runs at 1)."
    )
    assert saturation_sentence(result[:0]) == ""


def test_the_lowest_value_counts_too_and_few_runs_do_not() -> None:
    runs = wide(table(settings(["dsprites"]), {"mig": lambda at: float(at.seed == 0) * at.strength}).table)
    assert saturated_scores(runs, ["mig"])["value"].tolist() == [0.0]
    assert saturated_scores(runs[:3], ["mig"]).empty
    assert saturated_scores(runs.assign(mig=np.nan), ["mig"]).empty


def test_figures_say_what_is_saturated_and_tables_leave_it_out() -> None:
    for build in (agreement_of_metrics, method_setting_seed, five_comparisons):
        built = build(of(RULES))
        assert isinstance(built, Section)
        assert any("SAP on Cars3D (67% of runs at 1)" in drawing.caption for drawing in built.drawings)
        for sheet in built.sheets:
            if "data" in sheet.table and not sheet.name.startswith("scores_by"):
                on_cars = sheet.table[sheet.table["data"] == "cars3d"]
                names = [name for name in ("score", "first", "second") if name in on_cars]
                assert "sap" not in set(on_cars[names].to_numpy().ravel())
        unflagged = build(of(SIX))
        assert isinstance(unflagged, Section)
        assert not any("Saturated" in drawing.caption for drawing in unflagged.drawings)


def test_a_study_whose_scores_are_all_saturated_has_sections() -> None:
    flat = of({"mig": lambda _: 1.0, "sap": lambda _: 0.0})
    for question in SECTIONS:
        built = question.answer(flat)
        assert isinstance(built, str) or built.finding
        for drawing in built.drawings if isinstance(built, Section) else ():
            drawing.draw()
