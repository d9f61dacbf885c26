"""The very deep VAE against its authors' program, written again block by block for one model.

From github.com/openai/vdvae: vae.py (Block, Encoder, DecBlock, Decoder) and vae_helpers.py.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.methods import VDVAE
from unweave.methods.method import AUTOENCODER, AdamW
from unweave.nn.networks.very_deep import VeryDeep
from unweave.streams import Stream

WIDTH, ZDIM = 8, 3
BLOCKS = {1: 2, 4: 1, 8: 1}  # of images of 8 x 8 and four layers


class Program:
    """The program's model with the weights of one run."""

    def __init__(self, network: VeryDeep, run: int) -> None:
        self.weights = {name: value[run] for name, value in network.named_parameters()}

    def convolution(self, name: str, x: Tensor) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        return F.conv2d(x, weight, self.weights[f"{name}.bias"], padding=weight.shape[-1] // 2)

    def block(self, name: str, x: Tensor) -> Tensor:
        """`Block` without its residual: 3 x 3 in the middle unless images are smaller than that."""
        kernels = [self.weights[f"{name}.convolutions.{n}.weight"].shape[-1] for n in range(4)]
        assert kernels == ([1, 3, 3, 1] if x.shape[-1] > 2 else [1, 1, 1, 1])
        for number in range(4):
            x = self.convolution(f"{name}.convolutions.{number}", F.gelu(x))
        return x

    def encoder(self, x: Tensor) -> dict[int, Tensor]:
        """Activations of each resolution; the block that halves it comes after them."""
        x, activations, number = self.convolution("encoder.first", x), {}, 0
        for resolution, count in reversed(BLOCKS.items()):
            for _ in range(count):
                x, number = x + self.block(f"encoder.blocks.{number}", x), number + 1
            activations[resolution] = x
            if resolution > 1:
                down_rate = 4 if resolution == 4 else 2
                x = F.avg_pool2d(x + self.block(f"encoder.blocks.{number}", x), down_rate)
                number += 1
        return activations

    def decoder(self, activations: dict[int, Tensor], noises: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The output and the divergence of each layer, with the given noise in place of drawn one."""
        x, divergences, remaining = torch.zeros(1, WIDTH, 1, 1), [], iter(noises)
        for stage, (resolution, count) in enumerate(BLOCKS.items()):
            start = self.weights[f"stages.{stage}.start"]
            x = start + F.interpolate(x, size=(resolution, resolution))
            for number in range(count):
                name = f"stages.{stage}.blocks.{number}"
                acts = activations[resolution]
                both = torch.cat([x.expand_as(acts), acts], dim=1)
                qm, qv = self.block(f"{name}.inference", both).chunk(2, dim=1)
                pm, pv, xpp = self.block(f"{name}.prior", x).split([ZDIM, ZDIM, WIDTH], dim=1)
                z = torch.exp(qv) * next(remaining) + qm
                kl = -0.5 + pv - qv + 0.5 * (qv.exp() ** 2 + (qm - pm) ** 2) / pv.exp() ** 2
                divergences.append(kl)
                x = x + xpp + self.convolution(f"{name}.join", z)
                x = x + self.block(f"{name}.residual", x)
        gain, bias = (self.weights[name][None, :, None, None] for name in ("gain", "bias"))
        return self.convolution("last", x * gain + bias), divergences


def test_outputs_divergences_and_gradients_are_those_of_the_program() -> None:
    network = VeryDeep([Stream.of(0), Stream.of(1)], (1, 8, 8), WIDTH, ZDIM, layers=4, plain_blocks=0)
    drawn = Stream.of(2)
    for number, parameter in enumerate(network.parameters()):
        flat = drawn.child("weights", number).normal(1, parameter.numel())
        parameter.data += 0.2 * torch.from_numpy(flat).float().view(parameter.shape)
    images = torch.from_numpy(drawn.child("images").uniform(6, 64)).float().view(2, 3, 1, 8, 8)
    sizes = [layer.size for layer in network.layers]
    noise = torch.from_numpy(drawn.child("noise").normal(6, sum(sizes))).float().view(2, 3, -1)
    inferred = network.infer(images, noise)
    output = network.output(inferred.features)
    kl = [posterior.kl_per_dimension() for posterior in inferred.posteriors]
    for run in range(2):
        program = Program(network, run)
        noises = [
            part.view(3, *layer.shape)
            for part, layer in zip(noise[run].split(sizes, dim=-1), network.layers, strict=True)
        ]
        expected, divergences = program.decoder(program.encoder(images[run]), noises)
        torch.testing.assert_close(output[run], expected, rtol=1e-4, atol=1e-4)
        for found, divergence in zip(kl, divergences, strict=True):
            torch.testing.assert_close(found[run], divergence.flatten(1), rtol=1e-3, atol=1e-4)
        first = network.encoder.get_parameter("first.weight")
        theirs, ours = (
            torch.autograd.grad(loss, [first], retain_graph=True)[0]
            for loss in (
                expected.square().sum() + torch.stack([part.sum() for part in divergences]).sum(),
                output[run].square().sum() + torch.stack([part[run].sum() for part in kl]).sum(),
            )
        )
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_the_optimiser_is_that_of_the_program() -> None:
    """AdamW with betas 0.9 and 0.9, and the decay of the settings for CIFAR-10 and ImageNet; hps.py."""
    [player] = [player for player in VDVAE().players if player.name == AUTOENCODER]
    assert player.optimiser == AdamW(learning_rate=None, beta1=0.9, beta2=0.9, weight_decay=0.01)
    assert (player.average, player.skip_above) == (0.999, 400.0)
    assert VDVAE.run_defaults["gradient_clip"] == 200.0
