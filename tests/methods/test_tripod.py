"""Tripod: its objective worked out apart from it, and what its two penalties do to codes and decoder."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd.functional import hessian

from methods.marks import use_small_networks
from methods.played import Played
from nn.test_kernel_density import by_scipy
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.methods import Tripod
from unweave.methods.method import AUTOENCODER
from unweave.nn.distributions.likelihood import reconstruction_loss
from unweave.nn.networks.scalar_grid import GridAutoencoder
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.update import Update

CODES = 6


def _render(factors: Factors, _stream: Stream) -> Images:
    """A square of 3 x 3 at one of 6 x 6 places."""
    rows = np.arange(8)
    across, along = (np.abs(rows - 1 - factors[:, column, None]) <= 1 for column in (0, 1))
    return np.asarray((along[:, :, None] & across[:, None, :])[:, None] * np.uint8(255))


FACTORS = (Factor("x", CODES), Factor("y", CODES))
SQUARES = GroundTruth("squares", FACTORS, (1, 8, 8), _render, Card("squares", "none", ""), "made up")


def network_of(case: Played) -> GridAutoencoder:
    network = case.networks[AUTOENCODER]
    assert isinstance(network, GridAutoencoder)
    return network


@torch.no_grad()
def test_the_objective_is_the_authors() -> None:
    """Each term by loops over runs, codes, layers and directions."""
    method = Tripod(lambda_klm=0.3, lambda_nhp=0.2, epsilon=0.15, num_perturbations=3, values_per_latent=5)
    case = Played.of(method, images=5, latents=3)
    network = network_of(case)
    network.encoder.heads.weight.mul_(60)  # so that more than one value is chosen
    losses = case.losses()
    outputs = torch.tanh(network.encoder(case.batch.images).mean)
    deviation = outputs.std(1, correction=0) + 1e-6
    z = torch.round((outputs + 1) * 2) / 2 - 1
    assert len(z.unique()) > 2
    signs = torch.where(case.step.draws.uniform("signs", 15, 3) < 0.5, -1.0, 1.0)
    kinds = signs, case.step.draws.normal("directions", 15, 3)
    ratios = _ratios(network, z, [0.15 * deviation[:, None] * kind for kind in kinds])
    for run in range(2):
        logits, images = network.decoder(z)[run], case.batch.images[run] / 255
        rec = float(reconstruction_loss(logits, images, "bernoulli"))
        information = by_scipy(z[run].double().numpy(), deviation[run].double().numpy())
        assert losses.terms["reconstruction"][run].item() == pytest.approx(rec, rel=1e-5)
        assert losses.terms["multiinformation"][run].item() == pytest.approx(information, rel=1e-4)
        assert losses.terms["hessian_penalty"][run].item() == pytest.approx(ratios[run], rel=1e-2)
        expected = rec / 1024 + 0.3 * information + 0.2 * ratios[run]
        assert losses.players[AUTOENCODER][run].item() == pytest.approx(expected, rel=1e-2)


def _ratios(network: GridAutoencoder, z: Tensor, shifts: list[Tensor]) -> list[float]:
    """Var by signs / var by normals, in float64, mean over codes and summed over layers."""
    sums = [0.0, 0.0]
    decoder = network.decoder.double()
    z, shifts = z.double(), [shift.double() for shift in shifts]
    for row in range(5):
        curvatures = []
        for shift in shifts:
            at = z[:, row : row + 1]
            h = shift[:, row::5]  # (2, 3, D)
            ends = zip(decoder.hidden(at + h), decoder.hidden(at - h), decoder.hidden(at), strict=True)
            curvatures.append([(up + down - 2 * middle) / 0.15**2 for up, down, middle in ends])
        for by_signs, by_normals in zip(*curvatures, strict=True):
            for run in range(2):
                variances = (kind[run].var(0, correction=0).mean() for kind in (by_signs, by_normals))
                sums[run] += float(next(variances) / (next(variances) + 1e-10)) / 5
    decoder.float()
    return sums


def test_signs_are_fair() -> None:
    case = Played.of(Tripod(num_perturbations=2), seeds=(0,), images=500, latents=4)
    directions = Tripod()._directions(case.step.draws, 500, 4)
    assert directions.signs.shape == directions.normals.shape == (1, 1000, 4)
    assert set(directions.signs.unique().tolist()) == {-1.0, 1.0}
    assert abs(directions.signs.mean().item()) < 0.05


def test_nothing_waits_for_the_device() -> None:
    losses = Played.of(Tripod(), device="meta").losses()
    for value in [*losses.players.values(), *losses.terms.values()]:
        assert value.shape == (2,)
        assert value.device.type == "meta"


def test_bad_settings_and_bf16_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r"epsilon of tripod, .* must be > 0; got 0\."):
        Tripod(epsilon=0.0)
    with pytest.raises(UnweaveError, match=r"num_perturbations of tripod must be at least 2; got 1\."):
        Tripod(num_perturbations=1)
    with pytest.raises(UnweaveError, match=r"must not have its weights rounded to bf16\. Use"):
        RunSpec(Tripod(), data="tiny", precision="bf16")


def test_each_penalty_lowers_what_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs after 40 updates: without penalties, and with one of them each.

    The weights, directions and rate are larger than by default: a test has few updates.
    """
    use_small_networks(monkeypatch)
    weights = ((0.0, 0.0), (3.0, 0.0), (0.0, 1.0))
    methods = [Tripod(lambda_klm=klm, lambda_nhp=nhp, num_perturbations=8) for klm, nhp in weights]
    population = trained(methods, steps=40)
    network = population.groups[0].networks[AUTOENCODER]
    assert isinstance(network, GridAutoencoder)
    images = torch.from_numpy(SQUARES.observe(SQUARES.factors_at(np.arange(len(SQUARES)))))
    bounded = network.bounded(images.expand(3, -1, -1, -1, -1)).detach()
    plain, independent, _ = (
        by_scipy(network.quantise(z).double().numpy(), z.double().std(0).numpy()) for z in bounded
    )
    assert independent < plain - 0.1
    plain, _, additive = (share_of_interactions(network, bounded[run], run) for run in range(3))
    assert plain > 0.4
    assert additive < 0.6 * plain


def trained(methods: list[Tripod], steps: int) -> Population:
    """Runs of the small networks on the squares, with a learning rate of 1e-3."""
    device = torch.device("cpu")
    specs = [
        RunSpec(method, SQUARES.name, latents=4, batch=16, steps=steps, architecture="small", player_rate=5)
        for method in methods
    ]
    population = Population(specs, SQUARES.shape, device)
    Update(population, HostBatches(SQUARES, device), len(SQUARES)).run(steps)
    return population


def share_of_interactions(network: GridAutoencoder, codes: Tensor, run: int) -> float:
    """Squared off-diagonal entries of exact Hessians of features of the style, in units of deviations."""
    deviation, squares = codes.std(0), torch.zeros(4, 4)
    for row in (5, 20, 35):
        z = network.quantise(codes[row])
        for feature in range(0, 256, 8):

            def value(offset: Tensor, z: Tensor = z, feature: int = feature) -> Tensor:
                at = (z + deviation * offset).expand(len(network.decoder.first_image), 1, -1)
                return network.decoder.hidden(at)[0][run, 0, feature]

            squares += hessian(value, torch.zeros(4)).square()
    return 1 - (squares.trace() / squares.sum()).item()
