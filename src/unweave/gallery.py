"""The pictures of a trained run: what it keeps of an image, and what each dimension of its code does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from unweave.pictures import labelled_sheet, moving_sheet, save, to_bytes
from unweave.run import Run
from unweave.streams import Stream

SHOWN = 10  # images in a row
REACH = 2.0  # traversals go from -REACH to REACH, where 95 % of the prior is
ROWS = 4  # rows of reconstructions


def draw_pictures(run: Run) -> list[Path]:
    """Write reconstructions.png, traversals.png and traversals.gif into the run's folder."""
    stream = Stream.of(run.spec.seed).child("pictures")
    truth = run.data
    images = truth.observe(truth.sample_factors(1000, stream), stream)
    folder = run.path / "pictures"
    save(_reconstructions(run, images), folder / "reconstructions.png")
    rows = traversals(run, images)
    title = (
        f"{run.spec.method.name} on {run.spec.data}: one dimension of the code moves, {-REACH:g} to {REACH:g}"
    )
    save(labelled_sheet(title, rows), folder / "traversals.png")
    save(moving_sheet(title, rows), folder / "traversals.gif")
    return sorted(folder.iterdir())


def traversals(
    run: Run, images: NDArray[np.uint8], columns: int = SHOWN
) -> list[tuple[str, NDArray[np.uint8]]]:
    """A labelled row for each dimension of the code, the most informative first.

    Information is the dimension's KL divergence from the prior, mean over the images; the code of the first
    image is where all rows start from.
    """
    posterior = run.posterior(images)
    information = posterior.kl_per_dimension().mean(dim=0).cpu().numpy()
    start = posterior.mean[0].cpu().numpy()
    rows = []
    for dimension in np.argsort(-information):
        codes = np.tile(start, (columns, 1))
        codes[:, dimension] = np.linspace(-REACH, REACH, columns)
        label = f"z{dimension}\n{information[dimension]:.2f} nats"
        rows.append((label, to_bytes(run.decode(codes))))
    return rows


def _reconstructions(run: Run, images: NDArray[np.uint8]) -> Image:
    rows = []
    for i in range(ROWS):
        some = images[i * SHOWN : (i + 1) * SHOWN]
        rows += [("images", some), ("reconstructions", to_bytes(run.reconstruct(some)))]
    return labelled_sheet(f"{run.spec.method.name} on {run.spec.data}", rows)
