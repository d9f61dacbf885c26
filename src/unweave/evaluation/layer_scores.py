"""`score_layers`: which factor each layer, resolution or block of a code knows.

Layers whose names agree up to a slash, such as 8x8/1 and 8x8/2, are scored together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import GroundTruth
from unweave.data.opening import open_data
from unweave.errors import UnweaveError
from unweave.evaluation.effort import POINTS, Effort
from unweave.evaluation.evaluate import open_subject
from unweave.evaluation.posteriors import Posterior
from unweave.evaluation.scores import save_figure
from unweave.evaluation.sources import GroundTruthSource
from unweave.metrics.block_knowledge import block_knowledge
from unweave.metrics.checks import split
from unweave.metrics.estimators.probes import UPDATES
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CHUNK = 128  # images at a time: a hierarchy may have a hundred thousand latents for each
LOOKED_AT = 512  # images that choose the latents of each layer, and give divergences and the bound
MOST = 64  # latents of a layer that a probe gets
ALL = "all"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LayerScores:
    """What each layer knows about each factor: rows are layers, from the top down, columns are factors.

    `information` is the share of the uncertainty about a factor that a probe of the layer removes, from 0 to
    1, and `accuracy` the share of test images whose value it predicts. The last row, "all", is a probe of all
    layers. `kl` is the divergence of a layer in nats per image, NaN for codes without a prior, and `latents`
    how many of its latents the probe gets, and has in all. `elbo` is the evidence lower bound in nats per
    image, NaN for methods without.
    """

    subject: str
    data: str
    layers: tuple[str, ...]
    factors: tuple[str, ...]
    information: Floats
    accuracy: Floats
    chance: Floats  # (k,): the accuracy of always guessing the most frequent value
    kl: tuple[float, ...]
    latents: tuple[tuple[int, int], ...]
    elbo: float
    numbers: int  # in an image

    @property
    def bits_per_dimension(self) -> float:
        """The negative bound in bits for each number of an image.

        If the likelihood is a density of numbers from 0 to 1, bits of 256 grey levels are log2(255) more.
        """
        return -self.elbo / (self.numbers * math.log(2))

    def __str__(self) -> str:
        width = max(map(len, self.layers))
        head = " ".join([f"{'':{width}}", *(f"{factor:>11.11}" for factor in self.factors), "         kl"])
        lines = [
            " ".join([f"{layer:{width}}", *(f"{value:11.2f}" for value in row), f"{kl:11.2f}"])
            for layer, row, kl in zip(self.layers, self.information, self.kl, strict=True)
        ]
        return "\n".join([head, *lines])

    def frame(self) -> pd.DataFrame:
        """One row for each layer and factor."""
        import pandas as pd

        rows = [
            {
                "layer": layer,
                "factor": factor,
                "information": self.information[i, j],
                "accuracy": self.accuracy[i, j],
                "chance": self.chance[j],
                "kl": self.kl[i],
                "latents": self.latents[i][0],
                "total_latents": self.latents[i][1],
            }
            for i, layer in enumerate(self.layers)
            for j, factor in enumerate(self.factors)
        ]
        return pd.DataFrame(rows)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw layers against factors, darker where more is known; with a path, write the picture too."""
        from unweave.evaluation.layer_figure import draw

        figure = draw(self)
        if path is not None:
            save_figure(figure, path)
        return figure


def score_layers(
    subject: Any,
    *,
    data: str | Path | GroundTruth | None = None,
    points: tuple[int, int] = POINTS,
    most: int = MOST,
    updates: int = UPDATES,
    seed: int | Stream = 0,
    tell: Progress | None = None,
) -> LayerScores:
    """Measure what each layer of a run's code knows about each factor of its data set, or of `data`.

    The run is of a hierarchy, such as `vd_vae`, whose layers of one resolution are scored together, or of a
    method whose code has blocks. A probe of each layer predicts all factors from its mean codes, as in
    `unweave.metrics.block_separation`. Of a layer with more than `most` latents it gets those with the
    largest divergence from their prior or, for codes without a prior, with the largest variance. `points` are
    how many images probes are fitted to and tested on.
    """
    run = open_subject(subject, None)
    truth = _truth_of(run, data)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise UnweaveError(f"most must be a whole number >= 1; got {most!r}.")
    effort = Effort(points, seed=seed)
    stream = effort.stream.child("layers")
    images = truth.observe(truth.sample_factors(LOOKED_AT, stream), stream)
    chosen = _chosen_latents(_layers(run, images, stream), most, run.spec.method.has_prior)
    if not chosen:
        raise UnweaveError(
            f"the code of {run.spec.method.name} has no layers or blocks. Use unweave.evaluate instead."
        )
    source = GroundTruthSource(lambda part: _read(run, part, chosen), truth, tell=tell)
    sample = source.sample(effort.points, "mean", effort.stream)
    ends = np.cumsum([0, *(len(layer.columns) for layer in chosen.values())])
    columns = [range(start, end) for start, end in pairwise(ends)]
    parts = split(sample.codes, sample.factors, (sample.test_codes, sample.test_factors))
    known = block_knowledge(parts, [*columns, range(ends[-1])], updates, stream)
    sizes = [(len(layer.columns), layer.total) for layer in chosen.values()]
    kl = [layer.kl for layer in chosen.values()]
    return LayerScores(
        str(run.path),
        truth.name,
        (*chosen, ALL),
        source.names,
        known.information,
        known.accuracy,
        known.chance,
        (*kl, sum(kl)),
        (*sizes, (sum(used for used, _ in sizes), sum(total for _, total in sizes))),
        _bound(run, images, stream),
        math.prod(truth.shape),
    )


class _Layer(NamedTuple):
    """Which latents of a layer, or of all layers of a resolution, are measured."""

    columns: NDArray[np.int64]
    total: int
    kl: float  # of all its latents; NaN without a prior


class _Codes(NamedTuple):
    """Means and divergences of latents, (n, latents) each."""

    mean: Floats
    kl: Floats


def _layers(run: Any, images: NDArray[np.uint8], seed: Stream | None = None) -> dict[str, _Codes]:
    """The latents of each resolution or block; with a seed, given latents above that are drawn."""
    groups: dict[str, list[Any]] = {}
    for name, posterior in run.layers(images, seed).items():
        groups.setdefault(name.partition("/")[0], []).append(posterior)
    return {
        name: _Codes(
            np.concatenate([layer.mean.flatten(1).cpu().numpy() for layer in layers], axis=1),
            np.concatenate([layer.kl_per_dimension().flatten(1).cpu().numpy() for layer in layers], axis=1),
        )
        for name, layers in groups.items()
    }


def _chosen_latents(layers: Mapping[str, _Codes], most: int, has_prior: bool) -> dict[str, _Layer]:
    """The latents of each layer with the largest divergences or, without a prior, variances."""
    chosen = {}
    for name, codes in layers.items():
        use = codes.kl.mean(axis=0) if has_prior else codes.mean.var(axis=0)
        largest = np.sort(np.argsort(-use, kind="stable")[:most])
        chosen[name] = _Layer(largest, len(use), float(use.sum()) if has_prior else math.nan)
    return chosen


def _read(run: Any, images: NDArray[np.uint8], chosen: Mapping[str, _Layer]) -> Posterior:
    """The chosen codes of all layers, next to each other."""
    rows = []
    for start in range(0, len(images), CHUNK):
        layers = _layers(run, images[start : start + CHUNK])
        rows.append(np.concatenate([layers[name].mean[:, chosen[name].columns] for name in chosen], axis=1))
    return Posterior(np.concatenate(rows), None)


def _bound(run: Any, images: NDArray[np.uint8], stream: Stream) -> float:
    """The mean evidence lower bound of images, with the noise that training has; NaN if there is none."""
    import torch

    from unweave.methods.sampling import Images
    from unweave.methods.step import Batch, StepContext
    from unweave.nn.draws import PopulationDraws

    method, spec = run.spec.method, run.spec
    if not isinstance(method.sampling, Images) or not method.own_networks:
        return math.nan
    bounds = []
    for number, start in enumerate(range(0, len(images), CHUNK)):
        batch = torch.from_numpy(images[start : start + CHUNK]).to(run.device)
        draws = PopulationDraws([stream], torch.tensor(number, device=run.device))
        step = StepContext(
            Batch(batch[None]), run.networks, draws, spec.steps, spec.steps, likelihood=spec.likelihood
        )
        with torch.no_grad():
            terms = method.losses(step).terms
        bounds += [float(terms["elbo"])] * len(batch) if "elbo" in terms else []
    return float(np.mean(bounds)) if bounds else math.nan


def _truth_of(run: Any, data: str | Path | GroundTruth | None) -> GroundTruth:
    if not hasattr(run, "layers"):
        raise UnweaveError(f"score_layers needs a trained run, or its folder; got {type(run).__name__}.")
    truth = open_data(data) if isinstance(data, str | Path) else data or run.data
    if not isinstance(truth, GroundTruth):
        raise UnweaveError(
            f"score_layers needs data with a full grid of factors, such as dsprites; got {truth.name}."
        )
    return truth
