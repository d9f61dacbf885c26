"""The page about GPUs shows what was measured."""

import re
from pathlib import Path

import pandas as pd

from unweave.study import preset_named

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"
PRINTED = (RESULTS / "2026-11-15-h200-gpu.txt").read_text()


def rows(text: str, columns: int) -> list[list[str]]:
    """Rows of the page's tables with so many columns that have a number in the second."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [row for row in cells if len(row) == columns and re.fullmatch(r"[\d.,]+", row[1])]


def section(heading: str) -> str:
    """The page from a heading that begins so to the next one."""
    return PAGE.partition(f"# {heading}")[2].partition("\n#")[0]


def test_rates_are_those_that_were_measured() -> None:
    measured = re.findall(r"^(\S.*\S) +([\d,]+) +([\d.]+x) +\d+% +\d+%$", PRINTED, re.MULTILINE)
    shown = [tuple(row) for row in rows(PAGE, 3) if row[2].endswith("x")]
    assert len(shown) == 12
    assert set(shown) <= set(measured)


def test_the_sum_is_right() -> None:
    kinds = [row for row in rows(PAGE, 5) if row[0] != "sum"]
    [total] = [row for row in rows(PAGE, 5) if row[0] == "sum"]
    numbers = [[float(cell.replace(",", "")) for cell in row[1:]] for row in kinds]
    for _, steps, rate, hours in numbers:
        assert round(steps / rate / 3600, 1) == hours
    runs = preset_named("locatello2019").runs
    assert sum(row[0] for row in numbers) == len(runs) == int(total[1].replace(",", ""))
    assert sum(row[1] for row in numbers) == sum(run.steps for run in runs) == int(total[2].replace(",", ""))
    assert round(sum(steps / rate / 3600 for _, steps, rate, _ in numbers), 1) == float(total[4])
    assert (
        f"model-steps/s; training all 12,600 models of the study: {round(float(total[4]))} hours" in PRINTED
    )


def test_the_profile_is_the_one_that_was_measured() -> None:
    block = PRINTED.partition("beta_vae, 1 channel, 128 runs: ")[2].partition("\n\n")[0]
    total = float(block.split()[0])
    kernels = {name: float(time) for time, name in re.findall(r"([\d.]+) us in +\d+ x (_\w+)", block)}
    parts = {row[0]: float(row[1]) for row in rows(section("Where the time goes"), 3)}
    expected = {
        "spread": kernels["_spread_kernel"],
        "correlate": kernels["_correlate_kernel"],
        "weight gradients": kernels["_weight_gradient_kernel"],
        "gradients of the first and last layer": kernels["_edge_backward_kernel"],
        "Adam": kernels["_adam_kernel"],
        "last layer and likelihood": kernels["_last_sum_kernel"] + kernels["_last_products_kernel"],
        "first layer": kernels["_first_kernel"],
        "partial sums": kernels["_sum_kernel"],
        "batches": kernels["_image_kernel"],
    }
    expected["everything else"] = total - sum(expected.values())
    assert f"takes {total} us with P = 128" in PAGE
    assert parts.keys() == expected.keys()
    for name, time in parts.items():
        assert abs(time - expected[name]) <= 0.051, name


def test_small_populations_are_as_fast_as_was_measured() -> None:
    printed = (RESULTS / "2026-11-15-h200-small-populations.txt").read_text()
    found = re.findall(r"^(before|now) +(\S+) (\w+) P=(\d+) +(\d+) updates/s", printed, re.MULTILINE)
    measured = {(when, f"{method}, {how}, P = {runs}"): rate for when, method, how, runs, rate in found}
    shown = rows(section("Several populations"), 3)
    assert len(shown) == 4
    for name, before, now in shown:
        kind = name.partition(" (")[0]
        assert (before, now) == (measured["before", kind], measured["now", kind])


def test_precisions_are_those_that_were_measured() -> None:
    runs = pd.read_csv(RESULTS / "2026-11-15-h200-precisions.csv")
    assert runs.groupby("precision").size().to_dict() == {"bf16": 4, "float32": 4, "tf32": 4}
    lines = section("Precision").splitlines()
    for run in runs.to_dict("records"):
        start = f"| `{run['method']}` {run['strength']:g} | {run['precision']} |"
        [line] = [line for line in lines if line.startswith(start)]
        for score, digits in (("elbo.reconstruction", 1), ("elbo.kl", 2), ("mig", 3), ("sap", 3)):
            assert f"{run[score]:.{digits}f} (" in line
