from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from report.made_up import SIX, settings, small_runs, table
from unweave.report import tables
from unweave.report.figures import methods
from unweave.report.formats import figure_bytes, labelled, table_html, table_latex, write_figure, write_table
from unweave.results import wide

TABLE = pd.DataFrame(
    {
        "data": ["color_dsprites", "mine_<b>"],
        "method": ["beta_vae", "50%_vae"],
        "runs": [1800, 3],
        "own_mean": [0.12345, np.nan],
        "agrees": [True, False],
    }
)


def test_tables_use_the_names_that_people_use() -> None:
    head, rows = labelled(TABLE)
    assert head == ["data", "method", "runs", "own mean", "agrees"]
    assert rows == [
        ("Color-dSprites", "β-VAE", "1,800", "0.123", "yes"),
        ("mine_<b>", "50%_vae", "3", "", "no"),
    ]


def test_names_of_tied_methods() -> None:
    best = pd.DataFrame({"highest mean": ["beta_vae, mine"], "closest rival": ["factor_vae"]})
    assert labelled(best)[1] == [("β-VAE, mine", "FactorVAE")]


def test_tables_for_a_page_are_escaped_and_cut() -> None:
    page = table_html(TABLE, 2)
    assert "mine_&lt;b&gt;" in page
    assert '<td class="number">0.123</td>' in page
    assert table_html(TABLE, 1).count("<tr>") == 2


def test_tables_for_latex() -> None:
    assert table_latex(TABLE, "All of it: 100%.", "all") == (
        "\\begin{table}\n\\centering\n\\caption{All of it: 100\\%.}\\label{tab:all}\n"
        "\\begin{tabular}{llrrr}\n\\toprule\n"
        "data & method & runs & own mean & agrees \\\\\n\\midrule\n"
        "Color-dSprites & $\\beta$-VAE & 1,800 & 0.123 & yes \\\\\n"
        "mine\\_<b> & 50\\%\\_vae & 3 &  & no \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )
    long = table_latex(pd.DataFrame({"x": range(50)}), "Long.", "long")
    assert long.startswith("\\begin{longtable}{r}\n\\caption{Long.}\\label{tab:long}\\\\\n\\toprule")


def test_files_of_a_table(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "all", "All.")
    assert (tmp_path / "all.csv").read_text().splitlines()[1] == "color_dsprites,beta_vae,1800,0.12345,True"
    assert (tmp_path / "all.tex").read_text().startswith("\\begin{table}")


def test_the_same_results_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    results = table(settings(), SIX).table
    for name, rows in (("once", results), ("again", results.iloc[::-1])):
        (tmp_path / name).mkdir()
        runs = wide(rows)
        write_table(tables.correlation_table(runs, ["mig", "modularity"]), tmp_path / name / "c", "c")
        write_table(tables.setting_table(runs, ["mig", "sap"]), tmp_path / name / "s", "s")
    for file in ("c.csv", "c.tex", "s.csv", "s.tex"):
        assert (tmp_path / "once" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_the_same_runs_give_the_same_picture(kind: str) -> None:
    once, again = (figure_bytes(methods.scores_by_method(small_runs(), ["mig"]), kind) for _ in range(2))
    assert once == again


def test_a_figure_is_two_files_and_the_smaller_picture_on_the_page(tmp_path: Path) -> None:
    figure = methods.scores_by_method(small_runs(), ["mig"])
    element = write_figure(figure, tmp_path / "violins", 'scores "by" method')
    pdf = (tmp_path / "violins.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf, "publishers accept TrueType fonts, and often no Type 3 fonts"
    assert (tmp_path / "violins.png").read_bytes().startswith(b"\x89PNG")
    sizes = {kind: len(figure_bytes(figure, kind)) for kind in ("png", "svg")}
    kind = {"png": "png", "svg": "svg+xml"}[min(sizes, key=lambda name: sizes[name])]
    assert element.startswith(f'<img src="data:image/{kind};base64,')
    assert 'alt="scores &quot;by&quot; method"' in element
