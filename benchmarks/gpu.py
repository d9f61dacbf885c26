"""How fast a GPU trains: `python benchmarks/gpu.py [--out FOLDER]`. One table for the chip it runs on.

Everything is what the study trains: the released networks, batch 64, 64 x 64 images. A model-step is one
update of one model. The plain loop is the usual one (nn.Sequential, torch.optim.Adam, images drawn by NumPy);
its CUDA graph has the data on the device and is what a patient person makes of it. The last columns say which
share of the measured copy bandwidth and matmul rate a model-step would take that stores all activations and
reads them when needed: 60 MB and 5.2 GFLOP for one channel. Fused layers store fewer. "mixed" are ten
runs of the six methods, two of them FactorVAE. "one by one" is without the kernels that fuse two layers,
nn/kernels/image_ends.py; "compact" is with the optimiser compact_adam. `--profile` adds what a step of ours
consists of. The table is written line by line, and a case that fails is a line, so what was measured is kept.

    python benchmarks/gpu.py --device cpu --sizes 1 --only beta_vae --seconds 0.1    # a trial
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from statistics import harmonic_mean

import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plain_pytorch import graph_step, loop_step, rate

from unweave.data import CATALOGUE, GroundTruth, load
from unweave.methods import DIPVAE1, DIPVAE2, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Method
from unweave.nn.kernels.image_ends import SWITCH as FUSED
from unweave.nn.layers.precision import Precision
from unweave.runs.spec import RunSpec
from unweave.study import preset_named
from unweave.training.batches import Batches, batches_of
from unweave.training.population import Population
from unweave.training.trainer import use_device
from unweave.training.update import GRAPH_STEPS, Update

METHODS: dict[str, Method] = {
    "beta_vae": BetaVAE(4.0),
    "annealed_vae": AnnealedVAE(25.0),
    "beta_tcvae": BetaTCVAE(4.0),
    "dip_vae_i": DIPVAE1(5.0),
    "dip_vae_ii": DIPVAE2(5.0),
    "factor_vae": FactorVAE(10.0),
}
MIXED = (*METHODS, *list(METHODS)[:3], "factor_vae")  # ten runs
PROFILED = ("beta_vae", "factor_vae")
DATA = {1: "dsprites", 3: "color_dsprites"}  # by channels
BYTES, OPERATIONS = 60e6, 5.2e9  # of a model-step


@dataclass(frozen=True)
class Case:
    """A population to be timed."""

    method: str
    channels: int
    precision: Precision
    runs: int
    fused: bool = True
    compact: bool = False

    @property
    def name(self) -> str:
        """What is trained."""
        differs = ("" if self.fused else ", one by one") + (", compact" if self.compact else "")
        return f"{self.method}, {self.channels} channel{'s' if self.channels > 1 else ''}{differs}"

    @property
    def specs(self) -> list[RunSpec]:
        """The runs."""
        methods = MIXED if self.method == "mixed" else [self.method] * self.runs
        optimiser = "compact_adam" if self.compact else "adam"
        return [
            RunSpec(METHODS[method], seed=seed, precision=self.precision, optimiser=optimiser)
            for seed, method in enumerate(methods)
        ]


@dataclass
class Table:
    """Lines that are printed and written to a file as they come."""

    path: Path | None = None

    def say(self, line: str) -> None:
        """Add a line."""
        print(line, flush=True)
        if self.path:
            with self.path.open("a") as file:
                file.write(line + "\n")


def copy_rate(device: torch.device) -> float:
    """Bytes a second, read and written, of a large copy."""
    size = 2**31 if device.type == "cuda" else 2**24
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * len(source) * rate(lambda: target.copy_(source), 20, device)


def matmul_rate(device: torch.device) -> float:
    """Operations a second of a large product of bfloat16 matrices."""
    side, repeats = (8192, 50) if device.type == "cuda" else (256, 3)
    a = torch.randn(side, side, device=device).bfloat16()
    return 2 * side**3 * rate(lambda: a @ a, repeats, device)


def cases(sizes: Sequence[int], precisions: Sequence[Precision]) -> list[Case]:
    """Sizes and precisions of one method; then all methods, one channel and three, at the largest size."""
    largest = max(sizes)
    found = [
        Case("beta_vae", 1, precision, runs)
        for precision in precisions
        for runs in (sizes if precision == "bf16" else [largest])
    ]
    found += [Case(method, channels, "bf16", largest) for channels in DATA for method in METHODS]
    found += [Case("mixed", channels, "bf16", len(MIXED)) for channels in DATA]
    found += [Case("beta_vae", channels, "bf16", runs, fused=False) for channels in DATA for runs in sizes]
    found += [Case(method, 1, "bf16", runs, compact=True) for method in PROFILED for runs in sizes]
    found += [Case("mixed", channels, "bf16", len(MIXED), compact=True) for channels in DATA]
    return list(dict.fromkeys(found))


@cache
def images(channels: int, device: torch.device) -> tuple[GroundTruth, Batches]:
    """Data and its batches."""
    data = load(DATA[channels])
    return data, batches_of(data, device)


def timed(case: Case, device: torch.device, seconds: float, profiled: bool) -> tuple[float, list[str]]:
    """Model-steps a second, and, if wanted, what they consist of."""
    data, batches = images(case.channels, device)
    os.environ[FUSED] = "1" if case.fused else "0"
    update = Update(Population(case.specs, data.shape, device), batches, len(data))
    update.run(3 + GRAPH_STEPS)
    few = rate(lambda: update.run(GRAPH_STEPS), 3, device)
    found = rate(lambda: update.run(GRAPH_STEPS), max(3, int(seconds * few)), device)
    return case.runs * GRAPH_STEPS * found, profile(update, case) if profiled else []


def profile(update: Update, case: Case) -> list[str]:
    """What a step consists of, in microseconds a model-step."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    with torch_profile(activities=[ProfilerActivity.CUDA]) as measured:
        update.run(3)
        torch.cuda.synchronize()
    rows = sorted(measured.key_averages(), key=lambda row: -row.device_time_total)
    steps = 3 * case.runs
    total = sum(row.device_time_total for row in rows) / steps
    return [f"\n{case.name}, {case.runs} runs: {total:.1f} us a model-step, of which"] + [
        f"  {row.device_time_total / steps:6.2f} us in {row.count // 3:3d} x {row.key[:80]}"
        for row in rows[:14]
    ]


def study_hours(rates: Mapping[tuple[str, int], float]) -> float:
    """Hours of training all models of the study, from the rates of methods with one channel and three."""
    channels = {entry.name: entry.channels for entry in CATALOGUE}
    runs = preset_named("locatello2019").runs
    return sum(run.steps / rates[run.method.name, channels[run.data]] for run in runs) / 3600


def measure(
    table: Table, chosen: Sequence[Case], device: torch.device, seconds: float, with_profile: bool
) -> None:
    """Fill the table."""
    copy, matmul = copy_rate(device), matmul_rate(device)
    table.say(f"copy {copy / 1e12:.2f} TB/s, bf16 matmul {matmul / 1e12:.0f} TFLOP/s\n")
    table.say(f"{'':48s} model-steps/s  to plain  of copy  of matmul")
    plain = rate(loop_step(device), 300 if device.type == "cuda" else 3, device)

    def row(name: str, found: float) -> None:
        shares = f"{BYTES * found / copy:8.0%} {OPERATIONS * found / matmul:10.0%}"
        table.say(f"{name:48s} {found:13,.0f} {found / plain:8.1f}x {shares}")

    row("plain PyTorch loop, float32", plain)
    if device.type == "cuda":
        row("plain PyTorch in a CUDA graph, float32", rate(graph_step(device), 1000, device))
    rates: dict[tuple[str, int], float] = {}
    largest = max(case.runs for case in chosen)
    for case in chosen:
        fastest = case.runs == largest and case.precision == "bf16"
        usual = fastest and case.fused and not case.compact
        profiled = with_profile and fastest and case.fused and case.method in PROFILED
        name = f"{case.name}, {case.precision}, P = {case.runs}"
        try:
            found, lines = timed(case, device, seconds, profiled)
        except Exception as error:
            table.say(f"{name:48s} failed: {type(error).__name__}: {str(error)[:200]}")
        else:
            row(name, found)
            for line in lines:
                table.say(line)
            if usual and case.method in METHODS:
                rates[case.method, case.channels] = found
        gc.collect()  # the population's memory is given back
        torch.cuda.empty_cache()
    if len(rates) == len(METHODS) * len(DATA):
        _say_hours(table, rates)


def _say_hours(table: Table, rates: Mapping[tuple[str, int], float]) -> None:
    one, three = (
        harmonic_mean([rates[method, channels] for method in METHODS if method != "factor_vae"])
        for channels in DATA
    )
    table.say(
        f"\nfive methods without a discriminator: {one:,.0f} and, three channels, {three:,.0f} "
        f"model-steps/s; training all 12,600 models of the study: {study_hours(rates):.0f} hours"
    )


def main() -> None:
    """Print the table, and write it to a file if one is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1,4,10,16,32,64,128", help="sizes of populations")
    parser.add_argument("--precisions", default="bf16,tf32,float32")
    parser.add_argument("--only", default="", help="a regular expression that names of cases must match")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path, help="folder for the table")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = use_device(options.device)
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    table = Table(_new_file(options.out, chip) if options.out else None)
    table.say(
        f"{chip}, {date.today()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"CUDA {torch.version.cuda}"
    )
    sizes = [int(size) for size in options.sizes.split(",")]
    chosen = cases(sizes, options.precisions.split(","))
    chosen = [case for case in chosen if re.search(options.only, case.name)]
    measure(table, chosen, device, options.seconds, options.profile)


def _new_file(folder: Path, chip: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join(chip.lower().replace("nvidia", "").split())
    path = folder / f"{date.today()}-{name}-gpu.txt"
    path.unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    main()
