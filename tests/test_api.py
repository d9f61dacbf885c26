"""`import unweave` is cheap, and every name that the documentation uses works after it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unweave
from unweave.errors import UnweaveError
from unweave.plugins.loading import GROUPS
from unweave.training.trainer import Stopped

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RESOLVE = """
import json, sys
import unweave
heavy = [name for name in ("torch", "numpy", "pandas", "matplotlib", "rich") if name in sys.modules]
failed = []
for name in json.load(sys.stdin):
    found = unweave
    try:
        for part in name.split(".")[1:]:
            found = getattr(found, part)
    except Exception as error:
        failed.append(f"{name}: {error}")
print(json.dumps([heavy, failed]))
"""
# No `if __name__ == "__main__"`: workers must not run the script again.
SCRIPT = """
import sys
import unweave

sys.modules["altair"] = None  # a report without charts: importing what draws them takes seconds
print("started")
runs = unweave.study.grid([{"name": "vae"}], data="dsprites", seed="0-1", steps=2, batch=4, latents=2)
spec = unweave.study.StudySpec("small", runs, metrics="mig", representations=("mean",), points=(60, 30))
result = unweave.study(spec, out="small", device="cpu", workers=1, progress=False)
print(result)
print(result.means().columns.tolist())
chosen = unweave.select(result, by="centrality", images=100, device="cpu")
print(len(chosen.table), chosen.save().name)
report = unweave.report(result, out="report", scores="mig")
print(report)
for shown in (result, chosen, report):
    assert shown._repr_html_().startswith("<div>")
again = unweave.study("small", device="cpu", workers=1, progress=False)
assert again.table.equals(result.table)
"""


def documented_names() -> list[str]:
    """All dotted names of unweave in README and docs; groups of entry points are no names of Python."""
    text = "\n".join(page.read_text() for page in PAGES)
    return sorted(set(re.findall(r"\bunweave(?:\.[A-Za-z_]\w*)+", text)) - set(GROUPS.values()))


def test_documented_names_work_after_import_unweave_alone() -> None:
    names = documented_names()
    public = [f"unweave.{name}" for name in unweave.__all__]
    assert {"unweave.gallery.draw_pictures", "unweave.study.StudySpec"} < set(names)
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        input=json.dumps(names + public),
        capture_output=True,
        text=True,
        check=True,
    )
    heavy, failed = json.loads(done.stdout)
    assert heavy == []
    assert failed == []


def test_the_python_page_names_everything_public() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    missing = [name for name in unweave.__all__ if f"unweave.{name}" not in page and name != "__version__"]
    assert missing == []


def test_names_that_do_not_exist_are_refused() -> None:
    for package, name in ((unweave, "nonsense"), (unweave, "_private"), (unweave.data, "nonsense")):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute '{name}'"):
            getattr(package, name)


def test_errors_can_be_caught_by_their_public_names() -> None:
    assert unweave.UnweaveError is UnweaveError
    assert unweave.Stopped is Stopped
    assert issubclass(unweave.Stopped, KeyboardInterrupt)
    assert not issubclass(unweave.Stopped, Exception)


def test_study_select_and_report_are_functions(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "started",
        "StudyResult('small', 2 scores of 2 runs)",
        "['data', 'method', 'setting', 'representation', 'mig']",
        "2 selection.parquet",
        "Report('report/index.html')",
    ]
    assert (tmp_path / "small" / "results.parquet").is_file()
    assert "<title>Report on " in (tmp_path / "report" / "index.html").read_text()


def test_wrong_subjects_are_one_sentence() -> None:
    study: Any = unweave.study
    report: Any = unweave.report
    select: Any = unweave.select
    calls: dict[str, Any] = {
        "a study that is no StudySpec must be named by its path; got 3": lambda: study(3),
        'there is no study "smok"': lambda: study("smok"),
        "a study or a table of results must be named by its path; got 3": lambda: report(3),
        "name what to report on": lambda: report(),
        "the folder of a study or of runs must be named by its path; got None": lambda: select(None),
        "there is no folder nowhere": lambda: select("nowhere"),
        'runs cannot be chosen by "udrr"': lambda: select(".", by="udrr"),
        "nowhere is not the folder of a run": lambda: unweave.draw("nowhere"),
    }
    for message, call in calls.items():
        with pytest.raises(UnweaveError, match=re.escape(message)):
            call()
