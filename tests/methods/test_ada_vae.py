"""Ada-GVAE, Ada-ML-VAE and their variants: which dimensions are shared, by hand and in the published code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from methods.played import autoencoder_step
from unweave.errors import UnweaveError
from unweave.methods import AdaGVAE, AdaMLVAE, GVAELabels, MLVAELabels
from unweave.methods.method import AUTOENCODER, Method
from unweave.methods.sampling import Pairs
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.distributions.sharing import average, product

ADAPTIVE = pytest.mark.parametrize("kind", [AdaGVAE, AdaMLVAE])
LABELLED = pytest.mark.parametrize("kind", [GVAELabels, MLVAELabels])


def rule(kind: type[Method], pair: Gaussian) -> Gaussian:
    return average(pair) if kind in (AdaGVAE, GVAELabels) else product(pair)


def pair(distances: list[float]) -> Gaussian:
    """Two posteriors of unit variance, so that KL(q1 || q2) in each dimension is the distance."""
    apart = torch.tensor(distances, dtype=torch.float64).mul(2).sqrt()
    mean = torch.stack([torch.zeros_like(apart), apart])
    return Gaussian(mean, torch.zeros_like(mean))


def own_dimensions(method: Method, posterior: Gaussian, labels: Tensor | None = None) -> list[int]:
    """Dimensions in which both images keep their posteriors; the others are shared by the rule."""
    merged = method.merged(posterior, labels)
    own = (merged.mean[0] != merged.mean[1]) | (merged.log_var[0] != merged.log_var[1])
    shared = rule(type(method), posterior)
    assert torch.equal(merged.mean[:, own], posterior.mean[:, own])
    assert torch.equal(merged.log_var[:, own], posterior.log_var[:, own])
    torch.testing.assert_close(merged.mean[0, ~own], shared.mean[0, ~own])
    torch.testing.assert_close(merged.log_var[0, ~own], shared.log_var[0, ~own])
    return own.nonzero()[:, 0].tolist()


@ADAPTIVE
def test_dimensions_below_the_middle_are_shared(kind: type[AdaGVAE | AdaMLVAE]) -> None:
    assert own_dimensions(kind(), pair([0.1, 4.0, 2.0, 1.9, 2.2])) == [1, 4]  # tau = 2.05
    assert own_dimensions(kind(), pair([0.5, 0.1, 9.0, 0.2, 1.0])) == [2]


@ADAPTIVE
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_nearest_are_shared_where_k_is_known(kind: type[AdaGVAE | AdaMLVAE], number: int) -> None:
    labels = torch.zeros(2, 4, dtype=torch.int64)
    labels[1, :number] = 1
    posterior = pair([0.5, 3.0, 0.1, 2.9, 2.8, 0.2])
    expected = sorted([1, 3, 4][:number])
    assert own_dimensions(kind(k_known=True), posterior, labels) == expected


@LABELLED
def test_dimensions_follow_the_factors_where_they_are_known(kind: type[GVAELabels | MLVAELabels]) -> None:
    labels = torch.tensor([[1, 0, 2], [1, 5, 0]])  # the second and the third factor have changed
    assert own_dimensions(kind(), pair([9.0, 0.1, 0.2, 9.0, 9.0]), labels) == [1, 2]
    with pytest.raises(UnweaveError, match="3 factors needs a dimension of the code; there are 2"):
        kind().merged(pair([1.0, 2.0]), labels)
    with pytest.raises(UnweaveError, match="labels are needed to know which factors"):
        kind().merged(pair([1.0, 2.0]), None)


def test_what_they_learn_from() -> None:
    assert AdaGVAE().sampling == Pairs("published")
    assert AdaMLVAE(changed=2).sampling == Pairs(2)
    assert AdaGVAE(changed=1, k_known=True).sampling == Pairs(1, labels=True)
    assert GVAELabels(changed="published").sampling == MLVAELabels(changed="published").sampling
    assert GVAELabels().sampling.labels


@pytest.mark.parametrize("kind", [AdaGVAE, AdaMLVAE, GVAELabels, MLVAELabels])
def test_both_images_learn_through_what_they_share(kind: type[Method]) -> None:
    posterior = pair([0.1, 5.0, 0.3])
    posterior.mean.requires_grad_()
    posterior.log_var.requires_grad_()
    labels = torch.tensor([[0, 0, 0], [0, 1, 0]])
    merged = kind().merged(posterior, labels if kind().sampling.labels else None)  # type: ignore[union-attr]
    # The code of the first image and its divergence, which its loss depends on.
    code = merged.sample(torch.tensor([[0.3, -0.4, 0.5]] * 2, dtype=torch.float64))[0]
    mean, log_var = torch.autograd.grad(code.sum() + merged.kl()[0], [posterior.mean, posterior.log_var])
    assert (mean[1, [0, 2]] != 0).all()
    assert (log_var[1, [0, 2]] != 0).all()
    assert mean[1, 1] == log_var[1, 1] == 0, "what is not shared is nothing to the other image"


@ADAPTIVE
def test_the_loss_is_that_of_the_beta_vae_on_both(kind: type[AdaGVAE | AdaMLVAE]) -> None:
    method = kind(beta=2.5)
    merged = method.merged(pair([0.1, 4.0, 0.3]), None)
    rec = torch.tensor(7.0, dtype=torch.float64)
    losses = method.losses(autoencoder_step(rec, merged, merged.mean, 0, 100, None))
    kl = merged.kl()
    assert losses.players[AUTOENCODER].item() == pytest.approx(7 + 2.5 * (kl[0] + kl[1]).item() / 2)
    assert losses.terms["shared_dimensions"].item() == 2


def interleaved(arrays: dict[str, Tensor]) -> Gaussian:
    """disentanglement_lib stores the two images of pairs separately; unweave stores them as neighbours."""
    mean = torch.stack([arrays["z_mean"], arrays["z_mean_2"]], dim=1).flatten(0, 1)
    log_var = torch.stack([arrays["z_logvar"], arrays["z_logvar_2"]], dim=1).flatten(0, 1)
    return Gaussian(mean.double(), log_var.double())


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (AdaGVAE(), "group_vae_argmax"),
        (GVAELabels(), "group_vae_labels"),
        (AdaMLVAE(variance="published"), "mlvae_argmax"),
        (MLVAELabels(variance="published"), "mlvae_labels"),
    ],
)
def test_posteriors_of_the_published_code(method: Method, name: str, reference: Path) -> None:
    """disentanglement_lib's own results."""
    with np.load(reference / "reference" / "losses.npz", allow_pickle=False) as file:
        arrays = {key: torch.from_numpy(file[key].astype(np.float64)) for key in file if "arch" not in key}
    scalars = json.loads((reference / "reference" / "losses.json").read_text())["scalars"]
    labels = None
    if name.endswith("labels"):  # its label is one changed factor; ours are the values of all factors
        labels = torch.zeros(32, 10, dtype=torch.int64)
        labels[1::2] = torch.nn.functional.one_hot(arrays["changed_index"].long(), 10)
    merged = method.merged(interleaved(arrays), labels)
    for i in (0, 1):
        mean, log_var = (arrays[f"out/{name}_{part}{i + 1}"] for part in ("mean", "logvar"))
        torch.testing.assert_close(merged.mean[i::2], mean, rtol=0, atol=1e-5)
        torch.testing.assert_close(merged.log_var[i::2], log_var, rtol=0, atol=1e-5)
    assert merged.kl().mean().item() == pytest.approx(scalars[f"{name}_kl_loss"], rel=1e-5)


@pytest.mark.parametrize("kind", [AdaMLVAE, MLVAELabels])
def test_the_default_variance_is_that_of_the_product(kind: type[AdaMLVAE | MLVAELabels]) -> None:
    """Of variances 1 and 3: 1 / (1 + 1/3) = 0.75; the released code has 2 * 1 * 3 / (1 + 3) = 1.5."""
    posterior = Gaussian(torch.zeros(2, 2), torch.tensor([[1.0, 1.0], [3.0, 3.0]]).log())
    posterior.mean[1, 1] = 9.0  # the second dimension differs, the first is shared
    labels = torch.tensor([[0, 0], [0, 1]]) if kind is MLVAELabels else None
    exact, published = kind(), kind(variance="published")
    assert exact.merged(posterior, labels).log_var[:, 0].exp().tolist() == pytest.approx([0.75, 0.75])
    assert published.merged(posterior, labels).log_var[:, 0].exp().tolist() == pytest.approx([1.5, 1.5])
    assert exact.merged(posterior, labels).log_var[:, 1].exp().tolist() == pytest.approx([1.0, 3.0])
