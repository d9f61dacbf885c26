"""Packages whose names are imported when they are first used, and packages that can be called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

NEEDS_TORCH = (
    "this needs torch, which is not installed. Install it with `pip install torch`. Data sets, metrics of "
    "arrays, reports and the page of a study work without it."
)
NOTHING: Mapping[str, str] = MappingProxyType({})


def lazy_names(package: str, defined_in: Mapping[str, str] = NOTHING) -> Callable[[str], Any]:
    """The `__getattr__` of a package: names by the modules that define them, and all submodules.

    After `import unweave` alone, `unweave.training.trainer.Stopped` then works. A name that needs torch
    raises an ImportError that says how to install it.
    """

    def get(name: str) -> Any:
        if name in defined_in:
            return getattr(_imported(defined_in[name]), name)
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _imported(f"{package}.{name}")

    return get


def _imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"{module}: {NEEDS_TORCH}", name="torch") from error


def make_callable(package: str, function: str) -> None:
    """Let a package be called like one of its functions: `unweave.study(...)`.

    A function of the package's name would be overwritten when a submodule is imported.
    """

    class CallableModule(ModuleType):
        def __call__(self, *args: Any, **options: Any) -> Any:
            return getattr(self, function)(*args, **options)

    sys.modules[package].__class__ = CallableModule
