"""Model-steps a second: a plain PyTorch loop of one model, and populations. `python benchmarks/training.py`.

On a CPU, plain loops with options of torch follow, and the dense architecture.

Everything is what the study trains: beta-VAE, the released networks, dSprites, batch 64. A model-step is one
update of one model. The plain loop is the usual one: nn.Sequential, torch.optim.Adam, images drawn by NumPy
and sent to the device.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plain_pytorch import loop_step, rate

from unweave.data import load
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.trainer import use_device
from unweave.training.update import Update

VARIANTS: tuple[dict[str, bool], ...] = ({"channels_last": True}, {"bf16": True}, {"fused": True})


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
    plain = rate(loop_step(device), options.steps or (200 if device.type == "cuda" else 20), device)
    print(f"{'plain PyTorch loop, float32':34s} {plain:10,.1f} model-steps/s   1.0 x")
    if device.type == "cpu":
        for options_of_torch in VARIANTS:
            each = rate(loop_step(device, **options_of_torch), options.steps or 20, device)
            name = f"plain, {', '.join(options_of_torch).replace('_', ' ')}"
            print(f"{name:34s} {each:10,.1f} model-steps/s {each / plain:5.1f} x")
    use_device(str(device))  # as training does
    data = load("dsprites")
    batches = batches_of(data, device)
    for architecture in ("released", "mlp") if device.type == "cpu" else ("released",):
        for precision in options.precisions.split(","):
            for runs in map(int, options.runs.split(",")):
                specs = [
                    RunSpec(BetaVAE(4.0), seed=seed, precision=precision, architecture=architecture)
                    for seed in range(runs)
                ]
                update = Update(Population(specs, data.shape, device), batches, len(data))
                update.run(3)
                steps = options.steps or max(5, (20_000 if device.type == "cuda" else 60) // runs)
                each = rate(lambda update=update: update.run(1), steps, device) * runs  # type: ignore[misc]
                name = f"population of {runs}, {precision}, {architecture}"
                print(f"{name:34s} {each:10,.1f} model-steps/s {each / plain:5.1f} x")


if __name__ == "__main__":
    main()
