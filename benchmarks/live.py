"""What it costs a training that a page watches it.

    python benchmarks/live.py                                100 small runs on the CPU, for 20 minutes
    python benchmarks/live.py --device cuda --pairs 45 --seconds 6      100 runs on a GPU, for 10 minutes

One process trains all runs without a break. Time is divided into pairs of segments. In one segment of each
pair, chosen at random, a client asks the server of the page what the page asks: every two seconds, with eight
curves. Server and client are processes of their own. The result is the mean over pairs of the logarithm of
watched / unwatched speed, with its t-interval. The cost is below 2% if the whole interval is above 0.98.
The browser itself is left out: it can run on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.live_page import watched_segments

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.methods import BetaVAE
from unweave.nn.networks.architectures import Architecture
from unweave.nn.networks.published import Plan, PublishedDecoder, PublishedEncoder
from unweave.report.statistics import Interval, mean_interval
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.trainer import Plan as TrainingPlan
from unweave.training.trainer import Report, Stopped, default_precision, pick_device, train_runs

DENSE = Plan((), (32,), (32,), "relu", ())
SMALL = Architecture(
    "small", "32 units", partial(PublishedEncoder, plan=DENSE), partial(PublishedDecoder, plan=DENSE)
)
PAGE = Path(__file__).with_name("live_page.py")
NEVER = 10**9  # steps
LIMIT = 0.98  # of the unwatched speed, which the watched one must exceed


def bars(factors: Factors, _stream: Stream, size: int) -> Images:
    """White bars in as many places as there are columns."""
    places = np.arange(size) == factors[:, :1]
    return np.asarray(np.broadcast_to(places[:, None, None], (len(factors), 1, size, size)) * np.uint8(255))


def bars_of(size: int) -> GroundTruth:
    """A data set of bars: it needs no files."""
    draw, card = partial(bars, size=size), Card("bars", "none", "")
    return GroundTruth("bars", (Factor("place", size),), (1, size, size), draw, card, "made up", binary=True)


def specs_for(device: torch.device, runs: int) -> tuple[list[RunSpec], int]:
    """The runs, and the size of their images: those of the published study on a GPU, small ones on a CPU."""
    method = BetaVAE(4.0)
    if device.type == "cuda":
        precision = default_precision("cuda", method)
        return [RunSpec(method, "bars", seed, NEVER, precision=precision) for seed in range(runs)], 64
    small = f"{Path(__file__)}:SMALL"
    seeds = range(runs)
    return [RunSpec(method, "bars", s, NEVER, batch=4, latents=2, architecture=small) for s in seeds], 32


class Page:
    """The server of a folder, and the client once the measurement has begun."""

    def __init__(self, folder: Path, seconds: float, pairs: int) -> None:
        words = [sys.executable, str(PAGE), "serve", str(folder)]
        self.server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().strip() if self.server.stdout else ""
        self.seconds, self.pairs = seconds, pairs
        self.client: subprocess.Popen[str] | None = None
        self.starts = self.ends = float("inf")
        self.cpu_before = 0.0

    def begin(self) -> None:
        """Start the client and the first segment."""
        self.starts = time.monotonic() + 2  # until the client is ready
        self.ends = self.starts + 2 * self.pairs * self.seconds
        numbers = [str(value) for value in (self.starts, self.seconds, self.pairs)]
        words = [sys.executable, str(PAGE), "ask", self.url, *numbers]
        self.client, self.cpu_before = (
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True),
            self.cpu_seconds,
        )

    @property
    def cpu_seconds(self) -> float:
        """Seconds of a processor that the server has used."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> list[float]:
        """End both; return the seconds that each answer took."""
        output = self.client.communicate(timeout=120)[0] if self.client else "[]"
        self.server.terminate()
        self.server.wait()
        return list(json.loads(output))


def speeds(starts: float, seconds: float, pairs: int, marks: Sequence[tuple[float, float]]) -> np.ndarray:
    """(pairs, 2) steps per second of unwatched and watched segments; marks are times and steps."""
    bounds = starts + seconds * np.arange(2 * pairs + 1)
    times, steps = np.array(marks, float).T
    rates = np.diff(np.interp(bounds, times, steps)) / seconds
    watched = np.array(watched_segments(pairs))
    return np.stack([rates[~watched], rates[watched]], 1)


def ratio_of(pairs: np.ndarray) -> Interval:
    """The watched over the unwatched speed: the geometric mean over pairs with its t-interval."""
    logs = np.log(pairs[:, 1] / pairs[:, 0])
    return Interval(*np.exp(mean_interval(logs)).tolist())


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Train until all segments are over, and print the speeds."""
    device = pick_device(options.device)
    specs, size = specs_for(device, options.runs)
    log_every = options.log_every or (100 if device.type == "cuda" else 10)
    page = Page(folder, options.seconds, options.pairs)
    marks: list[tuple[float, int]] = []

    def note(report: Report) -> None:
        marks.append((time.monotonic(), report.step))
        if page.client is None and marks[-1][0] - marks[0][0] > options.warm_up:
            page.begin()
        if marks[-1][0] > page.ends:
            raise Stopped

    try:
        plan = TrainingPlan(str(device), log_every, checkpoint_every=NEVER, largest=options.runs)
        train_runs(specs, bars_of(size), [folder / f"run{spec.seed}" for spec in specs], plan, note)
    except Stopped:
        pass
    used = page.cpu_seconds - page.cpu_before
    delays = page.close()
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    print(f"{chip}, {cores}; {options.runs} runs, images of {size}x{size}")
    pairs = speeds(page.starts, page.seconds, page.pairs, marks)
    print_results(pairs, delays, used, options, log_every)


def print_results(
    pairs: np.ndarray, delays: Sequence[float], used: float, options: argparse.Namespace, log_every: int
) -> None:
    """Print the speeds, the cost and the verdict, and write the speeds of all pairs."""
    watched = options.pairs * options.seconds
    alone, seen = np.median(pairs, 0)
    print(f"a line of each log every {log_every} steps: {log_every / alone:.2f} s")
    print(f"{len(delays)} answers, the slowest after {1000 * max(delays):.0f} ms")
    print(f"server: {used:.2f} s of a core in {watched:.0f} watched s, {used / watched:.2%} of one core")
    print(f"steps per second: {alone:.2f} unwatched, {seen:.2f} watched (medians)")
    ratio = ratio_of(pairs)
    bounds = f"95% {ratio.low:.4f} to {ratio.high:.4f}, {len(pairs)} pairs of 2 x {options.seconds:g} s"
    print(f"speed while watched: {ratio.estimate:.4f} of that unwatched ({bounds})")
    print(f"cost below 2%: {'shown' if ratio.low > LIMIT else 'not shown'}")
    if options.out:
        lines = [f"{a:.6g},{b:.6g}" for a, b in pairs]
        options.out.write_text("\n".join(["unwatched,watched", *lines]) + "\n")


def main() -> None:
    """Measure as the arguments say."""
    parser = argparse.ArgumentParser(description="What it costs a training that a page watches it.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=60, help="of a watched and an unwatched segment")
    parser.add_argument("--seconds", type=float, default=10.0, help="of one segment")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds of training before the first")
    parser.add_argument("--log-every", type=int, default=0, help="steps; 0: 100 on a GPU, 10 on a CPU")
    parser.add_argument("--out", type=Path, help="CSV file for the speeds of all pairs")
    with TemporaryDirectory() as place:
        measure(Path(place), parser.parse_args())


if __name__ == "__main__":
    main()
