"""What holds for every method: the tests go over METHODS, so that none can be left out."""

from __future__ import annotations

import dataclasses
import itertools
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

import unweave.methods
from unweave.errors import UnweaveError
from unweave.methods import (
    AAE,
    AE,
    DIPVAE1,
    DIPVAE2,
    GVAE,
    M1,
    METHODS,
    MLVAE,
    S2DIPVAE1,
    S2DIPVAE2,
    VAE,
    AdaGVAE,
    AdaMLVAE,
    AnnealedVAE,
    BetaTCVAE,
    BetaVAE,
    FactorVAE,
    GVAELabels,
    InfoVAE,
    Method,
    MLVAELabels,
    S2AnnealedVAE,
    S2BetaTCVAE,
    S2BetaVAE,
    S2FactorVAE,
    method_named,
    settings_of,
)
from unweave.methods.factor_vae import DISCRIMINATOR
from unweave.methods.method import (
    AUTOENCODER,
    Autoencoder,
    Blueprint,
    Labelled,
    Losses,
    OwnNetworks,
    Pass,
    Player,
    numeric_settings,
)
from unweave.methods.semi_supervised import SemiSupervised
from unweave.methods.supply import Labels
from unweave.nn.distributions.gaussian import Gaussian
from unweave.streams import Stream

BATCH, LATENTS = 6, 3
SIZES = (2, 4)  # of labels


class SeededDraws:
    """One stream a run, as the trainer has."""

    def __init__(self, seeds: Sequence[int], like: Tensor) -> None:
        self.streams = [Stream.of(seed) for seed in seeds]
        self.like = like
        self.known: dict[tuple[str, int, int], Tensor] = {}  # streams are not for the compiler's eyes

    def normal(self, purpose: str, rows: int, columns: int) -> Tensor:
        if (purpose, rows, columns) not in self.known:
            numbers = [torch.from_numpy(run.child(purpose).normal(rows, columns)) for run in self.streams]
            self.known[purpose, rows, columns] = torch.stack(numbers).to(self.like)
        return self.known[purpose, rows, columns]

    def uniform(self, _purpose: str, _rows: int, _columns: int) -> Tensor:
        raise AssertionError("no autoencoder draws uniform numbers")

    def integers(self, _purpose: str, _rows: int, _sizes: Sequence[int]) -> Tensor:
        raise AssertionError("no autoencoder draws whole numbers")

    def permutations(self, purpose: str, rows: int, length: int) -> Tensor:
        if (purpose, rows, length) not in self.known:
            orders = [torch.from_numpy(run.child(purpose).permutations(rows, length)) for run in self.streams]
            self.known[purpose, rows, length] = torch.stack(orders).to(self.like.device)
        return self.known[purpose, rows, length]


class SmallDiscriminator(nn.Module):
    def __init__(self, seeds: Sequence[int], like: Tensor) -> None:
        super().__init__()
        draws = SeededDraws(seeds, like)
        self.hidden = nn.Parameter(draws.normal("hidden", LATENTS, 4))
        self.out = nn.Parameter(draws.normal("out", 4, 2))

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(z @ self.hidden) @ self.out


@dataclasses.dataclass(frozen=True)
class Runs:
    """Some runs of which everything but the method is given; mean and log_var stand for the encoder."""

    mean: Tensor
    log_var: Tensor
    draws: SeededDraws
    discriminator: SmallDiscriminator
    others: dict[str, nn.Module] = dataclasses.field(default_factory=dict)
    step: int = 30_000

    @classmethod
    def of(cls, *seeds: int, dtype: torch.dtype = torch.float64, device: str = "cpu") -> Runs:
        draws = SeededDraws(seeds, torch.zeros((), dtype=dtype, device=device))
        mean, log_var = (
            draws.normal(name, BATCH, LATENTS).clone().requires_grad_() for name in ("mean", "log_var")
        )
        return cls(mean, log_var, draws, SmallDiscriminator(seeds, draws.like))

    def forward(self, method: Autoencoder, networks: dict[str, nn.Module] | None = None) -> Pass:
        posterior = method.merged(Gaussian(self.mean, self.log_var), self.labels(method))
        noise = self.draws.normal("noise", BATCH, LATENTS)
        sample = posterior.sample(noise * float(method.stochastic))
        other = posterior.sample(self.draws.normal("other noise", BATCH, LATENTS)) + 1
        return Pass(
            reconstruction=(sample.sin() + 2).sum(-1).mean(-1),
            posterior=posterior,
            sample=sample,
            step=self.step,
            data_size=1000,
            draws=self.draws,
            networks=self.networks(method) if networks is None else networks,
            other_sample=other if method.other_batch else None,
            labelled=self.labelled() if isinstance(method.supply, Labels) else None,
        )

    def networks(self, method: Autoencoder) -> dict[str, nn.Module]:
        """Those of the players besides the autoencoder."""
        return {player.name: self.network(player) for player in method.players}

    def network(self, player: Player) -> nn.Module:
        """Of a player besides the autoencoder: a small one for the discriminator, others as they are."""
        if player.name == DISCRIMINATOR:
            return self.discriminator
        if player.name not in self.others:
            plan = Blueprint(self.draws.streams, (1, 32, 32), LATENTS, label_sizes=SIZES)
            self.others[player.name] = player.build(plan).to(self.draws.like)
        return self.others[player.name]

    def labelled(self) -> Labelled:
        """The same posteriors in another order, as if they were of labelled images."""
        posterior = Gaussian(self.mean.flip(-2), self.log_var.flip(-2))
        return Labelled(posterior, (self.draws.normal("label", BATCH, len(SIZES)) > 0).long(), SIZES)

    def labels(self, method: Method) -> Tensor | None:
        """(P, B, k) values of two factors, where a method is told them."""
        if not getattr(method.supply, "labels", False):
            return None
        return (self.draws.normal("labels", BATCH, 2) > 0).long()

    def losses(self, method: Autoencoder, networks: dict[str, nn.Module] | None = None) -> Losses:
        return method.loss(self.forward(method, networks))


def variants() -> Iterator[Autoencoder]:
    """Every autoencoder with each of its choices and switches; for the others see test_own_networks.py."""
    for method in METHODS:
        if issubclass(method, Autoencoder):
            kinds = get_type_hints(method)
            choices = {
                name: (False, True) if kind is bool else get_args(kind)
                for name, kind in kinds.items()
                if (kind is bool or get_origin(kind) is Literal) and not _seen_elsewhere(method, name)
            }
            for chosen in itertools.product(*choices.values()):
                settings: dict[str, Any] = dict(zip(choices, chosen, strict=True))
                yield method(**settings)


def _seen_elsewhere(method: type[Method], name: str) -> bool:
    """Labellers change no loss; and what six methods share is gone through with one of them."""
    shared = issubclass(method, SemiSupervised) and method is not S2BetaVAE
    return name == "labeller" or (shared and name in get_type_hints(SemiSupervised))


every_variant = pytest.mark.parametrize("method", list(variants()), ids=repr)
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
every_autoencoder = pytest.mark.parametrize(
    "method",
    [method for method in METHODS if issubclass(method, Autoencoder)],
    ids=lambda method: method.name,
)


def _descendants(kind: type[Any]) -> set[type[Any]]:
    """Those of the package that are not only there to be inherited from: they have a name."""
    below = {found for child in kind.__subclasses__() for found in _descendants(child)}
    return below | ({kind} if hasattr(kind, "name") and kind.__module__.startswith("unweave.") else set())


def test_every_method_is_in_the_table() -> None:
    kinds = (Autoencoder, OwnNetworks)
    assert set(METHODS) == {found for kind in kinds for found in _descendants(kind)} - set(kinds)
    files = {module.name for module in pkgutil.iter_modules(unweave.methods.__path__)} - {"method", "supply"}
    assert {method.__module__.rsplit(".", 1)[1] for method in METHODS} == files


def test_names_are_unique() -> None:
    assert len({method.name for method in METHODS}) == len(METHODS)


@every_method
def test_a_method_is_frozen_cited_and_found_by_its_name(method: type[Method]) -> None:
    assert method.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert method.citation.startswith("@")
    assert method_named(method.name) is method


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UnweaveError, match=r'there is no method "beta-vae"\. Did you mean "beta_vae"'):
        method_named("beta-vae")


def test_settings_are_plain_and_the_same_for_equal_numbers() -> None:
    assert repr(settings_of(BetaTCVAE(beta=4))) == repr(settings_of(BetaTCVAE(beta=4.0)))
    assert settings_of(FactorVAE(gamma=35)) == {"gamma": 35.0, "second_batch": False}


# Settings at which a method is the plain VAE (or, without a prior, the reconstruction).
NEUTRAL: dict[str, list[Autoencoder]] = {
    "vae": [VAE()],
    "ae": [AE()],
    "beta_vae": [BetaVAE(beta=1)],
    "annealed_vae": [AnnealedVAE(gamma=1, c_max=0)],
    "factor_vae": [FactorVAE(gamma=0), FactorVAE(gamma=0, second_batch=True)],
    "beta_tcvae": [BetaTCVAE(beta=1), BetaTCVAE(beta=1, estimator="stratified")],
    "dip_vae_i": [DIPVAE1(lambda_od=0)],
    "dip_vae_ii": [DIPVAE2(lambda_od=0)],
    "info_vae": [
        InfoVAE(alpha=0, lambda_=1),
        InfoVAE(alpha=0, lambda_=1, divergence="stein"),
        InfoVAE(alpha=0, lambda_=1, divergence="adversarial"),
    ],
    "aae": [AAE(adversarial_weight=0)],
    "ml_vae": [MLVAE(content=0), MLVAE(content=0, group_size=3)],
    "gvae": [GVAE(content=0)],
    "ada_gvae": [AdaGVAE(beta=1), AdaGVAE(beta=1, k_known=True)],
    "ada_ml_vae": [AdaMLVAE(beta=1)],
    "gvae_labels": [GVAELabels(beta=1)],
    "ml_vae_labels": [MLVAELabels(beta=1)],
    "s2_beta_vae": [S2BetaVAE(beta=1, gamma_sup=0), S2BetaVAE(beta=1, gamma_sup=0, supervised_loss="embed")],
    "s2_annealed_vae": [S2AnnealedVAE(gamma=1, c_max=0, gamma_sup=0)],
    "s2_factor_vae": [S2FactorVAE(gamma=0, gamma_sup=0)],
    "s2_beta_tcvae": [S2BetaTCVAE(beta=1, gamma_sup=0)],
    "s2_dip_vae_i": [S2DIPVAE1(lambda_od=0, gamma_sup=0)],
    "s2_dip_vae_ii": [S2DIPVAE2(lambda_od=0, gamma_sup=0)],
    "m1": [M1()],
}


@every_autoencoder
def test_the_neutral_setting_is_the_negative_elbo(method: type[Method]) -> None:
    runs = Runs.of(0, 1)
    for neutral in NEUTRAL[method.name]:
        given = runs.forward(neutral)
        posterior = Normal(given.posterior.mean, torch.exp(given.posterior.log_var / 2))
        kl = kl_divergence(posterior, Normal(torch.tensor(0.0), torch.tensor(1.0))).sum(-1).mean(-1)
        rec = given.reconstruction
        losses = runs.losses(neutral)
        if not neutral.stochastic:
            torch.testing.assert_close(losses.players[AUTOENCODER], rec)
            continue
        torch.testing.assert_close(losses.players[AUTOENCODER], rec + kl)
        torch.testing.assert_close(losses.terms["elbo"], -(rec + kl))
        torch.testing.assert_close(losses.terms["kl"], kl)


def with_settings(method: Autoencoder, scales: Sequence[float]) -> list[Autoencoder]:
    """The method with all its numbers multiplied, once for each scale."""
    numbers = {name: getattr(method, name) for name in numeric_settings(method)}
    scaled = [{name: value * scale for name, value in numbers.items()} for scale in scales]
    return [dataclasses.replace(method, **settings) for settings in scaled]


def stacked(methods: Sequence[Autoencoder]) -> Autoencoder:
    """One method whose numbers are tensors with a value for each run."""
    numbers = {
        name: torch.tensor([getattr(method, name) for method in methods], dtype=torch.float64)
        for name in numeric_settings(methods[0])
    }
    return dataclasses.replace(methods[0], **numbers)


@every_variant
def test_the_loss_of_a_population_is_the_stack_of_single_losses(method: Autoencoder) -> None:
    methods, seeds = with_settings(method, [0.5, 1.0, 3.0]), (3, 7, 11)
    together = Runs.of(*seeds).losses(stacked(methods))
    alone = [Runs.of(seed).losses(one) for seed, one in zip(seeds, methods, strict=True)]
    for name, found in together.players.items():
        torch.testing.assert_close(found, torch.cat([losses.players[name] for losses in alone]))
    for name, found in together.terms.items():
        torch.testing.assert_close(found, torch.cat([losses.terms[name] for losses in alone]))


@every_variant
def test_there_is_one_loss_and_term_a_run_in_the_precision_of_the_networks(method: Autoencoder) -> None:
    losses = Runs.of(0, 1, dtype=torch.float32).losses(method)
    assert set(losses.players) == {AUTOENCODER, *(player.name for player in method.players)}
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.dtype == torch.float32


@every_variant
def test_nothing_is_made_on_another_device(method: Autoencoder) -> None:
    losses = Runs.of(0, 1, device="meta").losses(method)
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.device.type == "meta"


def holds_something_fixed(method: Method) -> bool:
    """Whether the gradient is not that of the value, by design: see tests/methods/test_info_vae.py."""
    return isinstance(method, InfoVAE) and (
        method.divergence == "stein" or (method.divergence == "mmd" and method.bandwidth == "median")
    )


@pytest.mark.parametrize(
    "method", [method for method in variants() if not holds_something_fixed(method)], ids=repr
)
def test_gradients_of_the_autoencoder(method: Autoencoder) -> None:
    runs = Runs.of(0, 1)

    def loss(mean: Tensor, log_var: Tensor) -> Tensor:
        return dataclasses.replace(runs, mean=mean, log_var=log_var).losses(method).players[AUTOENCODER]

    assert torch.autograd.gradcheck(loss, (runs.mean, runs.log_var))


with_players = pytest.mark.parametrize(
    "method", [method for method in variants() if method.players], ids=repr
)


@with_players
def test_gradients_of_the_other_players(method: Autoencoder) -> None:
    runs = Runs.of(0, 1)
    for player in method.players:
        weights = tuple(runs.network(player).parameters())
        many = sum(weight.numel() for weight in weights) > 1000

        def loss(*_: Tensor, name: str = player.name) -> Tensor:
            return runs.losses(method).players[name]

        assert torch.autograd.gradcheck(loss, weights, fast_mode=many)


@with_players
def test_players_do_not_move_each_other(method: Autoencoder) -> None:
    """A player's gradient is what it is when the parameters of the others are mere numbers."""
    runs = Runs.of(0, 1)
    own = {AUTOENCODER: [runs.mean, runs.log_var]}
    own |= {player.name: list(runs.network(player).parameters()) for player in method.players}
    losses = runs.losses(method).players
    found = {name: gradients(losses[name], own[name]) for name in own}
    everything = [tensor for tensors in own.values() for tensor in tensors]
    assert all(tensor.grad is None for tensor in everything)
    for name, tensors in own.items():
        for tensor in everything:
            tensor.requires_grad_(any(tensor is mine for mine in tensors))
        alone = gradients(runs.losses(method).players[name], tensors)
        torch.testing.assert_close(found[name], alone, rtol=0, atol=0)


def gradients(loss: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss.sum(), tensors, retain_graph=True))


@pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="its compiler cannot follow dataclasses")
@every_variant
def test_a_loss_is_one_graph_for_the_compiler(method: Autoencoder) -> None:
    torch.compiler.reset()  # else all methods count as versions of one function, of which few are allowed
    runs = Runs.of(0, 1)

    networks = runs.networks(method)  # they are made before, as in the trainer

    def players(mean: Tensor, log_var: Tensor) -> dict[str, Tensor]:
        return dict(dataclasses.replace(runs, mean=mean, log_var=log_var).losses(method, networks).players)

    expected = players(runs.mean, runs.log_var)
    compiled = torch.compile(players, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(runs.mean, runs.log_var), expected)


BAD_NUMBERS: list[Any] = [-1, -1e-9, float("nan"), float("inf"), "4", True, None]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
def test_a_bad_number_is_refused(value: Any) -> None:
    settings = [(kind, name) for kind in METHODS for name in numeric_settings(kind)]
    for method, name in settings:
        with pytest.raises(
            UnweaveError, match=rf"{name} of {method.name} must be a number >= 0; got .*default"
        ):
            method(**{name: value})


BAD_CHOICES: list[tuple[type[Method], dict[str, Any], str]] = [
    (BetaTCVAE, {"estimator": "mws"}, "must be 'weighted' or 'stratified'; got 'mws'. The default is 'weig"),
    (FactorVAE, {"second_batch": 1}, "second_batch of factor_vae must be True or False; got 1. The default"),
    (AnnealedVAE, {"iteration_threshold": 0}, "must be > 0; got 0. Take 1"),
    (
        InfoVAE,
        {"divergence": "kl"},
        "divergence of info_vae must be 'mmd' or 'stein' or 'adversarial'; got 'kl'",
    ),
    (
        InfoVAE,
        {"bandwidth": 1.0},
        "bandwidth of info_vae must be 'squared_dimension' or 'prior' or 'median'; go",
    ),
    (
        AAE,
        {"posterior": "universal"},
        "posterior of aae must be 'deterministic' or 'gaussian'; got 'universal'",
    ),
    (MLVAE, {"content": -1}, "content of ml_vae must be a whole number >= 0 or 'half'; got -1. The default"),
    (GVAE, {"group_size": 0}, "group_size of gvae must be a whole number >= 1; got 0. The default is 2"),
    (GVAE, {"shared": None}, "shared of gvae must be a whole number >= 0 or a text; got None"),
    (
        AdaGVAE,
        {"changed": "some"},
        "changed of ada_gvae must be a whole number >= 0 or 'random' or 'published'; got 'some'",
    ),
]


@pytest.mark.parametrize(("method", "settings", "text"), BAD_CHOICES)
def test_a_bad_choice_is_refused(method: type[Method], settings: dict[str, Any], text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        method(**settings)
