"""The ladder VAE: its objective and warm-up; its divergences are tested in tests/nn/test_ladder.py."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from methods.played import own_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import LadderVAE
from unweave.methods.method import AUTOENCODER, Batch, Losses, Method
from unweave.nn.networks.ladder import Ladder
from unweave.runs.spec import RunSpec
from unweave.training.population import Population

IMAGES, LATENTS = 6, 5


class Case:
    """Some runs with a batch of bytes for each."""

    def __init__(self, *methods: Method, device: str = "cpu", steps: int = 300_000) -> None:
        self.steps = steps
        specs = [RunSpec(m, data="tiny", seed=seed, latents=LATENTS) for seed, m in enumerate(methods)]
        population = Population(specs, TINY.shape, torch.device(device))
        group = population.groups[0]
        assert isinstance(group.method, LadderVAE)
        self.method, self.networks, self.draws = group.method, group.networks, population.draws
        images = torch.from_numpy(TINY.observe(TINY.sample_factors(len(methods) * IMAGES, 3)))
        self.batch = Batch(images.to(device).unflatten(0, (len(methods), IMAGES)))

    @property
    def ladder(self) -> Ladder:
        network = self.networks[AUTOENCODER]
        assert isinstance(network, Ladder)
        return network

    @torch.no_grad()
    def losses(self, step: int | Tensor = 0) -> Losses:
        at_step = own_step(step, len(TINY), self.draws, "bernoulli", self.steps)
        return self.method.losses(at_step(self.batch, self.networks))


@torch.no_grad()
def test_the_objective_is_the_negative_elbo_with_a_divergence_for_each_layer() -> None:
    case = Case(LadderVAE(beta=3.0, kl_warmup=0.0), LadderVAE(beta=0.5, kl_warmup=0.0))
    losses = case.losses()
    z, noise = torch.zeros(2, IMAGES, 0), case.draws.normal("noise", IMAGES, LATENTS)
    priors = [None, *case.ladder.priors]
    divergences = []
    for evidence, prior_of in zip(case.ladder.bottom_up(case.batch.images), priors, strict=True):
        size = evidence.mean.shape[-1]
        layer_noise = noise[..., z.shape[-1] : z.shape[-1] + size]
        precision = torch.exp(-evidence.log_var)
        posterior, prior = Normal(evidence.mean, precision.rsqrt()), Normal(torch.zeros(size), 1.0)
        if prior_of is not None:
            layer_prior = prior_of(z)
            both = precision + torch.exp(-layer_prior.log_var)
            mean = (evidence.mean * precision + layer_prior.mean * torch.exp(-layer_prior.log_var)) / both
            posterior, prior = (
                Normal(mean, both.rsqrt()),
                Normal(layer_prior.mean, torch.exp(layer_prior.log_var / 2)),
            )
        divergences.append(kl_divergence(posterior, prior).sum(-1).mean(-1))
        z = torch.cat([z, posterior.mean + posterior.stddev * layer_noise], dim=-1)
    rec = case.ladder.decoder.reconstruction(z, case.batch.images, "bernoulli")
    kl = torch.stack(divergences).sum(0)
    torch.testing.assert_close(losses.terms["reconstruction"], rec)
    torch.testing.assert_close(losses.terms["kl"], kl)
    torch.testing.assert_close(losses.terms["elbo"], -(rec + kl))
    for layer, expected in zip(("kl_3", "kl_2", "kl_1"), divergences, strict=True):
        torch.testing.assert_close(losses.terms[layer], expected)
    torch.testing.assert_close(losses.players[AUTOENCODER], rec + torch.tensor([3.0, 0.5]) * kl)


@pytest.mark.parametrize(
    ("step", "weights"), [(0, [0.4, 4.0, 4.0]), (4, [2.0, 4.0, 4.0]), (9, [4.0] * 3), (500, [4.0] * 3)]
)
def test_the_weight_of_the_divergences_grows(step: int, weights: list[float]) -> None:
    case = Case(*(LadderVAE(beta=4.0, kl_warmup=kl_warmup) for kl_warmup in (10.0, 1.0, 0.0)))
    for at in (step, torch.tensor(step)):
        losses = case.losses(at)
        torch.testing.assert_close(losses.terms["weight"], torch.tensor(weights))
        expected = losses.terms["reconstruction"] + torch.tensor(weights) * losses.terms["kl"]
        torch.testing.assert_close(losses.players[AUTOENCODER], expected)


def test_a_run_that_is_shorter_than_the_warm_up_takes_a_tenth_of_its_steps() -> None:
    case = Case(LadderVAE(beta=4.0), LadderVAE(beta=4.0, kl_warmup=500), steps=1000)
    assert case.losses(49).terms["weight"].tolist() == pytest.approx([2.0, 0.4])
    assert case.losses(99).terms["weight"].tolist() == pytest.approx([4.0, 0.8])


def test_specs_with_the_earlier_name_of_the_warm_up_load_and_keep_their_id() -> None:
    plain = RunSpec(LadderVAE(kl_warmup=7.0)).to_dict()
    assert plain["method"] == {"name": "ladder_vae", "beta": 1.0, "warm_up": 7.0, "layers": 3}
    assert RunSpec.from_dict(plain).method == LadderVAE(kl_warmup=7.0)
    current = plain | {"method": {"name": "ladder_vae", "kl_warmup": 7.0}}
    assert RunSpec.from_dict(current).id == RunSpec.from_dict(plain).id


@torch.no_grad()
def test_codes_are_those_of_the_pass_without_noise_and_decode_to_its_image() -> None:
    case = Case(LadderVAE(), LadderVAE())
    posterior = case.method.encode(case.networks, case.batch.images)
    inferred = case.ladder.infer(case.batch.images, torch.zeros(2, IMAGES, LATENTS))
    assert posterior.mean.shape == posterior.log_var.shape == (2, IMAGES, LATENTS)
    torch.testing.assert_close(posterior.mean[..., :1], case.ladder.bottom_up(case.batch.images)[0].mean)
    logits = case.method.decode(case.networks, posterior.mean)
    torch.testing.assert_close(logits, case.ladder.decoder(inferred.latents))


def test_nothing_waits_for_the_device() -> None:
    losses = Case(LadderVAE(), LadderVAE(), device="meta").losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.device.type == "meta"


def test_a_ladder_needs_a_layer_and_latents_for_each() -> None:
    with pytest.raises(UnweaveError, match="layers of ladder_vae must be at least 1; got 0"):
        LadderVAE(layers=0)
    with pytest.raises(UnweaveError, match="a ladder of 6 layers needs at least 6 latents; got 5"):
        Case(LadderVAE(layers=6))
