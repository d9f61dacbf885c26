"""The code of docs/integrations.md that is no doctest."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unweave
from loggers.trained import own_log, train
from training.tiny import TINY

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


def block_with(text: str) -> str:
    """The one block of Python code that has a text."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [block] = [block for block in blocks if text in block]
    return str(block)


def run_block(text: str, names: dict[str, Any]) -> dict[str, Any]:
    exec(block_with(text), names)  # noqa: S102  this is the project's own page
    return names


def test_the_logger_of_the_page_works(tmp_path: Path) -> None:
    (tmp_path / "my_logger.py").write_text(block_with("class CsvLogger"))
    assert train(tmp_path, f"{tmp_path / 'my_logger.py'}:CsvLogger") == []
    lines = (tmp_path / "seed0" / "CsvLogger" / "losses.csv").read_text().splitlines()
    written = [line.split(",") for line in lines if ",kl," in line]
    assert [(int(step), float(value)) for step, _, value in written] == own_log(tmp_path / "seed0")


def test_weights_fit_the_plain_layers_of_the_page(tmp_path: Path) -> None:
    """The published encoder, written with torch alone, computes what the run computes."""
    images = TINY.sample_images(6, 0).repeat(2, axis=2).repeat(2, axis=3)
    data = unweave.data.from_arrays(images)
    run = unweave.train("vae", data, out=tmp_path, steps=1, batch=4, device="cpu", progress=False)
    plain = run_block("class Encoder", {"nn": nn, "run": run})["plain"]
    mean, log_var = plain["encoder"](torch.from_numpy(images).float() / 255)
    assert np.allclose(mean.detach(), run.encode(images), atol=1e-6)
    assert np.allclose(log_var.detach(), run.posterior(images).log_var, atol=1e-6)


def test_the_search_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed; it is not among the test packages")
    monkeypatch.chdir(tmp_path)
    code = block_with("import optuna")
    for long, short in {
        "30_000": "1, batch=4, architecture='mlp'",
        "n_trials=20": "n_trials=2",
        'metrics="mig"': 'metrics="mig", points=(200, 100)',
    }.items():
        assert long in code
        code = code.replace(long, short)
    exec(code, {})  # noqa: S102  this is the project's own page
    assert len(list((tmp_path / "search").iterdir())) == 2
