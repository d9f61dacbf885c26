"""M1+M2: the VAE first, then M2 on its codes, against torch's distributions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn.functional import one_hot

from methods.played import Played
from unweave.errors import UnweaveError
from unweave.methods import M1M2
from unweave.methods.m1_m2 import MODEL, VAE, FeatureVAE
from unweave.methods.method import Blueprint
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.layers import as_numbers
from unweave.nn.networks.feature_model import FeatureModel
from unweave.streams import Stream

METHOD = M1M2(features=7, labels=20, alpha=3.0)
PRIOR = Normal(torch.zeros(()), torch.ones(()))


def normal(q: Gaussian) -> Normal:
    return Normal(q.mean, (q.log_var / 2).exp())


def networks_of(runs: Played) -> tuple[FeatureVAE, FeatureModel]:
    vae, model = runs.networks[VAE], runs.networks[MODEL]
    assert isinstance(vae, FeatureVAE)
    assert isinstance(model, FeatureModel)
    return vae, model


def bound(model: FeatureModel, h: Tensor, label: Tensor, noise: Tensor) -> Tensor:
    """(P, B): L(h, y) for labels (P, B) of three values."""
    y = one_hot(label, 3).float()
    q = normal(model.latent_posterior(h, [y]))
    p = normal(model.generated([y], q.loc + q.scale * noise))
    likelihood: Tensor = p.log_prob(h).sum(-1)
    kl: Tensor = kl_divergence(q, PRIOR).sum(-1)
    return kl - likelihood + math.log(3)


def test_the_first_stage_is_a_vae_of_so_many_features() -> None:
    runs = Played.of(METHOD, step=0)
    vae, images = networks_of(runs)[0], runs.batch.images
    posterior = vae.encoder(images)
    assert posterior.mean.shape == (2, 6, 7)
    h = posterior.mean + (posterior.log_var / 2).exp() * runs.step.draws.normal("noise", 6, 7)
    log_p = Bernoulli(logits=vae.decoder(h)).log_prob(as_numbers(images)).sum((-3, -2, -1))
    kl = kl_divergence(normal(posterior), PRIOR).sum(-1)
    torch.testing.assert_close(runs.losses().players[VAE], (kl - log_p).mean(-1), rtol=1e-4, atol=1e-2)


def test_the_second_stage_is_m2_of_codes_and_leaves_the_vae_as_it_is() -> None:
    runs = Played.of(METHOD, step=int(0.9 * 300_000))
    assert all(not gradient.any() for gradient in runs.gradients(VAE))
    vae, model = networks_of(runs)
    posterior, labelled = vae.encoder(runs.batch.images), runs.step.labelled
    draws = runs.step.draws
    h = normal(posterior).loc + normal(posterior).scale * draws.normal("noise", 6, 7)
    q = model.label_posteriors(h, h)[0].log_probabilities
    noise, unlabelled = draws.normal("unlabelled z", 6, 3), torch.zeros(2, 6)
    for value in range(3):
        of_class = bound(model, h, torch.full((2, 6), value), noise)
        unlabelled += q[..., value].exp() * (of_class + q[..., value])
    posterior = vae.encoder(labelled.images)
    h = normal(posterior).loc + normal(posterior).scale * draws.normal("labelled noise", 6, 7)
    label = labelled.labels[..., 0]
    known = bound(model, h, label, draws.normal("labelled z", 6, 3)).mean(-1)
    log_q = model.label_posteriors(h, h)[0].log_probabilities.gather(-1, label[..., None]).mean((-2, -1))
    losses = runs.losses()
    torch.testing.assert_close(losses.terms["code_elbo"], -unlabelled.mean(-1), rtol=1e-4, atol=1e-3)
    # Weights as in the authors' code, for 60 images and 20 labelled ones.
    expected = 60 / 80 * unlabelled.mean(-1) + 20 / 80 * known - 3 * log_q
    torch.testing.assert_close(losses.players[MODEL], expected, rtol=1e-4, atol=1e-3)


def test_nothing_of_m2_is_logged_before_it_starts() -> None:
    runs = Played.of(METHOD, step=0)
    terms = runs.losses().terms
    assert not any(terms[name].any() for name in ("code_elbo", "labelled_elbo", "classification"))


def test_the_code_is_the_label_and_z() -> None:
    runs = Played.of(METHOD)
    vae, model = networks_of(runs)
    mean = vae.encoder(runs.batch.images).mean
    q = model.label_posteriors(mean, mean)[0].log_probabilities.exp()
    code = METHOD.encode(runs.networks, runs.batch.images).mean
    assert code.shape == (2, 6, 4)
    torch.testing.assert_close(code[..., 0], (q @ torch.tensor([-1.0, 0.0, 1.0])) / math.sqrt(2 / 3))
    torch.testing.assert_close(code[..., 1:], model.latent_posterior(mean, [q]).mean)
    predicted = METHOD.predict(runs.networks, runs.batch.images)
    assert predicted.tolist() == q.argmax(-1, keepdim=True).tolist()
    # A code at a value of the label decodes as this value does.
    at_value = torch.cat([torch.full((2, 6, 1), 1 / math.sqrt(2 / 3)), code[..., 1:]], dim=-1)
    y = one_hot(torch.full((2, 6), 2), 3).float()
    h = model.generated([y], code[..., 1:]).mean
    torch.testing.assert_close(METHOD.decode(runs.networks, at_value), vae.decoder(h))


def test_mistakes_raise_clear_errors() -> None:
    for share in (0, 1.0):
        with pytest.raises(
            UnweaveError, match=r"second_stage of m1_m2, .* must be more than 0 and less than 1"
        ):
            M1M2(second_stage=share)
    with pytest.raises(UnweaveError, match="m1_m2 sums over all classes of its factors, at most 64"):
        M1M2().networks(Blueprint([Stream.of(0)], (1, 32, 32), 4, label_sizes=(40, 3)))
    with pytest.raises(UnweaveError, match="a code of 1 labels and z needs at least 2 latents; got 1"):
        M1M2().networks(Blueprint([Stream.of(0)], (1, 32, 32), 1, label_sizes=(3,)))
