"""What rounding leaves of the gradients of trained runs: whether their methods can train in bf16 and tf32.

    python benchmarks/gradient_precision.py RUN... --data dsprites

Each RUN is the folder of a trained run. For each of its players a table in Markdown has the cosine of its
gradient in float32 with the one in another precision, for the same weights and images; and, to see what such
a number means, with the one of other images in float32. 1 is no loss at all.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from unweave.data import GroundTruth, load
from unweave.nn.layers import set_precision
from unweave.nn.layers.precision import Precision
from unweave.runs.store import RunFolder
from unweave.training.batches import HostBatches
from unweave.training.population import Population
from unweave.training.trainer import pick_device
from unweave.training.update import Update


def gradients(folder: RunFolder, data: GroundTruth, precision: Precision, step: int) -> dict[str, Tensor]:
    """Of each player, all its parameters in one; every player in that precision, whatever it asks for."""
    # Methods that refuse bf16 are measured too: the precision is set for the networks, and not in the spec.
    context: Precision = "float32" if precision == "bf16" else precision
    device, spec = pick_device("auto"), replace(folder.spec, precision=context)
    source = HostBatches(data, device)
    run = Population([spec], data.shape, device, source.label_sizes(spec.method.sampling))
    trained = {f"weights.{name}": weight for name, weight in folder.weights().items()}
    moments = {name: torch.zeros_like(moment) for name, moment in run.run_state(0).items()}
    run.load_run_state(0, moments | trained)
    run.step.fill_(step)
    for player in run.players:
        for network in player.networks.values():
            set_precision(network, precision)
        player.optimiser.attach(player.parameters())
    found = Update(run, source, len(data)).gradients()
    return {player.name: torch.cat([g.float().flatten() for g in parts]) for player, parts in found}


def rows_of(folder: RunFolder, data: GroundTruth) -> list[str]:
    """One line for each player."""
    last = folder.spec.steps - 1
    exact, other = (gradients(folder, data, "float32", step) for step in (last, last - 1))
    rounded = {name: gradients(folder, data, name, last) for name in _precisions()}
    lines = []
    for player, gradient in exact.items():
        others = [*(found[player] for found in rounded.values()), other[player]]
        cosines = [f"{float(cosine_similarity(gradient, each, dim=0)):.3f}" for each in others]
        lines.append(f"| `{folder.spec.method.name}` | {player} | {' | '.join(cosines)} |")
    return lines


def _precisions() -> tuple[Precision, ...]:
    return ("bf16", "tf32") if torch.cuda.is_available() else ("bf16",)  # a CPU has no tf32


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data", default="dsprites")
    given = parser.parse_args()
    data = load(given.data)
    print(f"| method | player | {' | '.join(_precisions())} | other images |")
    print(f"|---|---|{'---|' * (len(_precisions()) + 1)}")
    for path in given.runs:
        print("\n".join(rows_of(RunFolder(path), data)), flush=True)


if __name__ == "__main__":
    main()
