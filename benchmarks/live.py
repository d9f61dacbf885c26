"""What it costs a training that a page watches it.

    python benchmarks/live.py                          100 runs on this machine, for four minutes

One process trains all runs. Another serves their page, and a client asks it what the page asks, every two
seconds and with eight curves. The client asks in every other period, so both speeds are measured under the
same conditions. The browser itself is left out: it can run on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import numpy as np

from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.methods import BetaVAE
from unweave.nn.networks.architectures import Architecture
from unweave.nn.networks.published import Plan, PublishedDecoder, PublishedEncoder
from unweave.runs.spec import RunSpec
from unweave.streams import Stream
from unweave.training.trainer import Plan as TrainingPlan
from unweave.training.trainer import Report, Stopped, train_runs


def bars(factors: Factors, _stream: Stream) -> Images:
    """White bars in 32 places: small images, which a CPU trains quickly."""
    places = np.arange(32) == factors[:, :1]
    return np.asarray(np.broadcast_to(places[:, None, None], (len(factors), 1, 32, 32)) * np.uint8(255))


BARS = GroundTruth(
    "bars", (Factor("place", 32),), (1, 32, 32), bars, Card("bars", "none", ""), "made up", binary=True
)
DENSE = Plan((), (32,), (32,), "relu", ())
SMALL = Architecture(
    "small", "32 units", partial(PublishedEncoder, plan=DENSE), partial(PublishedDecoder, plan=DENSE)
)
ASK_EVERY = 2.0  # seconds, as the page does
EVERY = 2  # steps between two lines of a log: about a second on two cores
CURVES = 8  # runs whose curves are shown


class Page:
    """A server of a folder, and a client that asks like the page in every other period."""

    def __init__(self, folder: Path, period: float) -> None:
        words = [sys.executable, "-m", "unweave", "explore", str(folder), "--wait", "--no-open"]
        self.server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().split()[1] if self.server.stdout else ""
        self.period, self.started, self.cpu_at_start = period, time.monotonic(), self.cpu_seconds
        self.over, self.asked, self.longest = threading.Event(), 0, 0.0
        self.client = threading.Thread(target=self._ask, daemon=True)
        self.client.start()

    def is_watched(self, at: float) -> bool:
        """Whether the client asks at a time."""
        return int((at - self.started) / self.period) % 2 == 1

    @property
    def cpu_seconds(self) -> float:
        """Seconds of a processor that the server has used."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End both."""
        self.over.set()
        self.client.join()
        self.server.terminate()
        self.server.wait()

    def _ask(self) -> None:
        version, cursors = 0, dict[str, str]()
        while not self.over.wait(ASK_EVERY):
            if not self.is_watched(time.monotonic()):
                continue
            shown = ",".join(f"{key}~{cursor}" for key, cursor in cursors.items())
            start = time.monotonic()
            with urlopen(f"{self.url}api/live?since={version}&shown={shown}", timeout=60) as answer:  # noqa: S310
                record = json.load(answer)
            self.longest = max(self.longest, time.monotonic() - start)
            version, self.asked = record["version"], self.asked + 1
            keys = list(cursors) or [run["key"] for run in record["runs"][:CURVES]]
            cursors = {key: record["shown"].get(key, {}).get("cursor", "") for key in keys}


def train(folder: Path, runs: int, seconds: float, period: float) -> None:
    """Train until the time is over, and print the speeds."""
    small = f"{Path(__file__)}:SMALL"
    specs = [
        RunSpec(BetaVAE(4.0), "bars", seed, 10**9, batch=4, latents=2, architecture=small)
        for seed in range(runs)
    ]
    page = Page(folder, period)
    marks: list[tuple[float, int]] = []

    def note(report: Report) -> None:
        marks.append((time.monotonic(), report.step))
        if marks[-1][0] - page.started > seconds:
            raise Stopped

    try:
        folders = [folder / f"run{spec.seed}" for spec in specs]
        train_runs(specs, BARS, folders, TrainingPlan("auto", log_every=EVERY, largest=runs), note)
    except Stopped:
        pass
    used, watched = page.cpu_seconds - page.cpu_at_start, (time.monotonic() - page.started) / 2
    page.close()
    print(f"{runs} runs, {marks[-1][1]} steps, a line of each log every {EVERY}; {os.cpu_count()} cores")
    print(f"{page.asked} answers, the slowest after {1000 * page.longest:.0f} ms")
    print(f"server: {used:.2f} s of a core in {watched:.0f} watched s, {used / watched:.2%} of one core")
    print_ratio(page, marks)


def print_ratio(page: Page, marks: Sequence[tuple[float, int]]) -> None:
    """Compare the speed of each watched period with that of the period before it."""
    speeds: dict[int, float] = {}
    for number in range(1, int((marks[-1][0] - page.started) / page.period)):
        start = page.started + number * page.period
        inside = [mark for mark in marks if start <= mark[0] < start + page.period]
        if len(inside) > 1:
            speeds[number] = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
    pairs = [(speeds[n], speeds[n + 1]) for n in speeds if n % 2 == 0 and n + 1 in speeds]
    ratios = [watched / alone for alone, watched in pairs]
    if len(ratios) < 2:
        print("too few steps to compare speeds: give more --seconds, or fewer --runs")
        return
    rng = np.random.default_rng(0)
    means = [float(np.mean(rng.choice(ratios, len(ratios)))) for _ in range(10_000)]
    low, high = np.quantile(means, [0.025, 0.975])
    print(
        f"steps per second: {median(pair[0] for pair in pairs):.2f} alone, "
        f"{median(pair[1] for pair in pairs):.2f} watched"
    )
    interval = f"95% {low:.3f} to {high:.3f}, {len(ratios)} pairs"
    print(f"speed while watched: {np.mean(ratios):.3f} of that alone ({interval})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What it costs a training that a page watches it.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--period", type=float, default=10.0)
    chosen = parser.parse_args()
    with TemporaryDirectory() as place:
        train(Path(place), chosen.runs, chosen.seconds, chosen.period)
