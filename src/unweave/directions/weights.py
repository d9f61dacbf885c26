"""Directions by the weights of a generator: SeFa.

[1] Shen, Zhou: Closed-Form Factorization of Latent Semantics in GANs, CVPR 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.directions.directions import (
    Directions,
    Fitted,
    Floats,
    LinearReader,
    checked_count,
    signs,
)
from unweave.errors import UnweaveError
from unweave.metrics.checks import as_array, check_codes

# The stored parts of weights that are computed from them, by spectral and weight normalisation in torch.
COMPUTED = re.compile(r"(|.*\.)(?:parametrizations\.weight\.original\d*|weight_orig|weight_[gv])")
SMALL = 1e-10  # eigenvalues below this share of the largest are rounding errors


def sefa(
    weights: ArrayLike | Sequence[ArrayLike],
    k: int | None = None,
    *,
    mean: ArrayLike | None = None,
    normalise: bool = False,
) -> Directions:
    """The k directions that change the output of the first layer of a generator most.

    `weights` is the matrix A (m, d) of the layer y = A z + b, or a list of such matrices, one for each layer
    that takes z, such as the style layers of a StyleGAN. The directions are the eigenvectors of A^T A with
    the largest eigenvalues: the solutions of max |A n|^2 with |n| = 1 ([1], eq. 5). `explained` is the share
    of the sum of all eigenvalues. `mean` (d,) is the code that is 0 along all directions; default 0.

    Differs from [1]: the authors' code divides each row of A by its length first, which eq. 5 does not. Set
    `normalise` for the same.

    >>> sefa([[2.0, 0.0], [0.0, 1.0]], 1).directions
    array([[1., 0.]])
    """
    matrix = _stacked(weights)
    if normalise:
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = matrix / np.where(lengths > 0, lengths, 1.0)
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    values, vectors = values[::-1], vectors.T[::-1]
    if values[0] <= 0:
        raise UnweaveError("weights must not all be 0.")
    used = int((values > SMALL * values[0]).sum())
    count = checked_count(k, used, f"the weights use {used} of {matrix.shape[1]} directions")
    directions = vectors[:count] * signs(vectors[:count])
    origin = _origin(mean, matrix.shape[1])
    fitted = Fitted("sefa", settings="normalised" if normalise else "")
    reader = LinearReader(directions, origin)
    return Directions(directions, origin, values[:count] / values.sum(), reader, fitted)


def first_weights(generator: Any, latents: int) -> NDArray[Any]:
    """The weights (m, d) of the first layer of a torch module that takes d latents.

    A dense layer has weights (m, d), a transposed convolution (d, channels, height, width).
    """
    return _first_weights(generator, latents)


def weights_of_run(decoder: Any, latents: int, method: str) -> NDArray[Any]:
    """The weights (m, d) by which d codes enter the decoder of a run, a module of its networks."""
    # Here, because torch takes seconds to import.
    from unweave.nn.networks.coding import TakesCodes

    for name, network in decoder.named_children():
        if isinstance(network, TakesCodes):
            part = ".".join(filter(None, (name, network.takes_codes())))
            return _first_weights(decoder, latents, f"{part}.", wider=True)[:, :latents]
    try:
        return first_weights(decoder, latents)
    except UnweaveError as error:
        raise UnweaveError(
            f"sefa needs codes that enter the first layer of the decoder as they are, and those of {method} "
            'do not. Use by="pca" or by="ica", or choose weights yourself: unweave.directions.sefa(weights).'
        ) from error


def _first_weights(generator: Any, latents: int, part: str = "", *, wider: bool = False) -> NDArray[Any]:
    """The same of the layers whose names begin like this; `wider`: with more inputs after the latents."""
    # Here, because torch takes seconds to import.
    from torch import nn

    from unweave.nn.layers import ConvTranspose2d

    if not isinstance(generator, nn.Module):
        raise UnweaveError(
            f"first_weights takes a torch module; got {type(generator).__name__}. Pass weights to sefa."
        )
    for name, tensor in _weights_in(generator):
        array = as_array(tensor)
        if not name.startswith(part) or array.ndim < 2:
            continue
        if array.ndim == 2 and (array.shape[1] == latents or (wider and array.shape[1] > latents)):
            return array
        layer = generator.get_submodule(name.rpartition(".")[0])
        if isinstance(layer, nn.ConvTranspose2d | ConvTranspose2d) and array.shape[0] == latents:
            return array.reshape(latents, -1).T
        raise UnweaveError(
            f'the first layer must take {latents} latents; "{name}" has the shape {array.shape}. Choose the '
            "weights yourself: unweave.directions.sefa(weights)."
        )
    raise UnweaveError(f"{type(generator).__name__} has no layer with weights. Pass a torch module that has.")


def _weights_in(generator: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of the weights of a torch module, in the order of its layers."""
    for name, tensor in generator.state_dict().items():
        if parts := COMPUTED.fullmatch(name):
            yield f"{parts[1]}weight", _computed_weight(generator.get_submodule(parts[1].rstrip(".")))
        elif name.endswith("weight"):
            yield name, tensor


def _computed_weight(layer: Any) -> Any:
    """The weight of a layer that computes it.

    The hooks of older normalisations set it in a call of the layer. Before, it is not that of loaded parts.
    """
    from torch.nn.utils.spectral_norm import SpectralNorm
    from torch.nn.utils.weight_norm import WeightNorm

    for hook in layer._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm):
            return hook.compute_weight(layer, do_power_iteration=False)
        if isinstance(hook, WeightNorm):
            return hook.compute_weight(layer)
    return layer.weight


def _stacked(weights: Any) -> Floats:
    parts = list(weights) if isinstance(weights, list | tuple) else [weights]
    arrays = [as_array(part) for part in parts]
    if arrays and all(array.ndim == 1 for array in arrays):  # one matrix as a list of rows
        arrays = [np.stack(arrays)]
    widths = {array.shape[1] if array.ndim == 2 else None for array in arrays}
    if len(widths) != 1 or None in widths:
        shapes = ", ".join(str(array.shape) for array in arrays) or "nothing"
        raise UnweaveError(
            f"weights must be a matrix (m, d), or a list of matrices with the same d; got {shapes}."
        )
    stacked = np.concatenate(arrays)
    if len(stacked) == 1:  # check_codes takes two rows or more; a row of zeros changes no eigenvector
        stacked = np.concatenate([stacked, np.zeros_like(stacked)])
    return check_codes(stacked, "weights")


def _origin(mean: ArrayLike | None, width: int) -> Floats:
    origin = np.zeros(width) if mean is None else as_array(mean).astype(np.float64)
    if origin.shape != (width,):
        raise UnweaveError(f"mean must have the shape ({width},); got {origin.shape}.")
    return origin
