"""Model-steps a second: a plain PyTorch loop of one model, and populations. `python benchmarks/training.py`.

Everything is what the study trains: beta-VAE, the released networks, dSprites, batch 64. A model-step is one
update of one model. The plain loop is the usual one: nn.Sequential, torch.optim.Adam, images drawn by NumPy
and sent to the device.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from unweave.data import load
from unweave.methods import BetaVAE
from unweave.spec import RunSpec
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.update import Update


def plain_model() -> tuple[nn.Module, nn.Module]:
    """The released encoder and decoder in plain PyTorch."""
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


def plain_step(device: torch.device) -> Callable[[], None]:
    """One update of one model, the usual way."""
    encoder, decoder = (part.to(device) for part in plain_model())
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4)
    images = load("dsprites")
    generator = np.random.default_rng(0)

    def step() -> None:
        factors = np.stack([generator.integers(size, size=64) for size in images.sizes], axis=1)
        x = torch.from_numpy(images.observe(factors)).to(device).float() / 255
        mean, log_var = encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(log_var / 2) * torch.randn_like(mean)
        rec = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum") / 64
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1).mean()
        optimiser.zero_grad(set_to_none=True)
        (rec + 4 * kl).backward()
        optimiser.step()

    return step


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", default="1,8,32,128", help="sizes of populations")
    parser.add_argument("--precisions", default="float32,bf16")
    parser.add_argument("--steps", type=int, default=0, help="steps a measurement; 0: as many as make sense")
    options = parser.parse_args()
    device = torch.device(options.device)
    chip = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else platform.processor() or platform.machine()
    )
    print(f"{chip}, torch {torch.__version__}, {torch.get_num_threads()} CPU threads")
    plain = rate(plain_step(device), options.steps or (200 if device.type == "cuda" else 20), device)
    print(f"{'plain PyTorch loop, float32':34s} {plain:10,.1f} model-steps/s   1.0 x")
    data = load("dsprites")
    batches = batches_of(data, device)
    for precision in options.precisions.split(","):
        for runs in map(int, options.runs.split(",")):
            specs = [RunSpec(BetaVAE(4.0), seed=seed, precision=precision) for seed in range(runs)]
            update = Update(Population(specs, data.shape, device), batches, len(data))
            update.run(3)
            steps = options.steps or max(5, (20_000 if device.type == "cuda" else 20) // runs)
            each = rate(lambda update=update: update.run(1), steps, device) * runs  # type: ignore[misc]
            name = f"population of {runs}, {precision}"
            print(f"{name:34s} {each:10,.1f} model-steps/s {each / plain:5.1f} x")


if __name__ == "__main__":
    main()
