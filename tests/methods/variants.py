"""The methods with each of their choices and switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from unweave.methods import METHODS, S2BetaVAE
from unweave.methods.method import Method
from unweave.methods.semi_supervised import SemiSupervised

SHARED = [kind for kind in METHODS if not kind.own_networks]
OWN = [kind for kind in METHODS if kind.own_networks]
# Of networks that are large by default. What the tests look at does not depend on these sizes.
SIZES: dict[str, dict[str, Any]] = {
    "enc_diff": {"model_channels": 8, "levels": 1, "ddim_steps": 4},
    "style_gan2": {"channel_base": 128, "channel_max": 16, "mapping_layers": 2},
    "vd_vae": {"width": 16},
}


def variants(kind: type[Method]) -> list[Method]:
    """A method by its defaults, but for sizes, and with each choice or switch changed, one at a time."""
    kinds, sizes = get_type_hints(kind), SIZES.get(kind.name, {})
    methods = [kind(**sizes)]
    for setting in fields(kind):
        if _seen_elsewhere(kind, setting.name) or setting.default is MISSING:
            continue
        hint = kinds[setting.name]
        choices = (False, True) if hint is bool else get_args(hint) if get_origin(hint) is Literal else ()
        others = [choice for choice in choices if choice not in (setting.default, "vgg")]
        settings: list[dict[str, Any]] = [{setting.name: choice} for choice in others]
        methods += [kind(**sizes, **one) for one in settings]
    return methods


def _seen_elsewhere(kind: type[Method], name: str) -> bool:
    """Labellers change no loss; and the settings that six methods share are tried with one of them."""
    shared = issubclass(kind, SemiSupervised) and kind is not S2BetaVAE
    return name == "labeller" or (shared and name in get_type_hints(SemiSupervised))


def every_variant(kinds: list[type[Method]]) -> Callable[[Callable[[Method], None]], Any]:
    """A test of one method, once for each kind, with all its variants."""

    def decorate(test: Callable[[Method], None]) -> Any:
        @pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.name)
        def test_of_kind(kind: type[Method]) -> None:
            for method in variants(kind):
                test(method)

        test_of_kind.__doc__ = test.__doc__
        return test_of_kind

    return decorate
