"""The networks of a run as modules of torch, for images (B, c, h, w) without the axis of runs.

`state_dict` has the layout of torch's layers: weights of dense layers are (outputs, inputs), those of
convolutions (outputs, inputs, kernel, kernel), those of transposed ones (inputs, outputs, kernel, kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.methods.method import Method
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.layers import Linear


@final
class EncoderModule(nn.Module):
    """Images (B, c, h, w), numbers in [0, 1] -> mean and log variance of their codes, (B, d) each."""

    def __init__(self, method: Method, networks: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._method = method
        _own(self, networks)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The posterior of each image."""
        posterior = self._method.encode(dict(self.named_children()), images[None])
        return posterior.mean[0], posterior.log_var[0]


@final
class DecoderModule(nn.Module):
    """Codes (B, d) -> mean images (B, c, h, w), numbers in [0, 1]."""

    def __init__(self, method: Method, networks: Mapping[str, nn.Module], likelihood: str) -> None:
        super().__init__()
        self._method, self._mean = method, likelihood_named(likelihood).mean
        _own(self, networks)

    def forward(self, codes: Tensor) -> Tensor:
        """The mean image of each code."""
        return self._mean(self._method.decode(dict(self.named_children()), codes[None])[0])


class Modules(NamedTuple):
    """The two directions of an autoencoder."""

    encoder: EncoderModule
    decoder: DecoderModule


def modules_of(
    method: Method,
    networks: Mapping[str, nn.Module],
    shape: tuple[int, int, int],
    latents: int,
    likelihood: str,
) -> Modules:
    """Copies of the networks that encode and of those that decode; their weights can be trained."""
    encoding = _used(networks, lambda parts: method.encode(parts, torch.zeros(1, 2, *shape)))
    decoding = _used(networks, lambda parts: method.decode(parts, torch.zeros(1, 2, latents)))
    return Modules(EncoderModule(method, encoding), DecoderModule(method, decoding, likelihood))


def _used(
    networks: Mapping[str, nn.Module], compute: Callable[[dict[str, nn.Module]], object]
) -> dict[str, nn.Module]:
    """Copies on the CPU of those networks that a computation goes through, all of them if none is noticed."""
    parts = {name: deepcopy(network).cpu() for name, network in networks.items()}
    used: set[str] = set()
    hooks = [
        part.register_forward_pre_hook(lambda *_, name=name: used.add(name))
        for name, network in parts.items()
        for part in network.modules()
    ]
    with torch.no_grad():
        compute(parts)
    for hook in hooks:
        hook.remove()
    return {name: network for name, network in parts.items() if name in used} or parts


def _own(module: nn.Module, networks: Mapping[str, nn.Module]) -> None:
    """Add networks to a module, and let its state have the layout of torch's layers."""
    for name, network in networks.items():
        module.add_module(name, network.requires_grad_(True))
    module.register_state_dict_post_hook(_to_torch)
    module.register_load_state_dict_pre_hook(_from_torch)


def _to_torch(module: nn.Module, state: dict[str, Any], prefix: str, _metadata: object) -> None:
    """Remove the axis of runs, and transpose the weights of dense layers."""
    for name, is_dense_weight in _layouts(module).items():
        if (key := f"{prefix}{name}") in state:  # a buffer need not be part of the state
            state[key] = state[key][0].T if is_dense_weight else state[key][0]


def _from_torch(module: nn.Module, state: dict[str, Any], prefix: str, *_options: object) -> None:
    """The opposite of `_to_torch`; names that are missing are reported by torch."""
    for name, is_dense_weight in _layouts(module).items():
        if (key := f"{prefix}{name}") in state:
            state[key] = (state[key].T if is_dense_weight else state[key])[None]


def _layouts(module: nn.Module) -> dict[str, bool]:
    """Whether each parameter and buffer of a module is the weight of a dense layer, by name."""
    dense = {f"{name}.weight" for name, part in module.named_modules() if isinstance(part, Linear)}
    tensors = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    return {name: name in dense for name, _ in tensors}
