"""The section on symmetry, of tables with known numbers."""

from report.made_up import SIX, Rule, settings, table
from unweave.report.sections.section import Material, Section, material
from unweave.report.sections.symmetry import symmetry
from unweave.study import preset_named

SYMMETRY: dict[str, Rule] = {
    "d_lsbd": lambda at: 1 - SIX["mig"](at),
    "d_lsbd.shared": lambda at: 1 - SIX["mig"](at) / 2,
    "d_lsbd.chance": lambda _: 0.95,
    "equivariance": SIX["mig"],
    "equivariance.rotation": lambda at: SIX["mig"](at) / 2,
}


def made(rules: dict[str, Rule], seeds: int = 3) -> Material:
    built = material(table(settings(["dsprites"], seeds=seeds), rules), "own")
    assert isinstance(built, Material)
    return built


def test_metrics_that_agree_with_the_distance_are_named() -> None:
    built = symmetry(made({**SIX, **SYMMETRY}))
    assert isinstance(built, Section)
    assert built.finding.startswith(
        "2 of 3 metrics correlate with D_LSBD (|Spearman| 0.3 or more). The largest correlation is that of "
        "MIG: mean Spearman -1.00 [-1.00, -1.00]"
    )
    assert "3 seeds a setting" in built.finding
    # FactorVAE has the higher MIG: 0.3 to 0.42 against 0.1 to 0.22.
    assert "Interquartile means of D_LSBD on dSprites: 0.64 [" in built.finding
    assert "(FactorVAE) to 0.84 [" in built.finding
    assert built.finding.endswith("(β-VAE); shuffled orbits have 0.95.")
    assert not built.missing
    for drawing in built.drawings:
        drawing.draw()
    by_method = built.sheets[0].table
    assert set(by_method["score"]) == set(SYMMETRY)


def test_what_is_missing_is_said() -> None:
    assert symmetry(made(SIX)) == "it needs d_lsbd on data with a circular factor, a metric, and three runs"
    # The distance itself is not compared with itself.
    assert isinstance(symmetry(made({name: SYMMETRY[name] for name in ("d_lsbd", "equivariance")})), str)
    few = symmetry(made({"mig": SIX["mig"], "d_lsbd": SYMMETRY["d_lsbd"]}, seeds=1))
    assert isinstance(few, Section)
    assert few.finding.startswith("The data cannot tell whether 1 metric correlate with D_LSBD")
    assert few.missing == ("no run has the metric equivariance",)


def test_the_study_measures_what_the_section_needs() -> None:
    study = preset_named("tonnaer2022")
    assert len(study.runs) == 150
    assert {"d_lsbd", "equivariance", "mig", "dci"} <= set(study.metrics)
    assert {run.data for run in study.runs} == {"dsprites", "rooms"}
