"""One model in plain PyTorch, the usual way, which populations are compared with; and how both are timed.

A beta-VAE with the released networks on dSprites, batch 64, nn.Sequential and torch.optim.Adam.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.data import load
from unweave.training.batches import ResidentBatches

BATCH = 64


def model() -> tuple[nn.Module, nn.Module]:
    """The released encoder and decoder."""
    encoder = nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU(),
        nn.Conv2d(32, 64, 2, 2), nn.ReLU(), nn.Conv2d(64, 64, 2, 2), nn.ReLU(),
        nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 20),
    )  # fmt: skip
    decoder = nn.Sequential(
        nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Unflatten(1, (64, 4, 4)),
        nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1),
    )  # fmt: skip
    return encoder, decoder


def step_of(
    networks: tuple[nn.Module, nn.Module],
    optimiser: torch.optim.Optimizer,
    draw: Callable[[], Tensor],
    bf16: bool = False,
) -> Callable[[], None]:
    """One update, of images (64, 1, 64, 64) that are drawn for it; networks may compute in bfloat16."""
    encoder, decoder = networks

    def step() -> None:
        x = draw()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=bf16):
            mean, log_var = encoder(x).float().chunk(2, dim=1)
            z = mean + torch.exp(log_var / 2) * torch.randn_like(mean)
            logits = decoder(z).float()
        rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / BATCH
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1).mean()
        optimiser.zero_grad(set_to_none=True)
        (rec + 4 * kl).backward()
        optimiser.step()

    return step


def loop_step(
    device: torch.device, channels_last: bool = False, bf16: bool = False, fused: bool = False
) -> Callable[[], None]:
    """One update of one model; images are drawn by NumPy and sent to the device."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    encoder, decoder = (
        part.to(device, memory_format=layout)  # type: ignore[call-overload]
        for part in model()
    )
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4, fused=fused or None)
    images = load("dsprites")
    generator = np.random.default_rng(0)

    def draw() -> Tensor:
        factors = np.stack([generator.integers(size, size=BATCH) for size in images.sizes], axis=1)
        drawn = torch.from_numpy(images.observe(factors)).to(device).float() / 255
        return drawn.contiguous(memory_format=layout)

    return step_of((encoder, decoder), optimiser, draw, bf16)


def graph_step(device: torch.device) -> Callable[[], None]:
    """One update of one model as a CUDA graph, images on the device: what a patient person makes of it."""
    encoder, decoder = (part.to(device) for part in model())
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimiser = torch.optim.Adam(parameters, 1e-4, capturable=True, fused=True)
    table = ResidentBatches(load("dsprites"), device).table.images
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)

    def draw() -> Tensor:
        rows = table[torch.randint(len(table), (BATCH,), device=device)]
        return (rows.unsqueeze(-1) >> shifts & 1).view(BATCH, 1, 64, 64).float()

    step = step_of((encoder, decoder), optimiser, draw)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def rate(run: Callable[[], object], steps: int, device: torch.device) -> float:
    """Steps a second."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    run()
    wait()
    start = time.perf_counter()
    for _ in range(steps):
        run()
    wait()
    return steps / (time.perf_counter() - start)
