"""The pictures of a trained run: what it keeps of an image, and what each dimension of its code does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from unweave.data import Collection
from unweave.data.grid import Images
from unweave.nn.gaussian import Gaussian
from unweave.pictures import labelled_sheet, moving_sheet, save, to_bytes
from unweave.run import Run
from unweave.streams import Stream
from unweave.training.batches import Data

SHOWN = 10  # images in a row
REACH = 2.0  # traversals go from -REACH to REACH, where 95 % of the prior is
TAIL = 0.025  # or, of codes that no prior holds together, over 95 % of what images have
ROWS = 4  # rows of reconstructions
LAST = "traversals.gif"  # the picture that is written last: where it is, the others are
SEEN = 1000  # images from which a dimension's information is estimated
CONTENTS = 6  # rows of swaps


def draw_missing_pictures(run: Run) -> None:
    """Draw the pictures of a run, unless it has them."""
    if not (run.path / "pictures" / LAST).exists():
        draw_pictures(run)


def draw_pictures(run: Run) -> list[Path]:
    """Write reconstructions.png, traversals.png and traversals.gif into the run's folder.

    And swaps.png, if the method splits its code into content and style.
    """
    stream = Stream.of(run.spec.seed).child("pictures")
    images = _some_images(run.data, stream)
    folder = run.path / "pictures"
    save(_reconstructions(run, images), folder / "reconstructions.png")
    if content_of(run):
        save(swap_sheet(run, images), folder / "swaps.png")
    rows = traversals(run, images)
    reach = f"{-REACH:g} to {REACH:g}" if run.spec.method.stochastic else "over 95% of its range"
    title = f"{run.spec.method.name} on {run.spec.data}: one dimension of the code moves, {reach}"
    save(labelled_sheet(title, rows), folder / "traversals.png")
    save(moving_sheet(title, rows), folder / LAST)
    return sorted(folder.iterdir())


def traversals(run: Run, images: Images, columns: int = SHOWN) -> list[tuple[str, Images]]:
    """A labelled row for each dimension of the code, the most used first; all start from the first image.

    Codes that are not drawn have no prior: these move over the range that the images have.
    """
    posterior = run.posterior(images)
    codes, used = posterior.mean.cpu().numpy(), use_of_dimensions(run, posterior)
    label = "{:.2f} nats" if run.spec.method.stochastic else "deviation {:.2f}"
    low, high = spans(run, codes).T
    rows = []
    for dimension in np.argsort(-used):
        moved = np.tile(codes[0], (columns, 1))
        moved[:, dimension] = np.linspace(low[dimension], high[dimension], columns)
        rows.append((f"z{dimension}\n{label.format(used[dimension])}", to_bytes(run.decode(moved))))
    return rows


def spans(run: Run, codes: NDArray[Any]) -> NDArray[Any]:
    """(d, 2): from where to where each dimension is moved, by the codes (n, d) of images."""
    if run.spec.method.stochastic:
        return np.tile([-REACH, REACH], (codes.shape[1], 1))
    return np.asarray(np.quantile(codes, [TAIL, 1 - TAIL], axis=0).T)


def use_of_dimensions(run: Run, posterior: Gaussian) -> NDArray[Any]:
    """(d,): each dimension's KL divergence from the prior, mean over the images.

    Codes that are not drawn have no such divergence: for them, the standard deviation of the codes.
    """
    if run.spec.method.stochastic:
        return np.asarray(posterior.kl_per_dimension().mean(dim=0).cpu())
    return np.asarray(posterior.mean.std(dim=0, correction=0).cpu())


def swap_sheet(run: Run, images: Images) -> Image:
    """A grid: each image has the content of the first of its row and the style of the first of its column.

    The first `CONTENTS` images give content, the next ones style.
    """
    content = content_of(run)
    chosen = images[: CONTENTS + SHOWN - 1]
    codes, styles = run.encode(chosen), chosen[CONTENTS:]
    rows = [("style of these", np.concatenate([np.full_like(images[:1], 255), styles]))]
    for image, code in zip(chosen[:CONTENTS], codes[:CONTENTS], strict=True):
        made = to_bytes(run.decode(swapped(code[None], codes[CONTENTS:], content)))
        rows.append(("content of the first", np.concatenate([image[None], made])))
    title = f"{run.spec.method.name} on {run.spec.data}: content is z0 to z{content - 1}, style the rest"
    return labelled_sheet(title, rows)


def content_of(run: Run) -> int:
    """How many dimensions of its code, the first ones, are content; 0 where content and style are one."""
    content, latents = run.spec.method.content_dimensions(run.spec.latents), run.spec.latents
    return content if content < latents else 0


def swapped(contents: NDArray[Any], styles: NDArray[Any], content: int) -> NDArray[Any]:
    """Codes with content of one and style of another: the first of `contents` with all `styles`, then on."""
    first = np.repeat(contents[:, :content], len(styles), axis=0)
    return np.concatenate([first, np.tile(styles[:, content:], (len(contents), 1))], axis=1)


def _some_images(data: Data, stream: Stream) -> Images:
    if isinstance(data, Collection):
        return data.images_at(data.sample_index(SEEN, stream))
    return data.observe(data.sample_factors(SEEN, stream), stream)


def _reconstructions(run: Run, images: Images) -> Image:
    rows = []
    for i in range(ROWS):
        some = images[i * SHOWN : (i + 1) * SHOWN]
        rows += [("images", some), ("reconstructions", to_bytes(run.reconstruct(some)))]
    return labelled_sheet(f"{run.spec.method.name} on {run.spec.data}", rows)
