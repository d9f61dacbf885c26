"""A newcomer's day: every part from outside the package, in one study, to the report and the explorer."""

from pathlib import Path

import pandas as pd
import pytest

from command_line import run_here

PARTS = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from unweave.data.grid import Card, Factor, GroundTruth
from unweave.methods.method import AUTOENCODER, Method, Losses, StepContext, Setting, elbo_terms
from unweave.nn.distributions.likelihood import Likelihood
from unweave.nn.networks.architectures import Architecture
from unweave.nn.networks.resnet import ResNetDecoder, ResNetEncoder


@dataclass(frozen=True)
class MyVAE(Method):
    """My VAE: the KL divergence is weighted by gamma."""

    gamma: Setting = 2.0

    name: ClassVar[str] = "my_vae"
    citation: ClassVar[str] = ""

    def losses(self, step: StepContext) -> Losses:
        """The objective, and terms for the log."""
        forward = step.forward
        return Losses({AUTOENCODER: forward.reconstruction + self.gamma * forward.kl}, elbo_terms(forward))


def mean_size(codes, factors):
    """Mean absolute value of the codes."""
    return float(np.abs(codes).mean())


def bars():
    """One horizontal and one vertical bar."""

    def render(factors, stream):
        bar = np.arange(28) // 4
        rows, columns = bar == factors[:, :1], bar == factors[:, 1:]
        return (rows[:, :, None] | columns[:, None, :])[:, None] * np.uint8(255)

    factors = (Factor("row", 7), Factor("column", 7))
    return GroundTruth("bars", factors, (1, 28, 28), render, Card("bars", "none", ""), "made up")


MY_RESNET = Architecture("my_resnet", "residual blocks", ResNetEncoder, ResNetDecoder)
MY_LAPLACE = Likelihood("my_laplace", "scale 1/2", lambda output, x: 2 * (torch.sigmoid(output) - x).abs())
'''
STUDY = """
name = "newcomer"
metrics = ["mig", "modularity", "parts.py:mean_size"]
representations = ["mean"]
points = [40, 20]
[shared]
data = "parts.py:bars"
architecture = "parts.py:MY_RESNET"
likelihood = "parts.py:MY_LAPLACE"
optimiser = "adamw"
weight_decay = 0.01
seed = "0-1"
steps = 4
batch = 4
latents = 2
[[methods]]
name = "parts.py:MyVAE"
gamma = [1, 4]
[[methods]]
name = "beta_vae"
"""


def run(*words: str) -> None:
    """Run a command, which must succeed."""
    done = run_here(*words)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("quick_fonts")
def test_all_parts_from_outside_in_one_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    run("study", "run", "study.toml", "-o", "study", "--device", "cpu", "--workers", "1")
    table = pd.read_parquet("study/results.parquet")
    assert table["run"].nunique() == 6
    assert set(table["method"]) == {"my_vae", "beta_vae"}
    assert set(table["data"]) == {"bars"}
    assert table["score"].str.contains("mean_size").any()
    run("report", "study", "-o", "report")
    assert "my_vae" in Path("report/index.html").read_text()
    [first, *_] = sorted(Path("study/runs").glob("my_vae-*"))
    run("explore", str(first), "--export", "page.html")
    assert Path("page.html").stat().st_size > 10_000
