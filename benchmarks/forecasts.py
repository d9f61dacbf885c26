"""How long the follow-up studies take in small, and what `unweave study plan` had forecast.

    python benchmarks/forecasts.py --csv forecasts.csv
    python benchmarks/forecasts.py --studies montero2021,roth2023

Each study is planned and then run with `--preset smoke`, as a user does it. Nothing else should run on the
machine. A row is printed and written to the CSV as soon as a study has ended: seconds of the forecast and
of the command, and by how much the forecast is off.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd

from unweave.study import StudyFolder
from unweave.study.forecast import forecast_of
from unweave.study.planner import plan_of, population_size
from unweave.study.session import study_named
from unweave.training.trainer import pick_device

STUDIES = (
    "montero2021",
    "schott2022",
    "traeuble2021",
    "roth2023",
    "locatello2019_fairness",
    "vansteenkiste2019",
    "locatello2020_few_labels",
    "locatello2020_weak",
    "tonnaer2022",
    "locatello2019_mini",
)


class Row(NamedTuple):
    """A study; the times are in seconds."""

    study: str
    runs: int
    forecast: float
    measured: float
    off: str


def timed(name: str, device: str) -> Row:
    """Forecast a study in small, and run it."""
    with TemporaryDirectory() as place:
        spec, _ = study_named(name, "smoke")
        planned = StudyFolder.create(Path(place) / "planned", spec)
        units = plan_of(planned, population_size(pick_device(device)))
        expected = forecast_of(planned, units, [], device, None).total
        options = ["--preset", "smoke", "--device", device, "--out", str(Path(place) / "run"), "--quiet"]
        program = str(Path(sys.executable).with_name("unweave"))
        start = time.perf_counter()
        subprocess.run([program, "study", "run", name, *options], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
    return Row(name, len(spec.runs), round(expected, 1), round(seconds, 1), f"{expected / seconds - 1:+.0%}")


def main() -> None:
    """Print a row for each study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", default=",".join(STUDIES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    width = max(map(len, STUDIES))
    for name in options.studies.split(","):
        rows.append(timed(name, options.device))
        study, runs, *seconds = rows[-1]
        print(f"{study:{width}s} {runs:3d} runs  {' '.join(f'{part!s:>7}' for part in seconds)}", flush=True)
        if options.csv:
            pd.DataFrame(rows).to_csv(options.csv, index=False)
    logs = [math.log(row.forecast / row.measured) for row in rows]
    print(f"largest deviation: {math.exp(max(map(abs, logs))) - 1:.0%}")


if __name__ == "__main__":
    main()
