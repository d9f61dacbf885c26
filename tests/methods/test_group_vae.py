"""ML-VAE and GVAE: the objective of a group by hand, and groups of any size after training."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import torch
from torch.distributions import Normal, kl_divergence

import unweave
from methods.marks import check_parts, check_swaps, small_networks, trained
from methods.played import autoencoder_step
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.methods import GVAE, MLVAE
from unweave.methods.method import AUTOENCODER, Losses
from unweave.methods.sampling import Groups
from unweave.nn.distributions.gaussian import Gaussian
from unweave.runs.spec import RunSpec
from unweave.streams import Stream

__all__ = ["small_networks"]

BOTH = pytest.mark.parametrize("kind", [MLVAE, GVAE])


def posteriors(images: int, latents: int) -> Gaussian:
    mean, log_var = (
        torch.from_numpy(Stream.of(3).child(name).normal(images, latents)).requires_grad_()
        for name in ("mean", "log_var")
    )
    return Gaussian(mean, log_var)


def losses(method: MLVAE | GVAE, posterior: Gaussian) -> Losses:
    merged = method.merged(posterior, None)
    rec = torch.tensor(50.0, dtype=torch.float64)
    return method.losses(autoencoder_step(rec, merged, merged.mean, 0, 100, None))


def by_hand(kind: type[MLVAE | GVAE], posterior: Gaussian, size: int, content: int) -> tuple[float, float]:
    """Divergences of content and style, summed over all groups, one density at a time."""
    prior = Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    of_content, of_style = 0.0, 0.0
    for first in range(0, len(posterior.mean), size):
        group = posterior[first : first + size]
        variances = group.log_var.exp()
        if kind is MLVAE:
            variance = 1 / sum(1 / v for v in variances)
            mean = variance * sum(m / v for m, v in zip(group.mean, variances, strict=True))
        else:
            mean, variance = group.mean.mean(0), variances.mean(0)
        shared = Normal(mean[:content], variance[:content].sqrt())
        of_content += kl_divergence(shared, prior).sum().item()
        own = Normal(group.mean[:, content:], variances[:, content:].sqrt())
        of_style += kl_divergence(own, prior).sum().item()
    return of_content, of_style


@BOTH
@pytest.mark.parametrize(("size", "content", "latents"), [(2, "half", 5), (3, 4, 5), (6, 1, 3), (1, 2, 4)])
def test_the_objective_of_groups_by_hand(
    kind: type[MLVAE | GVAE], size: int, content: int | Literal["half"], latents: int
) -> None:
    posterior = posteriors(6, latents)
    method = kind(beta=3.0, content=content, group_size=size)
    dimensions = method.content_dimensions(latents)
    assert dimensions == (2 if content == "half" else content)
    of_content, of_style = by_hand(kind, posterior, size, dimensions)
    actual = losses(method, posterior)
    assert actual.players[AUTOENCODER].item() == pytest.approx(50 + 3 * (of_content + of_style) / 6)
    assert actual.terms["content_kl"].item() == pytest.approx(of_content / 6)
    assert actual.terms["style_kl"].item() == pytest.approx(of_style / 6)
    assert actual.terms["elbo"].item() == pytest.approx(-50 - (of_content + of_style) / 6)


@BOTH
def test_every_image_of_a_group_learns_through_the_content(kind: type[MLVAE | GVAE]) -> None:
    posterior = posteriors(6, 4)
    merged = kind(group_size=3).merged(posterior, None)
    gradient, *_ = torch.autograd.grad(merged.mean[0, :2].sum(), [posterior.mean])
    assert (gradient[:3, :2] != 0).all(), "its own group"
    assert (gradient[3:] == 0).all(), "no other group"
    assert (gradient[:, 2:] == 0).all(), "no style"


@BOTH
def test_what_it_learns_from(kind: type[MLVAE | GVAE]) -> None:
    assert kind().sampling == Groups(2, ("class",), chosen="first")
    assert kind(group_size=5, shared="shape, scale").sampling.shared == ("shape", "scale")
    assert kind(shared=2).sampling.shared == 2


@BOTH
def test_settings_go_through_json(kind: type[MLVAE | GVAE]) -> None:
    for method in (kind(), kind(content=3, shared="x,y", group_size=4)):
        spec = RunSpec(method, data="tiny")
        again = RunSpec.from_dict(spec.to_dict())
        assert again == spec
        assert again.id == spec.id


@BOTH
def test_groups_of_any_size_after_training(kind: type[MLVAE | GVAE], tmp_path: Path) -> None:
    run = unweave.train(
        kind(group_size=3, shared="size"), TINY, out=tmp_path, device="cpu", steps=3, batch=4, latents=4
    )
    images = TINY.observe(TINY.sample_factors(7, 0, {"size": 1}))
    for m in (1, 2, 7):
        method = run.spec.method
        assert isinstance(method, MLVAE | GVAE)
        separate = run.posterior(images[:m])
        shared = method.group_posterior(separate)
        assert shared.mean.shape == (m, 4)
        assert (shared.mean[:, :2] == shared.mean[:1, :2]).all()
        assert torch.equal(shared.mean[:, 2:], separate.mean[:, 2:])
        if kind is GVAE:
            torch.testing.assert_close(shared.mean[0, :2], separate.mean[:, :2].mean(0))
        else:
            precision = torch.exp(-separate.log_var[:, :2]).sum(0)
            torch.testing.assert_close(shared.log_var[0, :2], -precision.log())
    assert {"content_kl", "style_kl"} < set(run.log.columns)


def test_more_content_than_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match="5 of 4 dimensions cannot be content"):
        unweave.train(MLVAE(content=5), TINY, out=tmp_path, device="cpu", steps=1, batch=2, latents=4)


def test_factors_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match='tiny has no factor "shape"'):
        unweave.train(GVAE(shared="shape"), TINY, out=tmp_path, device="cpu", steps=1, batch=2, latents=4)


@BOTH
@pytest.mark.usefixtures("small_networks")
def test_the_content_knows_the_class_and_the_style_the_rest(kind: type[MLVAE | GVAE], tmp_path: Path) -> None:
    run = trained(kind(), tmp_path, learning_rate=3e-3)
    check_parts(run, most_place=0.4, most_class=0.5)
    check_swaps(run)
