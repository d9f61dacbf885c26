"""What a run is: plain data, written as JSON, known by the hash of its content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import METHODS, method_named, settings_of
from unweave.methods.method import Method
from unweave.nn.distributions.likelihood import LIKELIHOODS, Likelihood
from unweave.nn.layers.precision import PRECISIONS, Precision
from unweave.nn.networks.vae import ARCHITECTURES, Architecture
from unweave.nn.schedule import SCHEDULES, Schedule

VERSION = 1


@dataclass(frozen=True)
class RunSpec:
    """One model to train. Two runs with the same spec are the same run, and give the same numbers."""

    method: Method
    """The method and its settings."""
    data: str = "dsprites"
    """The data set, as in `unweave data list`."""
    seed: int = 0
    """The seed of everything that is random."""
    steps: int = 300_000
    """Updates of the networks."""
    batch: int = 64
    """Images a step."""
    latents: int = 10
    """Dimensions of the code."""
    architecture: Architecture = "released"
    """The networks: released (of the published models), table2 (of their paper), or mlp."""
    likelihood: Likelihood = "bernoulli"
    """p(x|z): bernoulli or gaussian."""
    learning_rate: float = 1e-4
    """Of the autoencoder's Adam."""
    schedule: Schedule = "constant"
    """How the learning rate changes over the steps: constant, linear or cosine (both down to 0)."""
    gradient_clip: float | None = None
    """The largest norm of a run's gradient; None: whatever comes."""
    precision: Precision = "float32"
    """Arithmetic of the networks: float32, tf32 or bf16. Weights are kept in float32."""

    def __post_init__(self) -> None:
        _check_method(self.method)
        if not isinstance(self.data, str):
            raise UnweaveError(f"data must be the name of a data set; got {self.data!r}.")
        # Numbers become plain ones, so that 1, 1.0 and NumPy's 1 make the same spec with the same id.
        for name, least in (("seed", 0), ("steps", 1), ("batch", 2), ("latents", 1)):
            object.__setattr__(self, name, _whole_number(name, getattr(self, name), least))
        object.__setattr__(self, "learning_rate", _positive("learning_rate", self.learning_rate))
        if self.gradient_clip is not None:
            object.__setattr__(self, "gradient_clip", _positive("gradient_clip", self.gradient_clip))
        _one_of("architecture", self.architecture, ARCHITECTURES)
        _one_of("likelihood", self.likelihood, LIKELIHOODS)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("precision", self.precision, PRECISIONS)
        if self.precision == "bf16" and self.method.exact_weights:
            raise UnweaveError(
                f"{self.method.name} has a loss of its weights, which does not bear their rounding to bf16. "
                "Use precision tf32 or float32."
            )

    @property
    def id(self) -> str:
        """A name made of the content: equal specs have equal names."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "method"}
        method = {"name": self.method.name, **settings_of(self.method)}
        return {"version": VERSION, "method": method, **plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunSpec:
        """The spec that `to_dict` wrote."""
        if not isinstance(plain, Mapping):
            raise UnweaveError(f"a spec must be a dict of fields; got {plain!r}.")
        fields = dict(plain)
        version = fields.pop("version", None)
        if version != VERSION:
            raise UnweaveError(
                f"this spec is of version {version}; this unweave reads version {VERSION}. Use the unweave "
                "that wrote it."
            )
        known = [f.name for f in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise UnweaveError(f'a spec has no field "{name}". {did_you_mean(name, known)}')
        if not isinstance(fields.get("method"), Mapping) or "name" not in fields["method"]:
            raise UnweaveError('a spec needs a method, such as {"name": "beta_vae", "beta": 4}.')
        settings = dict(fields.pop("method"))
        return cls(method=method_with(str(settings.pop("name")), settings), **fields)


def method_with(name: str, settings: Mapping[str, Any]) -> Method:
    """The method of that name with some settings other than its defaults."""
    kind = method_named(name)
    known = [f.name for f in dataclasses.fields(kind)]
    for setting in settings:
        if setting not in known:
            hint = did_you_mean(setting, known) if known else "It has none."
            raise UnweaveError(f'{name} has no setting "{setting}". {hint}')
    method: Method = kind(**settings)
    return method


def _check_method(method: object) -> None:
    if not isinstance(method, Method):
        raise UnweaveError(
            f"method must be a method with its settings, such as BetaVAE(beta=4); got {method!r}."
        )
    if type(method) not in METHODS:
        raise UnweaveError(
            f"{type(method).__name__} is not one of the methods of this unweave, so its runs could not be "
            "opened again. Add it to METHODS in unweave/methods/__init__.py of a development installation."
        )
    for name, value in settings_of(method).items():
        if isinstance(value, Tensor):
            raise UnweaveError(f"{name} of {method.name} must be one number for one run; got {value!r}.")


def _whole_number(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UnweaveError(f"{name} must be a whole number >= {least}; got {value!r}.")
    return int(value)


def _positive(name: str, value: object) -> float:
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value)
        if 0 < number < math.inf:
            return number
    raise UnweaveError(f"{name} must be a number greater than 0; got {value!r}.")


def _one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnweaveError(f'there is no {what} "{value}". {did_you_mean(str(value), known)}')
