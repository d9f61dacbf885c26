"""The code of the page about plug-ins runs, and its commands name what the code defines."""

import re
from pathlib import Path

import pytest

from unweave.data.opening import open_data
from unweave.metrics.lookup import metric_named
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.runs.spec import RunSpec, method_with

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()


def test_the_file_of_the_page_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)))
    monkeypatch.chdir(tmp_path)  # the last block of the page checks the parts when the file is loaded
    named = set(re.findall(r"(?<![/\w])mine\.py:\w+", PAGE))
    assert named == {f"mine.py:{name}" for name in ("MyVAE", "mean_size", "bars", "SQUARED")}
    spec = RunSpec(method_with("mine.py:MyVAE", {"gamma": 4.0}), likelihood="mine.py:SQUARED")
    assert len(spec.plugins) == 2
    assert metric_named("mine.py:mean_size").summary == "Mean absolute value of the codes."
    assert len(open_data("mine.py:bars")) == 64
    assert likelihood_named("mine.py:SQUARED").name == "squared"
