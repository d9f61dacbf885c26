"""What a run is: plain data, written as JSON, known by the hash of its content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from unweave.data.catalogue import canonical_name
from unweave.errors import UnweaveError, did_you_mean
from unweave.methods import checked_method, is_built_in, method_named, settings_of
from unweave.methods.method import Method
from unweave.nn.distributions.likelihood import LIKELIHOODS, likelihood_named
from unweave.nn.layers.precision import PRECISIONS, Precision
from unweave.nn.networks.architectures import ARCHITECTURES, architecture_named
from unweave.nn.optimiser import optimiser_named
from unweave.nn.schedule import schedule_named
from unweave.plugins.loading import (
    Kind,
    Plugin,
    absolute,
    is_reference,
    origin_of,
    resolved,
    without_folder,
)

VERSION = 1
# Fields that name a part, besides the method, and the names of the built-in ones.
PLUGGABLE: Mapping[Kind, Collection[str]] = {"architecture": ARCHITECTURES, "likelihood": LIKELIHOODS}

# The fields that specs of this version have always had. Later fields are written only where they differ from
# their defaults, so that the ids of older specs do not change.
FIRST_FIELDS = (
    "data",
    "seed",
    "steps",
    "batch",
    "latents",
    "architecture",
    "likelihood",
    "learning_rate",
    "schedule",
    "gradient_clip",
    "precision",
)


@dataclass(frozen=True)
class RunSpec:
    """One model to train. Two runs with the same spec are the same run, and give the same numbers."""

    method: Method
    """The method and its settings."""
    data: str = "dsprites"
    """The data set, as in `unweave data list`, with a condition if wanted: dsprites:x~y=0.2."""
    seed: int = 0
    """The seed of everything that is random."""
    steps: int = 300_000
    """Updates of the networks."""
    batch: int = 64
    """Images a step."""
    latents: int = 10
    """Dimensions of the code."""
    architecture: str = "released"
    """The networks: released (of the published models), table2 (of their paper), mlp or resnet."""
    likelihood: str = "bernoulli"
    """p(x|z): bernoulli, gaussian, gaussian_unit, gaussian_learned, laplace or continuous_bernoulli."""
    learning_rate: float = 1e-4
    """Of the run's optimiser."""
    player_rate: float = 1.0
    """Factor on the learning rates that players, such as discriminators, have of their own."""
    optimiser: str = "adam"
    """The optimiser: adam, adamw (with decoupled weight decay) or compact_adam (bf16 moments on a GPU)."""
    weight_decay: float = 0.0
    """Of adamw: at each update weights shrink by this times the learning rate."""
    schedule: str = "constant"
    """How the learning rate changes over the steps: constant, linear or cosine (both down to 0)."""
    warmup: float = 0.0
    """Share of the steps over which the learning rate first rises from 0."""
    gradient_clip: float | None = None
    """The largest norm of a run's gradient; None: no limit."""
    precision: Precision = "float32"
    """Arithmetic of the networks: float32, tf32 or bf16. Weights are kept in float32."""
    plugins: tuple[Plugin, ...] = dataclasses.field(default=(), repr=False)
    """Where parts from outside the package came from; filled in automatically."""

    def __post_init__(self) -> None:
        _check_method(self.method)
        for kind in PLUGGABLE:
            if is_reference(getattr(self, kind)):
                object.__setattr__(self, kind, absolute(getattr(self, kind)))
        object.__setattr__(self, "plugins", _plugins_of(self))
        if not isinstance(self.data, str):
            raise UnweaveError(f"data must be the name of a data set; got {self.data!r}.")
        object.__setattr__(self, "data", canonical_name(self.data))
        # Numbers become plain ones, so that 1, 1.0 and NumPy's 1 make the same spec with the same id.
        for name, least in (("seed", 0), ("steps", 1), ("batch", 2), ("latents", 1)):
            object.__setattr__(self, name, _whole_number(name, getattr(self, name), least))
        for name in ("learning_rate", "player_rate"):
            object.__setattr__(self, name, _positive(name, getattr(self, name)))
        if self.gradient_clip is not None:
            object.__setattr__(self, "gradient_clip", _positive("gradient_clip", self.gradient_clip))
        architecture_named(self.architecture)
        likelihood_named(self.likelihood)
        schedule_named(self.schedule)
        object.__setattr__(self, "weight_decay", _not_negative("weight_decay", self.weight_decay))
        optimiser_named(self.optimiser, self.weight_decay)
        object.__setattr__(self, "warmup", _not_negative("warmup", self.warmup, below=1))
        _one_of("precision", self.precision, PRECISIONS)
        if self.precision == "bf16" and self.method.exact_weights:
            raise UnweaveError(
                f"{self.method.name} must not have its weights rounded to bf16. "
                "Use precision tf32 or float32."
            )

    @cached_property  # a study of thousands of runs asks for it several times
    def id(self) -> str:
        """A name made of the content: equal specs have equal names."""
        plain = self.to_dict()
        if self.plugins:  # where a plug-in lies does not matter, but what it is does
            plain["plugins"] = [plugin.identity for plugin in self.plugins]
            plain |= {name: without_folder(plain[name]) for name in PLUGGABLE}
        text = json.dumps(plain, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        changed = {f.name for f in dataclasses.fields(self) if values[f.name] != f.default}
        written = (set(FIRST_FIELDS) | changed) - {"method", "plugins"}
        plain = {name: value for name, value in values.items() if name in written}
        method = {"name": self.method.name, **_written_settings(self.method)}
        plugins = {"plugins": [plugin.to_dict() for plugin in self.plugins]} if self.plugins else {}
        return {"version": VERSION, "method": method, **plain, **plugins}

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
        plugins = tuple(Plugin.from_dict(plugin) for plugin in fields.pop("plugins", ()))
        kind: str | type[Method] = str(settings.pop("name"))
        for plugin in plugins:
            if plugin.kind == "method":
                kind = checked_method(plugin.load(), plugin.place)
        return cls(method=method_with(kind, settings), plugins=plugins, **fields)

    def changed_plugins(self) -> list[str]:
        """A sentence on each part from outside the package whose source is not what was recorded."""
        pairs = zip(self.plugins, _present_plugins(self), strict=True)
        sentences = [recorded.difference(present) for recorded, present in pairs]
        return [sentence for sentence in sentences if sentence is not None]


def method_with(method: str | type[Method], settings: Mapping[str, Any]) -> Method:
    """A method, or the one of that name, with some settings other than its defaults.

    A setting may have the name that it had in an earlier version.
    """
    kind = method_named(method) if isinstance(method, str) else method
    name = kind.name
    known = [f.name for f in dataclasses.fields(kind)]
    current = {kind.renamed.get(setting, setting): value for setting, value in settings.items()}
    for setting in current:
        if setting not in known:
            hint = did_you_mean(setting, known) if known else "It has none."
            raise UnweaveError(f'{name} has no setting "{setting}". {hint}')
    return kind(**current)


def spec_of(method: Method, **fields: Any) -> RunSpec:
    """A run of a method: fields that are not given have the method's defaults, or else those of RunSpec."""
    return RunSpec(method, **{**method.run_defaults, **fields})


def _written_settings(method: Method) -> dict[str, Any]:
    """The settings that a spec states: all but added ones at their defaults, under their first names."""
    defaults = {f.name: f.default for f in dataclasses.fields(method)}
    first_names = {new: old for old, new in method.renamed.items()}
    return {
        first_names.get(name, name): value
        for name, value in settings_of(method).items()
        if name not in method.added or value != defaults[name]
    }


def _check_method(method: object) -> None:
    if not isinstance(method, Method):
        raise UnweaveError(
            f"method must be a method with its settings, such as BetaVAE(beta=4); got {method!r}."
        )
    if not is_built_in(type(method)):
        checked_method(type(method), type(method).__qualname__)
    for name, value in settings_of(method).items():
        if isinstance(value, Tensor):
            raise UnweaveError(f"{name} of {method.name} must be one number for one run; got {value!r}.")


def _plugins_of(spec: RunSpec) -> tuple[Plugin, ...]:
    """Where the parts that are not of the package came from; what a run recorded stays."""
    recorded = {(plugin.kind, plugin.name): plugin for plugin in spec.plugins}
    return tuple(recorded.get((plugin.kind, plugin.name), plugin) for plugin in _present_plugins(spec))


def _present_plugins(spec: RunSpec) -> list[Plugin]:
    """Where the parts that are not of the package are now."""
    plugins = [] if is_built_in(type(spec.method)) else [origin_of(type(spec.method), "method")]
    for kind, built_in in PLUGGABLE.items():
        named = getattr(spec, kind)
        pair = resolved(kind, named) if isinstance(named, str) and named not in built_in else None
        plugins += [] if pair is None else [pair[1]]
    return plugins


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


def _not_negative(name: str, value: object, below: float = math.inf) -> float:
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value)
        if 0 <= number < below:
            return number
    limit = "" if below == math.inf else f" and < {below:g}"
    raise UnweaveError(f"{name} must be a number >= 0{limit}; got {value!r}.")


def _one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnweaveError(f'there is no {what} "{value}". {did_you_mean(str(value), known)}')
