"""The documentation builds, is complete, agrees with the code, and its examples are true."""

import dataclasses
import doctest
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pandas as pd
import pytest
import torch

from training.tiny import TINY
from unweave.data import CATALOGUE
from unweave.data.collection import Continuous
from unweave.data.entry import Entry
from unweave.data.files import OfficialFile
from unweave.methods import METHODS, Method
from unweave.metrics import METRICS
from unweave.runs.spec import RunSpec
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = DOCS.parent / "benchmarks" / "results"
HEADINGS = ["What it shows", "Factors", "Get it", "In unweave", "Differences", "Licence and citation"]
METHOD_HEADINGS = [
    "Paper",
    "Objective",
    "Usage",
    "Settings",
    "Logged quantities",
    "Differences",
    "Comparison with published results",
    "Citation",
]
LARGEST_PICTURE = 250_000
# `python -m sphinx` with fewer garbage collections, which take an eighth of its time.
SPHINX = """
import gc, sys
from sphinx.cmd.build import main
gc.set_threshold(100_000, 20, 20)
sys.exit(main(sys.argv[1:]))
"""
FILES = list(dict.fromkeys(file for entry in CATALOGUE for file in entry.files))

with_each_data_set = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
with_each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def page_of(entry: Entry) -> str:
    """The page that the row of a data set in the overview links to."""
    link = re.search(rf"\[`{entry.name}`\]\((\w+\.md)\)", (DOCS / "data/index.md").read_text())
    assert link, f"docs/data/index.md has no link to the page of {entry.name}"
    return (DOCS / "data" / link[1]).read_text()


def page_of_method(name: str) -> str:
    """The page that the row of a method in the overview links to."""
    link = re.search(rf"\[`{name}`\]\((\w+\.md)\)", (DOCS / "methods/index.md").read_text())
    assert link, f"docs/methods/index.md has no link to the page of {name}"
    return (DOCS / "methods" / link[1]).read_text()


def test_pages_build_without_a_warning(tmp_path: Path) -> None:
    # The plain theme: the sidebar of the real one takes a third of the time.
    options = ["-W", "--keep-going", "-q", "-D", "html_theme=basic", "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-c", SPHINX, *options, DOCS, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "404.html").exists()
    commands = (tmp_path / "reference" / "commands.html").read_text()
    for option in ("--checkpoint-every", "--within", "--shard", "--keep-codes"):
        assert option in commands
    objects = zlib.decompress((tmp_path / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]).decode()
    for name in (
        "unweave.evaluate py:function",
        "unweave.Run.encode py:method",
        "unweave.metrics.mig py:function",
    ):
        assert f"{name} " in objects


def test_a_site_of_several_versions_lists_them_in_the_sidebar(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# A page\n")
    options = ["-m", "sphinx", "-W", "-q", "-c", str(DOCS), "-b", "html"]
    done = subprocess.run(
        [sys.executable, *options, str(tmp_path), str(tmp_path / "site")],
        env=os.environ | {"UNWEAVE_DOCS_VERSIONS": "stable=/stable/ 0.1=/0.1/"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    links = re.findall(r'href="(/[^"]+/)">([^<]+)<', page)
    assert links == [("/stable/", "stable"), ("/0.1/", "0.1")]


def test_every_public_module_has_a_page_of_the_reference() -> None:
    stated = re.findall(r"^\| `([\w.]+)` \|", (DOCS / "api.md").read_text(), re.MULTILINE)
    pages = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    assert stated == [module for module in stated if f"<!-- public names of {module} -->" in pages]


def test_the_list_of_benchmarks_is_complete() -> None:
    folder = DOCS.parent / "benchmarks"
    listed = set(re.findall(r"`([\w*]+\.(?:py|toml))`", (folder / "README.md").read_text()))
    assert {name for pattern in listed for name in (path.name for path in folder.glob(pattern))} == {
        path.name for path in folder.iterdir() if path.suffix in (".py", ".toml")
    }


def test_links_of_pages_outside_the_docs_lead_to_files() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "zoo/README.md"):
        page = DOCS.parent / name
        links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_numbers_of_methods_and_metrics_are_true(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"(\d+)\s+methods", text)) == {str(len(METHODS))}
    assert set(re.findall(r"(\d+)\s+metrics", text)) == {str(len(METRICS))}


@pytest.mark.parametrize(
    "page",
    sorted(path for path in DOCS.rglob("*.md") if ">>> " in path.read_text()),
    ids=lambda path: str(path.relative_to(DOCS)),
)
def test_examples_are_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0


@with_each_data_set
def test_each_data_set_has_a_page(entry: Entry) -> None:
    page = page_of(entry)
    key = re.match(r"@\w+\{(\w+),", entry.card.citation)
    assert key
    assert f"`{entry.name}`" in page or f'load("{entry.name}")' in page
    assert f"{{{key[1]}," in page
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    if not entry.wanted:
        assert ">>> " in page, "what needs no file is shown by examples that are run"


@with_each_data_set
def test_pages_say_what_the_code_says(entry: Entry) -> None:
    page, overview = page_of(entry), (DOCS / "data/index.md").read_text()
    row = next(line for line in overview.splitlines() if f"[`{entry.name}`]" in line)
    assert f"{entry.images:,}" in row
    assert f"{entry.channels} x {entry.side} x {entry.side}" in row
    assert row.endswith(" no |") == (not entry.wanted)
    for factor in entry.factors:
        values = (
            f"{factor.low:g} to {factor.high:g} | continuous"
            if isinstance(factor, Continuous)
            else (f"{factor.size} | {factor.kind}")
        )
        assert f"| `{factor.name}` | {values} |" in page


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_pages_name_the_official_files(file: OfficialFile) -> None:
    pages = "".join(path.read_text() for path in sorted((DOCS / "data").glob("*.md")))
    assert file.name in pages
    assert file.checksum.partition(":")[2] in pages
    assert file.size is None or f"| {file.size:,} |" in pages
    for url in file.urls:  # the address of a folder may stand for those of its files
        assert f"<{url}>" in pages or f"<{url.removesuffix(file.name)}>" in pages


def test_pictures_are_small_and_used() -> None:
    pages = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size <= LARGEST_PICTURE
        assert f"pictures/{picture.name}" in pages


@with_each_method
def test_each_method_has_a_page(method: type[Method]) -> None:
    page = page_of_method(method.name)
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == METHOD_HEADINGS
    assert f"`{method.name}`" in page
    assert f"unweave train {method.name} " in page
    assert f"unweave.methods.{method.__name__}(" in page
    assert method.citation in page
    for setting in dataclasses.fields(method):
        default = f"{setting.default:,g}" if isinstance(setting.default, float) else str(setting.default)
        in_a_table = default.replace("|", "\\|")
        assert f"| `{setting.name}` | {in_a_table} |" in page


@with_each_method
def test_pages_of_methods_without_a_prior_promise_no_samples(method: type[Method]) -> None:
    text = " ".join(page_of_method(method.name).split())
    if not method().has_samples(RunSpec(method()).latents):
        for said in re.findall(r"`Run\.sample`[^.]*\.", text):
            assert "is refused" in said


@with_each_method
def test_pages_name_the_logged_quantities(method: type[Method]) -> None:
    spec, cpu = RunSpec(method(), data=TINY.name, batch=4, latents=3), torch.device("cpu")
    source = HostBatches(TINY, cpu)
    sizes = source.label_sizes(spec.method.sampling)
    update = Update(Population([spec], TINY.shape, cpu, sizes), source, len(TINY))
    update.run(1)
    rows = page_of_method(method.name).partition("## Logged quantities")[2].partition("##")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) == set(update.terms[0])


def test_the_training_page_has_the_defaults_of_a_run() -> None:
    page = (DOCS / "training.md").read_text()
    for field in dataclasses.fields(RunSpec):
        if field.name not in ("method", "learning_rate", "gradient_clip", "plugins"):
            default = f"{field.default:,}" if isinstance(field.default, int) else field.default
            option = field.name.replace("_", "-")
            assert f"| `--{option}` | `{field.name}` | {default} |" in page


def test_pages_show_the_runs_that_were_measured() -> None:
    runs = pd.read_csv(MEASURED / "2026-11-15-h200-mini-study.csv")
    assert len(runs) == 50
    overview = (DOCS / "training_results.md").read_text().splitlines()
    settings = runs.groupby(["method", "strength"])
    assert len(settings) == 36
    for (method, strength), rows in settings:
        [line] = [line for line in overview if line.startswith(f"| `{method}` {strength:g} |")]
        assert line in page_of_method(str(method)).splitlines()
        for score, digits in (("elbo.reconstruction", 1), ("elbo.kl", 2), ("mig", 3), ("sap", 3)):
            for value in rows[score]:
                assert f"{value:.{digits}f} (" in line


@pytest.mark.parametrize("page", ["comparison", "weak_supervision"])
def test_medians_are_of_the_runs_that_were_measured(page: str) -> None:
    runs = pd.read_csv(MEASURED / f"2026-11-15-h200-{page.replace('_', '-')}.csv")
    text = (DOCS / f"{page}.md").read_text()
    names = {"ada_gvae": "Ada-GVAE", "beta_vae": "beta-VAE"}
    for _, rows in runs.groupby(["method", "setting"], dropna=False):
        first = rows.iloc[0]
        start = f"| `{first['method']}"
        if page == "weak_supervision":
            start = f"| {names[first['method']]} | {first['strength']:g} | {len(rows)} |"
        digits = 3 if page == "weak_supervision" else 2
        middle = f"{rows['mig'].median():.{digits}f} ({rows['mig'].min():.2f} to {rows['mig'].max():.2f})"
        assert any(line.startswith(start) and middle in line for line in text.splitlines())


def test_medians_at_full_length_are_of_the_runs_that_were_measured() -> None:
    runs = pd.read_csv(MEASURED / "2026-11-16-h200-full-length.csv")
    lines = (DOCS / "comparison.md").read_text().splitlines()
    assert runs.groupby("method").size().tolist() == [5] * 6
    for method, rows in runs.groupby("method"):
        line = next(line for line in lines if line.startswith(f"| `{method}` |"))
        for score in ("mig", "dci.disentanglement", "factor_vae_score.eval_accuracy"):
            scores = rows[score]
            assert f"| {scores.median():.2f} ({scores.min():.2f} to {scores.max():.2f}) |" in line


def test_medians_of_gans_are_of_the_runs_that_were_measured() -> None:
    runs = pd.read_csv(MEASURED / "2026-11-15-h200-info-gan.csv")
    assert runs.groupby(["method", "updates"]).size().tolist() == [3] * 10
    for (method, updates), rows in runs.groupby(["method", "updates"]):
        scores = [rows[name] for name in ("factor_vae_score.eval_accuracy", "mig", "dci.disentanglement")]
        cells = " | ".join(f"{s.median():.2f} ({s.min():.2f} to {s.max():.2f})" for s in scores)
        start = f"| `{method}` | 3 |" if method == "info_gan_cr" else f"| {updates:,} |"
        assert f"{start} {cells} |" in page_of_method(str(method))


def test_the_throughput_is_the_one_that_was_measured() -> None:
    printed = (MEASURED / "2026-11-15-h200-training.txt").read_text()
    page = (DOCS / "training_results.md").read_text()
    found = re.findall(r"population of (\d+), \w+ +([\d.,]+) model-steps/s +([\d.]+) x", printed)
    assert len(found) == 12
    for runs, rate, ratio in found:
        row = next(line for line in page.splitlines() if line.startswith(f"| {runs} |"))
        assert f" {int(float(rate.replace(',', '')) + 0.5):,} ({ratio}x) |" in row
