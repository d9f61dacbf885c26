"""Methods of learning a representation: one paper, one file, one line in METHODS."""

from __future__ import annotations

import re
import sys
from dataclasses import fields

from torch import Tensor

from unweave.errors import UnweaveError, did_you_mean
from unweave.methods.aae import AAE
from unweave.methods.ae import AE
from unweave.methods.annealed_vae import AnnealedVAE
from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.dip_vae import DIPVAE1, DIPVAE2
from unweave.methods.factor_vae import FactorVAE
from unweave.methods.info_vae import InfoVAE
from unweave.methods.method import Method, Setting, numeric_settings
from unweave.methods.vae import VAE

__all__ = [
    "AAE",
    "AE",
    "DIPVAE1",
    "DIPVAE2",
    "METHODS",
    "VAE",
    "AnnealedVAE",
    "BetaTCVAE",
    "BetaVAE",
    "FactorVAE",
    "InfoVAE",
    "Method",
    "method_named",
    "settings_of",
    "summary",
]

METHODS: tuple[type[Method], ...] = (
    VAE,
    AE,
    BetaVAE,
    AnnealedVAE,
    FactorVAE,
    BetaTCVAE,
    DIPVAE1,
    DIPVAE2,
    InfoVAE,
    AAE,
)


def method_named(name: str) -> type[Method]:
    """The method of that name.

    >>> method_named("beta_vae")(beta=2.0)
    BetaVAE(beta=2.0)
    """
    names = [method.name for method in METHODS]
    if name not in names:
        raise UnweaveError(f'there is no method "{name}". {did_you_mean(name, names)}')
    return METHODS[names.index(name)]


def summary(kind: type[Method]) -> str:
    """What a method is, in a line: the first of its module.

    >>> summary(BetaVAE)
    'beta-VAE: more weight on the divergence from the prior.'
    """
    text = sys.modules[kind.__module__].__doc__ or ""
    return re.sub(r" \[\d+\]", "", text.splitlines()[0])


def settings_of(method: Method) -> dict[str, Setting | str | bool]:
    """The settings of a method by name, in plain Python: beta=4 and beta=4.0 give the same 4.0.

    >>> settings_of(BetaVAE(beta=4))
    {'beta': 4.0}
    """
    numeric = numeric_settings(method)
    settings = {each.name: getattr(method, each.name) for each in fields(method)}
    # Settings are never negative; abs makes -0.0 the 0.0 that it is equal to.
    return {
        name: abs(float(value)) if name in numeric and not isinstance(value, Tensor) else value
        for name, value in settings.items()
    }
