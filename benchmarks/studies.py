"""What a study costs besides its runs, and whether it survives being killed.

    python benchmarks/studies.py                       12,600 runs that take no time: overhead, status, table
    python benchmarks/studies.py --chaos 1200 --kills 120    tiny real runs, and many kills

The first is a test of the machinery alone: its runs write what real ones write, but compute nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from study.chaos import STUDY, chaos, start, table_of
from study.tiny import Pretend
from unweave.progress import no_progress
from unweave.study import StudyFolder, StudySpec, preset_named
from unweave.study.engines.local import Post, run_local
from unweave.study.ledger import Ledger
from unweave.study.planner import plan_of
from unweave.study.progress import Status, status_of
from unweave.study.table import collect, write_table


def instant(folder: Path) -> None:
    """All runs of the published study, done in no time."""
    start_time = time.perf_counter()
    study = StudyFolder.create(folder, preset_named("locatello2019"))
    units = plan_of(study, 64)
    print(f"spec and plan: {time.perf_counter() - start_time:.1f} s for {len(study.runs):,} runs")
    memory: list[int] = []

    def tell(_status: Status) -> None:
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    alone = work_alone(study.spec)
    start_time = time.perf_counter()
    done = run_local(study, units, [Post(("evaluate", "train"), Pretend(), 1)], tell)
    each = (time.perf_counter() - start_time) / done.runs
    print(f"{done}: {1000 * each:.2f} ms a run by one worker")
    print(
        f"the same work without a study: {1000 * alone:.2f} ms; overhead {1000 * (each - alone):.2f} ms a run"
    )
    middle = memory[len(memory) // 2]
    print(f"memory of the driver: {middle / 1024:,.0f} MB half way, {memory[-1] / 1024:,.0f} MB at the end")
    start_time = time.perf_counter()
    status_of(study, units, Ledger(folder / "ledger.sqlite"))
    print(f"status: {time.perf_counter() - start_time:.2f} s")
    start_time = time.perf_counter()
    frame, _ = collect(study)
    write_table(frame, study.table)
    size = study.table.stat().st_size / 1e6
    print(f"table: {time.perf_counter() - start_time:.1f} s, {len(frame):,} rows, {size:.1f} MB")


def work_alone(spec: StudySpec, runs: int = 1280) -> float:
    """Seconds a run that the pretended work takes by itself: it writes the files of a run."""
    with TemporaryDirectory() as folder:
        part = dataclasses.replace(spec, runs=spec.runs[:runs])
        study = StudyFolder.create(folder, part)
        units = plan_of(study, 64)
        start_time = time.perf_counter()
        for unit in units:
            Pretend().train(study, unit, no_progress)
            for run in unit.runs:
                Pretend().evaluate(study, run, no_progress)
        return (time.perf_counter() - start_time) / runs


def shaken(folder: Path, runs: int, kills: int) -> None:
    """A study of tiny real runs next to one whose workers and drivers are killed."""
    (folder / "study.toml").write_text(STUDY.format(last=max(0, runs // 6 - 1)))
    start_time = time.perf_counter()
    start(folder / "calm", 3).wait()
    calm = time.perf_counter() - start_time
    start_time = time.perf_counter()
    done = chaos(folder, kills, workers=3)
    shaky = time.perf_counter() - start_time
    expected, found = table_of(StudyFolder(folder / "calm")), table_of(StudyFolder(folder / "chaos"))
    print(f"{found['run'].nunique():,} runs: {calm:.0f} s left alone, {shaky:.0f} s with {done} kills")
    print("the tables are equal" if found.equals(expected) else "THE TABLES DIFFER")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chaos", type=int, help="shake a study of so many runs")
    parser.add_argument("--kills", type=int, default=30)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.chaos:
            shaken(Path(folder), options.chaos, options.kills)
        else:
            instant(Path(folder))


if __name__ == "__main__":
    main()
