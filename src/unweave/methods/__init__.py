"""Methods of learning a representation: one paper, one file, one line in METHODS."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, get_type_hints

from torch import Tensor

from unweave.errors import UnweaveError
from unweave.lazy import lazy_names
from unweave.methods.aae import AAE
from unweave.methods.aae_classes import AAEClusters, AAEHeads, AAELabels, AAESupervised
from unweave.methods.ada_vae import AdaGVAE, AdaMLVAE, GVAELabels, MLVAELabels
from unweave.methods.adversarial_split import AdversarialSplit
from unweave.methods.ae import AE
from unweave.methods.annealed_vae import AnnealedVAE
from unweave.methods.beta_tcvae import BetaTCVAE
from unweave.methods.beta_vae import BetaVAE
from unweave.methods.dip_vae import DIPVAE1, DIPVAE2
from unweave.methods.drnet import DrNet
from unweave.methods.elastic_info_gan import ElasticInfoGAN
from unweave.methods.enc_diff import EncDiff
from unweave.methods.f_statistic import FStatistic
from unweave.methods.factor_qvae import FactorQVAE
from unweave.methods.factor_vae import FactorVAE
from unweave.methods.generalized_m2 import GeneralizedM2
from unweave.methods.glow import Glow
from unweave.methods.group_vae import GVAE, MLVAE
from unweave.methods.info_gan import InfoGAN
from unweave.methods.info_gan_cr import InfoGANCR
from unweave.methods.info_vae import InfoVAE
from unweave.methods.ladder_vae import LadderVAE
from unweave.methods.lord import LORD
from unweave.methods.m1 import M1
from unweave.methods.m1_m2 import M1M2
from unweave.methods.m2 import M2
from unweave.methods.method import Method, Setting, is_known_type, numeric_settings
from unweave.methods.qlae import QLAE
from unweave.methods.semi_supervised import (
    S2DIPVAE1,
    S2DIPVAE2,
    S2AnnealedVAE,
    S2BetaTCVAE,
    S2BetaVAE,
    S2FactorVAE,
)
from unweave.methods.style_gan2 import StyleGAN2
from unweave.methods.supervised import Supervised
from unweave.methods.tripod import Tripod
from unweave.methods.vae import VAE
from unweave.methods.vd_vae import VDVAE
from unweave.methods.vlae import VLAE
from unweave.plugins.loading import (
    check_entry_name,
    installed_parts,
    load_reference,
    plugin_place,
    refuse_built_in,
)

__all__ = [
    "AAE",
    "AE",
    "DIPVAE1",
    "DIPVAE2",
    "GVAE",
    "LORD",
    "M1",
    "M1M2",
    "M2",
    "METHODS",
    "MLVAE",
    "QLAE",
    "S2DIPVAE1",
    "S2DIPVAE2",
    "VAE",
    "VDVAE",
    "VLAE",
    "AAEClusters",
    "AAEHeads",
    "AAELabels",
    "AAESupervised",
    "AdaGVAE",
    "AdaMLVAE",
    "AdversarialSplit",
    "AnnealedVAE",
    "BetaTCVAE",
    "BetaVAE",
    "DrNet",
    "ElasticInfoGAN",
    "EncDiff",
    "FStatistic",
    "FactorQVAE",
    "FactorVAE",
    "GVAELabels",
    "GeneralizedM2",
    "Glow",
    "InfoGAN",
    "InfoGANCR",
    "InfoVAE",
    "LadderVAE",
    "MLVAELabels",
    "Method",
    "S2AnnealedVAE",
    "S2BetaTCVAE",
    "S2BetaVAE",
    "S2FactorVAE",
    "StyleGAN2",
    "Supervised",
    "Tripod",
    "is_built_in",
    "method_named",
    "plugin_methods",
    "setting_help",
    "settings_of",
    "summary",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)

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
    AAELabels,
    AAESupervised,
    AAEClusters,
    AAEHeads,
    InfoGAN,
    InfoGANCR,
    ElasticInfoGAN,
    StyleGAN2,
    QLAE,
    Tripod,
    FactorQVAE,
    LadderVAE,
    VLAE,
    VDVAE,
    Glow,
    EncDiff,
    MLVAE,
    GVAE,
    AdaGVAE,
    AdaMLVAE,
    GVAELabels,
    MLVAELabels,
    S2BetaVAE,
    S2AnnealedVAE,
    S2FactorVAE,
    S2BetaTCVAE,
    S2DIPVAE1,
    S2DIPVAE2,
    M1,
    M2,
    M1M2,
    GeneralizedM2,
    Supervised,
    FStatistic,
    AdversarialSplit,
    LORD,
    DrNet,
)


def method_named(name: str) -> type[Method]:
    """The method of that name: built in, of an installed plug-in, or `file.py:Name` or `module:Name`.

    >>> method_named("beta_vae")(beta=2.0)
    BetaVAE(beta=2.0)
    """
    names = [method.name for method in METHODS]
    if name in names:
        return METHODS[names.index(name)]
    place = plugin_place("method", name, names)
    kind = checked_method(load_reference(place, "method"), place)
    check_entry_name("method", name, kind.name)
    return kind


def checked_method(part: object, place: str) -> type[Method]:
    """Return the class of a plug-in if it is a valid method; raise an error that says why not otherwise."""
    if not isinstance(part, type) or not issubclass(part, Method) or "__dataclass_params__" not in vars(part):
        raise UnweaveError(
            f"{place} is not a method. A method is a frozen dataclass made from "
            "unweave.methods.method.Method."
        )
    for name in ("name", "citation"):
        if not isinstance(getattr(part, name, None), str):
            raise UnweaveError(f"the method {place} has no {name}. Add {name}: ClassVar[str] to the class.")
    if missing := sorted(getattr(part, "__abstractmethods__", ())):
        raise UnweaveError(f"the method {place} does not define {', '.join(missing)}.")
    if part not in METHODS:
        refuse_built_in("method", part.name, [method.name for method in METHODS], place)
        _check_settings(part, place)
    return part


def _check_settings(kind: type[Method], place: str) -> None:
    """Refuse a setting without a default, or of a type that cannot be read from a command or a file."""
    try:
        types = get_type_hints(kind)
    except NameError as error:
        raise UnweaveError(f"a type in the method {place} is unknown: {error}. Import it there.") from error
    for setting in fields(kind):
        if setting.default is MISSING and setting.default_factory is MISSING:
            raise UnweaveError(f"{setting.name} of the method {place} must have a default; it has none.")
        if not is_known_type(types[setting.name]):
            raise UnweaveError(
                f"{setting.name} of the method {place} must be a Setting (a number), a bool, int, str or "
                f"Literal; its type is {getattr(types[setting.name], '__name__', types[setting.name])}. "
                "Setting is in unweave.methods.method."
            )


def is_built_in(kind: type[Method]) -> bool:
    """Whether a method is part of the package."""
    return kind in METHODS


def plugin_methods(problem: Callable[[str], None]) -> list[type[Method]]:
    """The methods of installed plug-ins; `problem` gets a message about each that cannot be used."""
    names = [method.name for method in METHODS]
    return list(installed_parts("method", names, method_named, problem))


def summary(kind: type[Method]) -> str:
    """A method in one line: the first line of its class docstring.

    >>> summary(BetaVAE)
    'beta-VAE: the KL divergence from the prior is weighted by beta.'
    """
    return (kind.__doc__ or "").strip().partition("\n")[0]


def setting_help(kind: type[Method]) -> dict[str, str]:
    """What each setting of a method means: the text after its field in the class; empty without a text.

    >>> setting_help(BetaVAE)
    {'beta': 'Weight of the KL divergence from the prior.'}
    """
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if is_dataclass(owner) and issubclass(owner, Method):
            texts |= _texts_after_fields(owner)
    return {setting.name: texts.get(setting.name, "") for setting in fields(kind)}


def _texts_after_fields(kind: type[Method]) -> dict[str, str]:
    try:
        source = dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # a class of an interactive session
        return {}
    [definition] = ast.parse(source).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


def settings_of(method: Method) -> dict[str, Setting | str | bool]:
    """The settings of a method by name, in plain Python: beta=4 and beta=4.0 give the same 4.0.

    >>> settings_of(BetaVAE(beta=4))
    {'beta': 4.0}
    """
    numeric = numeric_settings(method)
    settings = {setting.name: getattr(method, setting.name) for setting in fields(method)}
    # Settings are never negative; abs makes -0.0 the 0.0 that it is equal to.
    return {
        name: abs(float(value)) if name in numeric and not isinstance(value, Tensor) else value
        for name, value in settings.items()
    }
