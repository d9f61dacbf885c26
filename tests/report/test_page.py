"""The page: complete, without a network, and readable in a browser."""

import base64
import html
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image

from report.made_up import SIX, settings, table
from report.test_sections import whole
from unweave.errors import UnweaveError
from unweave.report import interactive
from unweave.report import page as page_module
from unweave.report.page import Page, document, write_report
from unweave.report.sections.table import SECTIONS
from unweave.results import Results, combine

FIGURES = {
    "total_correlation",
    "total_correlation_mean_and_sampled",
    "mean_pairwise_information",
    "mean_pairwise_information_mean_and_sampled",
    "metric_correlations",
    "metric_pairs",
    "scores_by_method",
    "scores_by_setting",
    "scores_by_seed",
    "shares_of_variance",
    "unsupervised_correlations",
    "unsupervised_pairs",
    "transfer",
    "transfer_correlations",
    "transfer_pairs",
    "downstream_accuracy",
    "downstream_accuracy_pairs",
    "downstream_efficiency",
    "downstream_efficiency_pairs",
    "methods_over_everything",
    "methods_over_data",
    "settings_on_one_data_set",
    "settings_across_data",
    "spread_over_seeds",
}

pytestmark = pytest.mark.usefixtures("quick_fonts")

PAIR = {"mig": SIX["mig"], "sap": SIX["sap"]}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, quick_fonts: None) -> Path:
    """The report of a small study that has everything, with pictures."""
    folder = tmp_path_factory.mktemp("report")
    Image.new("RGB", (60, 30)).save(folder / "sheet.png")
    sheet = ("β-VAE 1", folder / "sheet.png")
    write_report(whole(), folder / "out", sheets=[sheet], swaps=[sheet], study="capacity")
    return folder / "out"


@pytest.fixture
def unwritten_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures, but write empty files: rendering takes most of the time of a report."""

    def write(_figure: object, stem: Path, alt: str) -> str:
        stem.with_suffix(".pdf").touch()
        return f'<img alt="{html.escape(alt)}">'

    monkeypatch.setattr(page_module, "write_figure", write)


def test_every_figure_is_on_the_page_and_in_two_files(report: Path) -> None:
    text = (report / "index.html").read_text()
    assert set(re.findall(r'<figure id="figure-(\w+)">', text)) == FIGURES | {"reconstructions", "swaps"}
    assert 'id="chosen"' not in text
    assert "choice by agreement" not in text
    for name in FIGURES:
        assert (report / "figures" / f"{name}.pdf").stat().st_size > 1000
        with Image.open(report / "figures" / f"{name}.png") as picture:
            assert picture.width > 300


def test_pictures_on_the_page_can_be_read(report: Path) -> None:
    page_text = re.findall(r'src="data:image/([\w+]+);base64,([^"]+)"', (report / "index.html").read_text())
    assert len(page_text) == len(FIGURES) + 2
    for kind, data in page_text:
        content = base64.b64decode(data)
        if kind == "png":
            assert content.startswith(b"\x89PNG")
        else:
            assert ET.fromstring(content).tag.endswith("svg")  # noqa: S314, we wrote it


def test_every_table_is_on_the_page_and_in_two_files(report: Path) -> None:
    text = (report / "index.html").read_text()
    names = re.findall(r'<details id="table-(\w+)"', text)
    assert len(names) == 18
    for name in names:
        assert (report / "tables" / f"{name}.csv").read_text().count("\n") > 1
        assert "\\bottomrule" in (report / "tables" / f"{name}.tex").read_text()


def test_the_contents_lead_to_sections(report: Path) -> None:
    text = (report / "index.html").read_text()
    links = re.findall(r'<a href="#([\w-]+)">', text)
    assert len(links) == len(SECTIONS) + 2
    for link in links:
        assert f'<section id="{link}">' in text
    for link in set(re.findall(r'href="((?:figures|tables)/[^"]+)"', text)):
        assert (report / link).is_file()


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    page = (report / "index.html").read_text()
    assert "Content-Security-Policy\" content=\"default-src 'none'; img-src data: blob:;" in page
    without_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!data:|#|figures/|tables/)[^"]*"', without_scripts)
    assert "@import" not in without_scripts
    assert "url(" not in without_scripts


@pytest.mark.usefixtures("unwritten_figures")
def test_what_is_missing_is_said_where_it_is_missed(tmp_path: Path) -> None:
    results = table(settings(["dsprites"], ["mine"], seeds=1), {"mig": SIX["mig"]})
    text = html.unescape(write_report(results, tmp_path).read_text())
    assert "Report on own runs" in text
    overview = text.partition('<section id="runs">')[2].partition("</section>")[0]
    assert "Data sets of the published study that these runs lack: Color-dSprites, Noisy-" in overview
    assert "these runs lack: BetaVAE score, FactorVAE score, DCI, Modularity, SAP." in overview
    for name, lack in (
        ("transfer", "The data cannot tell: transfer compares runs of two seeds; there is one seed only."),
        ("metrics", "The data cannot tell: it needs two metrics or more"),
        ("methods", "The data cannot tell: every setting has one seed only"),
        ("comparison", "Missing: the spread over seeds is not known, since every setting has one seed."),
    ):
        assert lack in text.partition(f'<section id="{name}">')[2].partition("</section>")[0]
    assert 'id="missing"' not in text


def test_the_page_names_the_study(report: Path) -> None:
    text = (report / "index.html").read_text()
    assert "<title>Report on capacity" in text
    assert ">Report on capacity</h1>" in text
    assert "<h2>Runs of capacity</h2>" in text


def gappy() -> Results:
    """No SAP on one data set, no MIG for one method."""
    runs = settings()
    full = table(runs, SIX).table
    lost = ((full["score"] == "sap") & (full["data"] == "cars3d")) | (
        (full["score"] == "mig") & (full["method"] == "factor_vae")
    )
    return Results(full[~lost].reset_index(drop=True))


@pytest.mark.usefixtures("unwritten_figures")
def test_scores_that_some_runs_lack(tmp_path: Path) -> None:
    page = write_report(gappy(), tmp_path).read_text()
    for name in ("metrics", "methods", "transfer", "comparison"):
        assert f'<section id="{name}">' in page


@pytest.mark.usefixtures("unwritten_figures")
def test_one_run_has_a_report(tmp_path: Path) -> None:
    page = write_report(table(settings(["rooms"], ["vae"], [1.0], 1), SIX), tmp_path)
    assert "1 run of 1 method (vae), 1 setting and up to 1 seed, on 1 data set (rooms)" in page.read_text()


@pytest.mark.usefixtures("unwritten_figures")
def test_two_sources_on_one_page(tmp_path: Path) -> None:
    both = combine(*(table(settings(["dsprites"], source=name), PAIR) for name in ("own", "published")))
    text = write_report(both, tmp_path).read_text()
    assert (
        text.index('id="agreement"') < text.index('id="own-metrics"') < text.index('id="published-metrics"')
    )
    assert (tmp_path / "figures" / "own-scores_by_method.pdf").is_file()
    assert (tmp_path / "tables" / "agreement.csv").is_file()


def test_codes_that_no_run_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UnweaveError, match='no report can be made: own runs: there are no scores of "sampled" codes'
    ):
        write_report(table(settings(), SIX), tmp_path, representation="sampled")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnweaveError, match="cannot write the report into"):
        write_report(table(settings(), SIX), tmp_path / "file")


@pytest.mark.usefixtures("unwritten_figures")
def test_names_from_tables_are_escaped(tmp_path: Path) -> None:
    odd = (["<script>alert(1)</script>"], ["</script><b>"])
    both = combine(*(table(settings(*odd, source=name), PAIR) for name in ("<i>", "published")))
    text = write_report(both, tmp_path).read_text()
    assert "<script>alert" not in text
    assert "</script><b>" not in text
    assert "<i>" not in text


@pytest.mark.usefixtures("unwritten_figures")
def test_without_altair_the_page_says_how_to_get_it_and_progress_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactive, "can_draw", lambda: False)
    reports: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, what: str = "") -> None:
        reports.append((done, total, what))

    results = table(settings(["dsprites"]), {"mig": SIX["mig"]})
    text = write_report(results, tmp_path, progress=progress).read_text()
    assert "pip install unweave[report]" in text
    assert "vegaEmbed" not in text
    assert reports[0] == (0, len(SECTIONS), "own: reconstructions")
    assert reports[-1][:2] == (len(SECTIONS), len(SECTIONS))


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
def test_a_browser_shows_the_page_without_errors(report: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    ]
    flags += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
    flags += ["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"]
    # What is not on the disk goes to a port on which no process listens, so a request would be an error.
    flags += ["--proxy-server=127.0.0.1:9", "--log-level=0"]
    done = subprocess.run(
        [CHROMIUM, *flags, (report / "index.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    shown = done.stdout
    assert len(re.findall(r'<figure id="figure-', shown)) == len(FIGURES) + 2
    # Both charts were drawn, with the choices that filter them.
    assert shown.count('class="marks"') == 2
    assert shown.count("<select") == 4 + 2


def test_the_document_of_nothing_is_a_page(tmp_path: Path) -> None:
    assert document(Page(tmp_path)).startswith("<!DOCTYPE html>")
