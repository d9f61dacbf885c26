"""Each figure draws the numbers of its table: offsets, heights, widths, labels."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from report.made_up import SIX, Rule, settings, small_runs, table
from unweave.errors import UnweaveError
from unweave.report import tables
from unweave.report.figures import choice, codes, comparison, correlations, methods, metrics, pictures
from unweave.report.figures.settings import method_groups, scores_against_settings
from unweave.report.formats import figure_bytes
from unweave.report.names import score_label
from unweave.report.style import OKABE_ITO, look_of
from unweave.report.variance import variance_shares
from unweave.results import wide

SCORES = ["mig", "sap"]


def titles(figure: Any) -> list[str]:
    return [axes.get_title() for axes in figure.axes if axes.get_visible()]


def numbers(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def visible(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_visible()]


def test_methods_of_the_study_keep_their_colours() -> None:
    assert (
        look_of(["annealed_vae"])["annealed_vae"]
        == look_of(["beta_vae", "annealed_vae", "x"])["annealed_vae"]
    )
    assert look_of(["beta_vae"])["beta_vae"] == {"color": OKABE_ITO[0], "marker": "o"}
    many = look_of([f"method {i}" for i in range(20)])
    assert len({(look["color"], look["marker"]) for look in many.values()}) == 20


def many_runs(strengths: Sequence[float]) -> pd.DataFrame:
    names = [f"adversarial_{i:02}" for i in range(36)]
    return wide(table(settings(methods=names, strengths=strengths), {s: SIX[s] for s in SCORES}).table)


def test_the_names_of_many_methods_can_be_read() -> None:
    runs = many_runs([1.0])
    for draw in (methods.scores_by_method, comparison.methods_over_everything, comparison.methods_over_data):
        figure: Any = draw(runs, SCORES)
        figure.draw_without_rendering()
        [named] = [axes for axes in figure.axes if axes.xaxis.get_tick_params()["labelbottom"]]
        boxes = [text.get_window_extent() for text in named.get_xticklabels()]
        assert len(boxes) == 36
        assert all(a.x1 <= b.x0 for a, b in pairwise(boxes)), "names do not lie on each other"
        assert min(box.y0 for box in boxes) >= 0, "names end within the figure"


def curves(runs: pd.DataFrame, scores: Sequence[str] = SCORES) -> pd.DataFrame:
    rows = {score_label(score): score for score in scores}
    return tables.setting_curves(dict.fromkeys(rows, runs), rows)


def test_many_methods_are_drawn_in_several_figures() -> None:
    groups = method_groups(curves(many_runs([1.0, 2.0])))
    assert [len(group) for group in groups] == [6] * 6


def test_only_methods_with_several_strengths_are_drawn_against_them() -> None:
    runs = wide(table(settings(), {score: SIX[score] for score in SCORES}).table)
    one = (runs["method"] == "beta_vae") & (runs["strength"] > 1)
    assert method_groups(curves(runs[~one])) == [["factor_vae"]]
    alone = runs[runs["strength"] == 1]
    assert method_groups(curves(alone)) == [["beta_vae", "factor_vae"]]


def test_each_method_has_an_axis_with_its_own_setting() -> None:
    runs = small_runs()
    named = runs["method"].map({"beta_vae": "beta", "factor_vae": "gamma"})
    runs["setting"] = [f"{name}={value:g}" for name, value in zip(named, runs["strength"], strict=True)]
    figure: Any = scores_against_settings(curves(runs), ["beta_vae", "factor_vae"], ["MIG", "SAP"])
    assert titles(figure) == ["β-VAE", "FactorVAE", "", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "beta", "gamma"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["MIG", "", "SAP", ""]
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["1", "2", "4"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["dSprites", "Cars3D"]


def test_total_correlation_against_regularisation() -> None:
    rules: dict[str, Rule] = {"total_correlation": lambda at: 10.0 ** -(3 * at.strength)}
    runs = wide(table(settings(), rules).table)
    rows = {"TC, sampled codes": runs, "TC, mean codes": runs}
    medians = tables.setting_curves(rows, dict.fromkeys(rows, "total_correlation"))
    names = ["beta_vae", "factor_vae"]
    figure: Any = scores_against_settings(medians, names, list(rows), logarithmic=True)
    assert [axes.get_ylabel() for axes in figure.axes] == ["TC, sampled codes", "", "TC, mean codes", ""]
    assert figure.axes[0].lines[1].get_xdata().tolist() == [0, 1, 2]
    # 10^-6 is drawn at the smallest number that the axis has.
    assert figure.axes[0].lines[1].get_ydata().tolist() == pytest.approx([1, 1e-3, 1e-4])


def test_a_logarithmic_axis_within_a_decade_has_numbers() -> None:
    medians = tables.setting_curves({"TC": small_runs()}, {"TC": "mig"})
    figures: list[Any] = []
    for low, high in ((4, 5.6), (4, 400)):
        values = np.linspace(low, high, len(medians))
        table = medians.assign(median=values, **{"lower quartile": values, "upper quartile": values})
        figures.append(scores_against_settings(table, ["beta_vae", "factor_vae"], ["TC"], logarithmic=True))
        figures[-1].draw_without_rendering()
    shown = [
        {text.get_text() for text in axes.get_yticklabels(which="both") if text.get_visible()} - {""}
        for figure in figures
        for axes in figure.axes
    ]
    assert {"4", "5"} <= shown[0]
    assert shown[2]
    assert all(text.startswith("$") for text in shown[2])  # powers of ten only
    assert shown[1] == shown[3] == set()  # next to the axis that has the numbers


def test_mean_against_sampled_codes_draws_each_pair_once() -> None:
    runs = small_runs()
    pairs = tables.both_codes(runs, runs.assign(mig=runs["mig"] * 2), "mig")
    figure: Any = codes.mean_against_sampled(pairs, "mig")
    drawn = np.asarray(figure.axes[0].collections[0].get_offsets())
    part = pairs[pairs["data"] == "dsprites"]
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(part["sampled"]))
    assert drawn[:, 0] == pytest.approx(2 * drawn[:, 1])


def test_points_are_a_sample_of_each_data_set() -> None:
    runs = small_runs()
    drawn = codes.drawn_rows(runs, 5)
    assert drawn["data"].value_counts().to_dict() == {"dsprites": 5, "cars3d": 5}
    assert drawn.index.is_unique
    assert codes.drawn_rows(runs, 5).equals(drawn)


def test_each_two_scores_are_drawn_against_each_other() -> None:
    runs = small_runs()
    figure: Any = metrics.score_pairs(runs, ["mig", "sap", "modularity"])
    shown = visible(figure)
    assert len(shown) == 3
    drawn = np.asarray(shown[0].collections[0].get_offsets())
    assert np.sort(drawn[:, 0]) == pytest.approx(np.sort(runs["mig"]))
    assert drawn[:, 1] == pytest.approx(1 - drawn[:, 0])
    assert (shown[1].get_xlabel(), shown[1].get_ylabel()) == ("MIG", "Modularity")


def test_scores_against_other_numbers() -> None:
    runs = small_runs()
    figure: Any = metrics.scores_against(runs[runs["data"] == "dsprites"], ["modularity"], SCORES, points=4)
    assert [axes.get_xlabel() for axes in figure.axes] == ["MIG", "SAP"]
    assert len(figure.axes[0].collections[0].get_offsets()) == 4


def test_settings_on_two_data_sets() -> None:
    means = tables.setting_means(small_runs(), "mig")
    figure: Any = metrics.score_across_data(means, "mig")
    # A single panel has no empty corner for a title: it would cover points.
    assert figure.get_suptitle() == ""
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("MIG on dSprites", "MIG on Cars3D")
    drawn = np.asarray(figure.axes[0].collections[1].get_offsets())  # the second method
    assert drawn == pytest.approx(np.array([[0.31, 0.31], [0.36, 0.36], [0.41, 0.41]]))


def test_heat_maps_show_hundredths() -> None:
    pairs = tables.correlation_table(small_runs(), SCORES)
    figure: Any = correlations.correlations(pairs, SCORES, SCORES)
    assert titles(figure) == ["dSprites", "Cars3D"]
    assert numbers(figure.axes[0]) == ["100", "-100", "-100", "100"]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["MIG", "SAP"]


def test_what_could_not_be_computed_is_left_white() -> None:
    pairs = tables.correlation_table(small_runs(), ["modularity"], SCORES)
    figure: Any = correlations.correlations(pairs, ["modularity", "irs"], SCORES)
    assert len(numbers(figure.axes[0])) == 2


def test_heat_maps_of_transfer() -> None:
    pairs = tables.transfer_correlations(small_runs(), SCORES)
    figure: Any = correlations.transfer_correlations(pairs)
    assert titles(figure) == ["MIG", "SAP"]
    assert numbers(figure.axes[0]) == ["100"] * 4


def test_violins_mark_the_median() -> None:
    figure: Any = methods.scores_by_method(small_runs(seeds=4), SCORES)
    axes = figure.axes[2]  # names are below the last row
    assert [text.get_text() for text in axes.get_xticklabels()] == ["β-VAE", "FactorVAE"]
    assert len(axes.collections) == 2
    assert [line.get_ydata()[0] for line in axes.lines] == pytest.approx([0.165, 0.365])


def test_few_or_equal_values_are_dots() -> None:
    figure: Any = methods.scores_by_method(small_runs(rules={"mig": lambda _: 1.0}), ["mig"])
    assert not figure.axes[0].collections
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1.0] * 9
    figure = methods.scores_by_method(small_runs(), ["mig"])  # nine values
    assert not figure.axes[0].collections


def test_lines_against_settings_are_medians() -> None:
    figure: Any = scores_against_settings(curves(small_runs()), ["beta_vae", "factor_vae"], ["MIG"])
    assert figure.axes[1].lines[0].get_ydata().tolist() == pytest.approx([0.31, 0.36, 0.41])
    low, high = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1][[1, -2]]
    assert sorted([low, high])[0] == pytest.approx(0.105)


def test_ranges_over_seeds_are_in_the_order_of_medians() -> None:
    figure: Any = methods.scores_by_seed(small_runs(), SCORES)
    medians = figure.axes[1].lines[0].get_ydata()  # sap, which falls with the settings
    assert medians.tolist() == sorted(medians)
    ends = np.array([segment[:, 1] for segment in figure.axes[0].collections[0].get_segments()])
    assert ends[0] == pytest.approx([0.1, 0.12])


def test_bars_of_variance_have_the_widths_of_the_shares() -> None:
    shares = variance_shares(small_runs(), SCORES)
    figure: Any = methods.shares_of_variance(shares)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    part = shares[shares["data"] == "dsprites"]
    assert widths == pytest.approx([*part["method"], *part["setting"], *part["seed"]])
    assert f"{100 * part['method'].iloc[0]:.0f}" in numbers(figure.axes[0])


def test_bars_of_transfer() -> None:
    pairs = pd.DataFrame(
        {
            "data": ["same", "other"],
            "score": ["same", "same"],
            "probability": [0.8, 0.6],
            "low": [0.7, 0.4],
            "high": [0.9, 0.8],
            "random": [0.5, 0.5],
        }
    )
    figure: Any = choice.transfer_bars(pairs)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.8, 0.6]
    assert numbers(figure.axes[0]) == ["0.800", "0.600"]
    words = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert words == ["same data set, same metric", "other data set, same metric"]


def medians_of_boxes(axes: Any) -> list[float]:
    """The lines of a box plot are, box by box: two whiskers, two caps, the median."""
    return [float(line.get_ydata()[0]) for line in axes.lines if line.get_linewidth() == 0.8]


def test_boxes_of_methods() -> None:
    runs = small_runs(seeds=4)
    figure: Any = comparison.methods_over_everything(runs, SCORES)
    assert medians_of_boxes(figure.axes[0]) == pytest.approx([0.165, 0.365])
    figure = comparison.methods_over_data(runs, SCORES)
    assert titles(figure)[:2] == ["dSprites", "Cars3D"]
    assert medians_of_boxes(figure.axes[3]) == pytest.approx([0.835, 0.635])


def test_boxes_of_settings() -> None:
    runs = small_runs(seeds=11)
    figure: Any = comparison.settings_on_one_data_set(runs[runs["data"] == "dsprites"], SCORES)
    assert medians_of_boxes(figure.axes[0]) == pytest.approx([0.15, 0.2, 0.25, 0.35, 0.4, 0.45])
    names = [text.get_text() for text in figure.axes[1].get_xticklabels()]
    assert names[0] == "β-VAE 1"
    assert names[-1] == "FactorVAE 4"


def test_fewer_than_ten_values_are_points_instead_of_boxes() -> None:
    runs = small_runs()
    figure: Any = comparison.settings_on_one_data_set(runs[runs["data"] == "dsprites"], SCORES)
    assert not medians_of_boxes(figure.axes[0])
    assert figure.axes[0].lines[0].get_ydata().tolist() == pytest.approx([0.1, 0.11, 0.12])


def test_places_of_settings_on_each_data_set() -> None:
    figure: Any = comparison.settings_across_data(small_runs(), SCORES)
    places = np.array(numbers(figure.axes[0])).reshape(6, 2)
    assert places[:, 0].tolist() == ["0", "20", "40", "60", "80", "100"]
    assert (places[:, 0] == places[:, 1]).all()


def test_spread_over_seeds_beside_that_of_settings() -> None:
    figure: Any = comparison.spread_over_seeds(small_runs(), ["mig"])
    axes = figure.axes[0]
    diamonds = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    means = [0.11, 0.16, 0.21, 0.31, 0.36, 0.41]
    assert diamonds == pytest.approx([np.std(means)] * 2)
    points = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
    assert np.array(points) == pytest.approx(0.01 * np.sqrt(2 / 3))


def test_sheets_of_reconstructions(tmp_path: Path) -> None:
    for i in range(3):
        Image.new("RGB", (40, 20), (50 * i, 0, 0)).save(tmp_path / f"{i}.png")
    figure: Any = pictures.reconstructions([(f"run {i}", tmp_path / f"{i}.png") for i in range(3)])
    assert titles(figure) == ["run 0", "run 1", "run 2"]
    assert np.asarray(figure.axes[2].images[0].get_array())[0, 0, 0] == 100
    (tmp_path / "bad.png").write_text("no picture")
    with pytest.raises(UnweaveError, match=r"cannot read the picture .*bad\.png"):
        pictures.reconstructions([("bad", tmp_path / "bad.png")])


def test_figures_do_not_depend_on_what_the_user_has_set() -> None:
    before = figure_bytes(methods.scores_by_seed(small_runs(), SCORES), "png")
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "lines.linewidth": 9}):
        after = figure_bytes(methods.scores_by_seed(small_runs(), SCORES), "png")
    assert before == after


@pytest.mark.parametrize("rules", [SIX, {"mig": SIX["mig"]}], ids=["three", "one"])
def test_single_runs_and_single_scores_can_be_drawn(rules: dict[str, Any]) -> None:
    runs = wide(table(settings(["dsprites"], ["mine"], [1.0], 1), rules).table)
    for draw in (
        methods.scores_by_method,
        methods.scores_by_seed,
        comparison.methods_over_everything,
        comparison.methods_over_data,
        comparison.settings_on_one_data_set,
        comparison.settings_across_data,
        comparison.spread_over_seeds,
    ):
        assert figure_bytes(draw(runs, list(rules)), "png")
