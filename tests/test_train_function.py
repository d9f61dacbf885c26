"""`unweave.train`: what it takes, what it shows, and what it refuses."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import unweave
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import BetaVAE
from unweave.training import memory
from unweave.training.trainer import Report

SETTINGS: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 2, "architecture": "mlp", "device": "cpu"}


def test_a_method_by_its_name_or_its_class(tmp_path: Path) -> None:
    by_object = unweave.train(BetaVAE(), TINY, out=tmp_path, **SETTINGS)
    for method in ("beta_vae", BetaVAE):
        assert unweave.train(method, TINY, out=tmp_path, **SETTINGS).path == by_object.path


def test_progress_is_shown_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports: list[Report] = []
    unweave.train("vae", TINY, out=tmp_path, **SETTINGS)
    assert re.fullmatch(r"step 3 of 3: reconstruction \S+ kl \S+\n", capsys.readouterr().err)
    unweave.train("vae", TINY, out=tmp_path, **SETTINGS)  # finished: nothing to show
    unweave.train("vae", TINY, out=tmp_path, seed=1, progress=False, **SETTINGS)
    unweave.train("vae", TINY, out=tmp_path, seed=2, tell=reports.append, **SETTINGS)
    assert capsys.readouterr() == ("", "")
    unweave.train("vae", TINY, out=tmp_path, seed=3, tell=reports.append, progress=True, **SETTINGS)
    assert capsys.readouterr().err.startswith("step 3 of 3: ")
    assert [report.step for report in reports] == [3, 3]


def test_a_notebook_gets_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(first: str, **_: Any) -> Any:
        shown.append(first)
        return SimpleNamespace(update=shown.append)

    shell = SimpleNamespace(kernel=object())
    modules: dict[str, Any] = {
        "IPython": SimpleNamespace(get_ipython=lambda: shell),
        "IPython.display": SimpleNamespace(HTML=str, display=display),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    unweave.train("vae", TINY, out=tmp_path, **SETTINGS)
    assert '<progress max="1" style' in shown[0]  # no value: nothing is known before the first report
    assert '<progress max="1" value="1.0000"' in shown[-1]
    assert "3/3 steps" in shown[-1]


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("got an array of shape (3, 32, 32). Wrap images: ", ("vae", np.zeros((3, 32, 32)))),
        ("got an array of shape (3, 1, 32, 32). Wrap images: ", ("vae", torch.zeros(3, 1, 32, 32))),
        ("data of your own; got None", ("vae", None)),
        ("data of your own; got <class", ("vae", type(TINY))),
        ('there is no method "beta_vea". Did you mean "beta_vae"?', ("beta_vea", TINY)),
        ("method must be a method with its settings, such as BetaVAE(beta=4)", (3, TINY)),
        ("method must be a method with its settings, such as BetaVAE(beta=4)", (torch.nn.Linear(1, 1), TINY)),
        ("method must be a method with its settings, such as BetaVAE(beta=4)", (TINY, "dsprites")),
    ],
)
def test_wrong_arguments_are_one_sentence(tmp_path: Path, message: str, arguments: Any) -> None:
    with pytest.raises(UnweaveError, match=re.escape(message)):
        unweave.train(*arguments, out=tmp_path, **SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: object) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(memory, "train_runs", train)
    with pytest.raises(UnweaveError, match="not even one run of vae fits into the memory of cpu"):
        unweave.train("vae", TINY, out=tmp_path, **SETTINGS)
