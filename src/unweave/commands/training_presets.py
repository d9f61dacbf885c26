"""Settings that `unweave train --preset NAME` starts from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Settings to start from; those of a method stand above those of all."""

    shared: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields of RunSpec
    steps: dict[str, int] = dataclasses.field(default_factory=dict)  # by method
    settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)  # by method


PRESETS = {
    # The published FactorVAE models made half of the updates of the others.
    "study": Preset(steps={"factor_vae": 150_000}),
    "quick": Preset(
        {"steps": 3000, "batch": 32, "learning_rate": 1e-3, "schedule": "linear"},
        settings={"beta_vae": {"beta": 16.0}},
    ),
}
