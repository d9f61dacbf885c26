"""A file of plug-ins as a user would write it: a method, a metric, a data set, a likelihood."""

from pathlib import Path

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unweave.data.grid import Card, Factor, GroundTruth
from unweave.methods.method import AUTOENCODER, Method, Losses, StepContext, Setting, elbo_terms
from unweave.nn.distributions.likelihood import Likelihood
from unweave.nn.networks.architectures import ARCHITECTURES, Architecture


@dataclass(frozen=True)
class MyVAE(Method):
    """My VAE: twice the KL divergence."""

    gamma: Setting = 2.0

    name: ClassVar[str] = "my_vae"
    citation: ClassVar[str] = "@misc{mine}"

    def losses(self, step: StepContext) -> Losses:
        forward = step.forward
        objective = forward.reconstruction + self.gamma * forward.kl
        return Losses({AUTOENCODER: objective}, elbo_terms(forward))


@dataclass(frozen=True)
class Shadow(MyVAE):
    """A method with the name of a built-in one."""

    name: ClassVar[str] = "beta_vae"


def mean_size(codes, factors):
    """Mean absolute code."""
    return float(np.abs(codes).mean())


def squares():
    def render(factors, _stream):
        rows = np.arange(32) // 4
        inside = (rows == factors[:, :1])[:, :, None] & (rows == factors[:, 1:])[:, None, :]
        return inside[:, None] * np.uint8(255)

    factors = (Factor("x", 8), Factor("y", 8))
    return GroundTruth("my_squares", factors, (1, 32, 32), render, Card("squares", "CC0", ""), "made up")


SQUARED = Likelihood("my_squared", "twice the squared distance", lambda s, x: 2 * (s.sigmoid() - x).square())
MLP = ARCHITECTURES["mlp"]
MY_MLP = Architecture("my_mlp", "dense layers", MLP.build_encoder, MLP.build_decoder)
'''


def write_plugin(folder: Path, extra: str = "") -> Path:
    """Write the file into a folder; another `extra` makes another version of it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.py"
    path.write_text(SOURCE + extra)
    return path


def install(site: Path, name: str, entry_points: dict[str, dict[str, str]], source: str = "") -> None:
    """What pip leaves of a distribution with one module and entry points by group."""
    info = site / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    sections = [
        f"[{group}]\n" + "".join(f"{key} = {place}\n" for key, place in parts.items())
        for group, parts in entry_points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(sections))
    (site / f"{name}.py").write_text(source or SOURCE)
