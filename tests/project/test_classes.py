"""A class of the package is abstract or final: what can be used is never inherited from."""

import importlib
import inspect
import pkgutil
from typing import Any

import unweave


def _classes() -> set[type[Any]]:
    """All classes that modules of the package define; modules for which an extra is missing are left out."""
    classes = set()
    for module in pkgutil.walk_packages(unweave.__path__, "unweave."):
        if module.name == "unweave.__main__":
            continue
        try:
            members = vars(importlib.import_module(module.name)).values()
        except ImportError:
            continue
        classes |= {kind for kind in members if inspect.isclass(kind) and kind.__module__ == module.name}
    return classes


def _can_be_used(kind: type[Any]) -> bool:
    """Whether it can be instantiated, as far as abstract methods and values say."""
    return not (inspect.isabstract(kind) or getattr(kind, "_is_protocol", False))


def test_nothing_inherits_from_a_class_that_can_be_used() -> None:
    classes = _classes()
    assert len(classes) > 200
    wrong = [
        f"{kind.__module__}.{kind.__name__} inherits from {parent.__name__}"
        for kind in classes
        for parent in kind.__bases__
        if parent in classes and _can_be_used(parent) and not issubclass(parent, BaseException)
    ]
    assert not wrong, "\n".join(sorted(wrong))
