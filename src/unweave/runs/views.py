"""What a trained run has learned, as labelled rows of images: reconstructions, traversals and swaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unweave.data.grid import GroundTruth, Images
from unweave.display.pictures import to_bytes
from unweave.errors import UnweaveError
from unweave.methods.sampling import Labels
from unweave.nn.distributions.gaussian import Gaussian
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.batches import Data
from unweave.training.factors import host_factors

SHOWN = 10  # images in a row
REACH = 2.0  # traversals go from -REACH to REACH, which holds 95 % of the prior
TAIL = 0.025  # codes without a prior move over the central 95 % of the codes of images
ROWS = 4  # rows of reconstructions
SEEN = 1000  # images from which a dimension's information is estimated
CONTENTS = 6  # rows of swaps
GROUPS = 256  # groups or sequences that show which factors are constant in all of them

Row = tuple[str, Images]  # a label and images (n, c, h, w)


class Model(Protocol):
    """What these views need of a trained run."""

    spec: RunSpec

    @property
    def data(self) -> Data:
        """The data set it was trained on."""

    def posterior(self, images: NDArray[Any]) -> Gaussian:
        """q(z|x) of images."""

    def encode(self, images: NDArray[Any]) -> NDArray[Any]:
        """The mean codes of images, (n, d)."""

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The mean images of codes, (n, c, h, w) in [0, 1]."""

    def reconstruct(self, images: NDArray[Any]) -> NDArray[Any]:
        """Images after encoding and decoding, (n, c, h, w) in [0, 1]."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of its codes, the coarsest first; empty without levels."""

    def mix(self, coarse: NDArray[Any], fine: NDArray[Any], levels: int) -> NDArray[Any]:
        """Images of all pairs: the first levels from `coarse`, the others from `fine`, row by row."""


def example_images(model: Model) -> Images:
    """Images of the data set of a run: the same ones whenever it is asked."""
    data, stream = model.data, Stream.of(model.spec.seed).child("pictures")
    return data.sample_images(SEEN, stream)


def reconstructions(model: Model, images: Images, columns: int = SHOWN, rows: int = ROWS) -> list[Row]:
    """Rows of images, and below each row its reconstructions."""
    _at_least("columns", columns, 1)
    _at_least("rows", rows, 1)
    lines: list[Row] = []
    for start in range(0, min(rows * columns, len(images)), columns):
        some = images[start : start + columns]
        lines += [("images", some), ("reconstructions", to_bytes(model.reconstruct(some)))]
    return lines


def traversals(
    model: Model, images: Images, columns: int = SHOWN, dimensions: int | Sequence[int] | None = None
) -> list[Row]:
    """One row for each dimension of the code, the most used first; all rows start from the first image.

    `dimensions` is how many of them, or which ones. Deterministic codes have no prior: they move over the
    range of the codes of the images.
    """
    _at_least("columns", columns, 1)
    if len(images) < 2 and not model.spec.method.has_divergence:
        raise UnweaveError(
            f"codes of {model.spec.method.name} move over the range of the codes of the images, so give 2 or "
            f"more images; got {len(images)}."
        )
    posterior = model.posterior(images)
    codes, used = posterior.mean.cpu().numpy(), use_of_dimensions(model, posterior)
    label = "{:.2f} nats" if model.spec.method.has_divergence else "deviation {:.2f}"
    low, high = spans(model, codes).T
    rows: list[Row] = []
    for dimension in _chosen(dimensions, used):
        moved = np.tile(codes[0], (columns, 1))
        moved[:, dimension] = np.linspace(low[dimension], high[dimension], columns)
        rows.append((f"z{dimension}\n{label.format(used[dimension])}", to_bytes(model.decode(moved))))
    return rows


def swaps(
    model: Model,
    images: Images,
    rows: int = CONTENTS,
    columns: int = SHOWN,
    levels: int | None = None,
) -> list[Row]:
    """A grid: each image has the content of the first of its row and the style of the first of its column.

    The first `rows` images give content, the next `columns - 1` style. If codes have levels, content is the
    first `levels` of them, by default half.
    """
    if not can_swap(model):
        raise UnweaveError(
            f"{model.spec.method.name} does not split its code into content and style, so there is nothing "
            "to swap. Methods such as ml_vae, gvae and style_gan2 do."
        )
    _at_least("rows", rows, 1)
    _at_least("columns", columns, 2)
    if len(images) < rows + columns - 1:
        raise UnweaveError(
            f"{rows} rows and {columns} columns of swaps need {rows + columns - 1} images; got "
            f"{len(images)}. Give more images, or fewer rows and columns."
        )
    chosen = images[: rows + columns - 1]
    styles = chosen[rows:]
    if content := content_of(model):
        codes = model.encode(chosen)
        made = model.decode(swapped(codes[:rows], codes[rows:], content))
    else:
        made = model.mix(chosen[:rows], styles, _chosen_levels(model, levels))
    lines: list[Row] = [("style of these", np.concatenate([np.full_like(images[:1], 255), styles]))]
    for image, row in zip(chosen[:rows], np.split(to_bytes(made), rows), strict=True):
        lines.append(("content of the first", np.concatenate([image[None], row])))
    return lines


def can_swap(model: Model) -> bool:
    """Whether a code has content and style, or levels."""
    return bool(content_of(model)) or len(model.levels) > 1


def spans(model: Model, codes: NDArray[Any]) -> NDArray[Any]:
    """(d, 2): from where to where each dimension moves, given the codes (n, d) of images."""
    return code_spans(codes, model.spec.method.has_divergence)


def code_spans(codes: NDArray[Any], has_prior: bool) -> NDArray[Any]:
    """(d, 2): the range of a standard normal prior, or the central 95% of codes (n, d) without one."""
    if has_prior:
        return np.tile([-REACH, REACH], (codes.shape[1], 1))
    return np.asarray(np.quantile(codes, [TAIL, 1 - TAIL], axis=0).T)


def use_of_dimensions(model: Model, posterior: Gaussian) -> NDArray[Any]:
    """(d,): each dimension's KL divergence from the prior, mean over the images.

    For deterministic codes, which have no such divergence, the standard deviation of the codes.
    """
    if model.spec.method.has_divergence:
        return np.asarray(posterior.kl_per_dimension().mean(dim=0).cpu())
    return np.asarray(posterior.mean.std(dim=0, correction=0).cpu())


def content_of(model: Model) -> int:
    """How many dimensions of the code, the first ones, are content; 0 if content and style are one."""
    content, latents = model.spec.method.content_dimensions(model.spec.latents), model.spec.latents
    return content if content < latents else 0


def content_factors(spec: RunSpec, truth: GroundTruth) -> tuple[str, ...]:
    """The names of the factors that the content of a run should hold; empty if that is not known.

    They are the factors that the method gets as labels, or that are constant in each of its groups or
    sequences. Nothing is known if these are all factors, or random ones for each group.
    """
    if "content" not in spec.method.code_blocks(spec.latents):
        return ()
    sampling, stream = spec.method.sampling, Stream.of(0)
    names = [factor.name for factor in truth.factors]
    if isinstance(sampling, Labels):
        constant = sampling.labeller(truth, truth.sample_factors(0, stream), stream).names
    else:
        factors = host_factors(truth, GROUPS, stream, sampling)
        groups = factors.reshape(GROUPS, sampling.together, len(names))
        is_constant = (groups == groups[:, :1]).all(axis=(0, 1))
        constant = tuple(name for name, same in zip(names, is_constant, strict=True) if same)
    return constant if len(constant) < len(names) else ()


def swapped(contents: NDArray[Any], styles: NDArray[Any], content: int) -> NDArray[Any]:
    """Codes of all pairs of a content and a style: those of the first of `contents` come first."""
    first = np.repeat(contents[:, :content], len(styles), axis=0)
    return np.concatenate([first, np.tile(styles[:, content:], (len(contents), 1))], axis=1)


def title(model: Model) -> str:
    """Method and data set."""
    return f"{model.spec.method.name} on {model.spec.data}"


def traversal_title(model: Model) -> str:
    """What a sheet of traversals shows."""
    reach = f"{-REACH:g} to {REACH:g}" if model.spec.method.has_divergence else "over 95% of its range"
    return f"{title(model)}: one dimension of the code moves, {reach}"


def swap_title(model: Model, levels: int | None = None) -> str:
    """What a sheet of swaps shows."""
    if content := content_of(model):
        return f"{title(model)}: content is z0 to z{content - 1}, style the rest"
    first, last = model.levels[0], model.levels[_chosen_levels(model, levels) - 1]
    return f"{title(model)}: content is {first if first == last else f'{first} to {last}'}, style the rest"


def _chosen_levels(model: Model, levels: int | None) -> int:
    """How many levels are content: half of them, unless a number is given."""
    return len(model.levels) // 2 if levels is None else levels


def _chosen(dimensions: int | Sequence[int] | None, used: NDArray[Any]) -> list[int]:
    """The dimensions to show: all or the first so many by use, or those that are named."""
    by_use = [int(dimension) for dimension in np.argsort(-used)]
    if dimensions is None:
        return by_use
    if isinstance(dimensions, int | np.integer):
        _at_least("dimensions", int(dimensions), 1)
        return by_use[: int(dimensions)]
    for dimension in dimensions:
        if dimension not in by_use:
            raise UnweaveError(
                f"the code has dimensions 0 to {len(used) - 1}; got {dimension!r}. Name dimensions as in "
                "dimensions=[0, 3], or say how many to show, as in dimensions=5."
            )
    return [int(dimension) for dimension in dimensions]


def _at_least(name: str, number: object, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise UnweaveError(f"{name} must be a whole number >= {least}; got {number!r}.")
