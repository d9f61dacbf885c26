"""How fast a GPU trains: `python benchmarks/gpu.py [--out FOLDER]`. One table for the chip it runs on.

Everything is what the study trains: the released networks, batch 64, 64 x 64 images. A model-step is one
update of one model. The plain loop is the usual one (nn.Sequential, torch.optim.Adam, images drawn by NumPy);
its CUDA graph has the data on the device and is what a patient person makes of it. The last columns say which
share of the measured copy bandwidth and matmul rate the least that a model-step must do would take: 60 MB and
5.2 GFLOP for one channel. `--profile` adds what a step of ours consists of.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import triton

from training import plain_model, plain_step, rate
from unweave.data import load
from unweave.methods import DIPVAE1, DIPVAE2, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, Method
from unweave.spec import RunSpec
from unweave.training.batches import Batches, batches_of
from unweave.training.population import Population
from unweave.training.update import Update

METHODS: dict[str, Method] = {
    "beta_vae": BetaVAE(4.0),
    "annealed_vae": AnnealedVAE(25.0),
    "beta_tcvae": BetaTCVAE(4.0),
    "dip_vae_i": DIPVAE1(5.0),
    "dip_vae_ii": DIPVAE2(5.0),
    "factor_vae": FactorVAE(10.0),
}
DEVICE = torch.device("cuda")
BYTES, OPERATIONS = 60e6, 5.2e9  # of a model-step
# Data sets of the study by channels, runs of each method on each data set, steps of a run.
ONE_CHANNEL, THREE_CHANNELS, RUNS, STEPS = 2, 5, 300, 300_000


class Table:
    """Lines that are printed as they come, and kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Add a line."""
        print(line, flush=True)
        self.lines.append(line)


def copy_rate() -> float:
    """Bytes a second, read and written, of a large copy."""
    source = torch.randint(0, 255, (2**31,), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * len(source) * rate(lambda: target.copy_(source), 20, DEVICE)


def matmul_rate() -> float:
    """Operations a second of a large product of bfloat16 matrices."""
    a = torch.randn(8192, 8192, device=DEVICE).bfloat16()
    return 2 * 8192**3 * rate(lambda: a @ a, 50, DEVICE)


def plain_graph() -> Callable[[], None]:
    """One update of one model as a CUDA graph, images on the device."""
    encoder, decoder = (part.to(DEVICE) for part in plain_model())
    optimiser = torch.optim.Adam(
        [*encoder.parameters(), *decoder.parameters()], 1e-4, capturable=True, fused=True
    )
    table = batches_of(load("dsprites"), DEVICE).table.images  # type: ignore[attr-defined]
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=DEVICE)

    def step() -> None:
        rows = table[torch.randint(len(table), (64,), device=DEVICE)]
        x = (rows.unsqueeze(-1) >> shifts & 1).view(64, 1, 64, 64).float()
        mean, log_var = encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(log_var / 2) * torch.randn_like(mean)
        rec = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum") / 64
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1).mean()
        optimiser.zero_grad(set_to_none=True)
        (rec + 4 * kl).backward()
        optimiser.step()

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


@contextlib.contextmanager
def population(method: Method, runs: int, precision: str, data: Any, batches: Batches) -> Iterator[Update]:
    """A population that is ready to go; its memory is given back."""
    specs = [RunSpec(method, seed=seed, precision=precision) for seed in range(runs)]  # type: ignore[arg-type]
    update = Update(Population(specs, data.shape, DEVICE), batches, len(data))
    update.run(3)
    yield update
    del update
    gc.collect()
    torch.cuda.empty_cache()


def model_rate(update: Update, seconds: float = 2.0) -> float:
    """Model-steps a second."""
    runs = len(update.population)
    few = rate(lambda: update.run(1), 5, DEVICE)
    return runs * rate(lambda: update.run(1), max(5, int(seconds * few)), DEVICE)


def profile(update: Update, name: str, say: Callable[[str], None]) -> None:
    """What a step consists of, in microseconds a model-step."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    runs = len(update.population)
    with torch_profile(activities=[ProfilerActivity.CUDA]) as measured:
        update.run(3)
        torch.cuda.synchronize()
    rows = sorted(measured.key_averages(), key=lambda row: -row.device_time_total)
    total = sum(row.device_time_total for row in rows) / 3 / runs
    say(f"\n{name}, {runs} runs: {total:.1f} us a model-step, of which")
    for row in rows[:14]:
        say(f"  {row.device_time_total / 3 / runs:6.2f} us in {row.count // 3:3d} x {row.key[:80]}")


def study_hours(one: float, three: float, factor_one: float, factor_three: float) -> float:
    """Hours of training of all 12,600 models of the study; FactorVAE makes half as many updates."""

    def seconds(sets: int, five: float, factor: float) -> float:
        return sets * RUNS * (5 * STEPS / five + STEPS / 2 / factor)

    return (seconds(ONE_CHANNEL, one, factor_one) + seconds(THREE_CHANNELS, three, factor_three)) / 3600


def measure(table: Table, sizes: Sequence[int], precisions: Iterable[str], with_profile: bool) -> None:
    """Fill the table."""
    copy, matmul = copy_rate(), matmul_rate()
    table.say(f"copy {copy / 1e12:.2f} TB/s, bf16 matmul {matmul / 1e12:.0f} TFLOP/s\n")
    table.say(f"{'':48s} model-steps/s  to plain  of copy  of matmul")

    def row(name: str, found: float) -> float:
        shares = f"{BYTES * found / copy:8.0%} {OPERATIONS * found / matmul:10.0%}"
        table.say(f"{name:48s} {found:13,.0f} {found / plain:8.1f}x {shares}")
        return found

    plain = rate(plain_step(DEVICE), 300, DEVICE)
    row("plain PyTorch loop, float32", plain)
    row("plain PyTorch in a CUDA graph, float32", rate(plain_graph(), 1000, DEVICE))
    profiles: list[Callable[[], None]] = []

    def ours(name: str, runs: int, precision: str, data: Any, batches: Batches) -> float:
        with population(METHODS[name], runs, precision, data, batches) as update:
            channels = f"{data.shape[0]} channel{'s' if data.shape[0] > 1 else ''}"
            found = row(f"{name}, {channels}, {precision}, P = {runs}", model_rate(update))
            if (
                with_profile
                and runs == max(sizes)
                and precision == "bf16"
                and name in ("beta_vae", "factor_vae")
            ):
                profile(update, f"{name}, {channels}", profiles.append)  # type: ignore[arg-type]
        return found

    rates = {}
    for data_name in ("dsprites", "color_dsprites"):
        data = load(data_name)
        batches = batches_of(data, DEVICE)
        if data_name == "dsprites":
            for precision in precisions:
                for runs in sizes if precision == "bf16" else sizes[-1:]:
                    ours("beta_vae", runs, precision, data, batches)
        for name in METHODS:
            rates[data_name, name] = ours(name, max(sizes), "bf16", data, batches)
    five = [
        [rates[data, name] for name in METHODS if name != "factor_vae"]
        for data in ("dsprites", "color_dsprites")
    ]
    means = [len(each) / sum(1 / r for r in each) for each in five]
    hours = study_hours(*means, rates["dsprites", "factor_vae"], rates["color_dsprites", "factor_vae"])
    table.say(
        f"\nfive methods without a discriminator: {means[0]:,.0f} and, three channels, {means[1]:,.0f} "
        f"model-steps/s; training all 12,600 models of the study: {hours:.0f} hours"
    )
    for line in profiles:
        table.say(line)  # type: ignore[arg-type]


def main() -> None:
    """Print the table, and write it down if told where."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1,8,32,64,128", help="sizes of populations")
    parser.add_argument("--precisions", default="bf16,tf32,float32")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path, help="folder for the table")
    options = parser.parse_args()
    table, chip = Table(), torch.cuda.get_device_name(DEVICE)
    table.say(
        f"{chip}, {date.today()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"CUDA {torch.version.cuda}"
    )
    sizes = [int(size) for size in options.sizes.split(",")]
    measure(table, sizes, options.precisions.split(","), options.profile)
    if options.out:
        name = "-".join(chip.lower().replace("nvidia", "").split())
        path = options.out / f"{date.today()}-{name}-gpu.txt"
        path.write_text("\n".join(table.lines) + "\n")


if __name__ == "__main__":
    main()
