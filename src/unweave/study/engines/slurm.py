"""The Slurm engine: an array of jobs, each of which does one shard of the study.

The driver submits the jobs, follows them in the queue and submits those again that died. It may end at any
time: the jobs continue, and the next driver finds them by `slurm/jobs.json` in the study's folder. What is
done is read from the folders of the runs.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.files import write_json, write_text
from unweave.layout import ERROR_FILE, RESULT_FILE, SCORES_FILE
from unweave.locks import claim
from unweave.study.engines.engine import Crew, EngineJob
from unweave.study.engines.slurm_queue import Queue, array_text, queue, submit, was_cancelled
from unweave.study.engines.slurm_script import Resources, job_script, shard_command
from unweave.study.folder import StudyFolder
from unweave.study.planner import Unit
from unweave.study.progress import Status, status_of_folders
from unweave.study.tasks import has_failed, is_done

SCHEMA = 1
JOBS_FILE = "jobs.json"
DRIVER_LOCK_FILE = "driver.lock"
SHARDS = 8  # jobs of an array, unless the user says how many
MAX_UNANSWERED = 20  # failed calls of squeue in a row after which the driver gives up
USER_ERROR = 2  # exit status of a command that ended with an UnweaveError


@dataclass(frozen=True)
class SlurmEngine:
    """Slurm jobs, `array` of them, each with these resources; see `sbatch --help` for their form."""

    partition: str | None = None
    time: str | None = None
    gres: str | None = None
    cpus: int | None = None
    array: int | None = None
    sbatch: str | None = None  # further arguments of sbatch
    workers: int | None = None  # worker processes of each job
    max_requeues: int = 10  # of a shard, in a row, without progress
    look_every: float = 15.0  # seconds between two calls of squeue
    grace: float = 60.0  # seconds after which a job that is not in the queue, and left no status, is dead
    program: tuple[str, ...] = (sys.executable, "-m", "unweave")

    @contextmanager
    def start(self, job: EngineJob) -> Iterator[Crew]:
        """Find the jobs that are still queued; nothing is submitted yet."""
        if job.ledger_path is not None:
            raise UnweaveError("the Slurm engine makes the shards itself. Leave --shard out.")
        for name, count in (("array", self.array), ("cpus", self.cpus)):
            if count is not None and count < 1:
                raise UnweaveError(f"{name} must be a whole number >= 1; got {count}.")
        folder = slurm_folder(job.study)
        folder.mkdir(parents=True, exist_ok=True)
        with claim(folder / DRIVER_LOCK_FILE, f"the Slurm engine of {job.study.path}"):
            yield _Jobs(self, job)


@dataclass(frozen=True)
class Submission:
    """The last job that was submitted for a shard."""

    job: str  # id of the array
    submitted: float  # seconds since 1970
    attempts: int  # how often the shard was submitted in a row without progress
    progress: int  # steps and scores of the shard when it was submitted


@dataclass
class Record:
    """What `jobs.json` says: how many shards there are, and the last job of each."""

    shards: int
    jobs: dict[int, Submission] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the record atomically."""
        jobs = {str(shard): asdict(submission) for shard, submission in self.jobs.items()}
        write_json(path, {"schema": SCHEMA, "shards": self.shards, "jobs": jobs})

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """The record in a file, or None if there is no file."""
        try:
            content = json.loads(path.read_text())
            jobs = {int(shard): Submission(**entry) for shard, entry in content["jobs"].items()}
            return cls(int(content["shards"]), jobs)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnweaveError(
                f"cannot read {path}: {error!r}. Cancel the Slurm jobs of this study with scancel, delete "
                "the file and run the same command again."
            ) from error


def slurm_folder(study: StudyFolder) -> Path:
    """Where the script, the record and the logs of the jobs are; a job knows it by its full path."""
    return study.path.absolute() / "slurm"


def submitted_jobs(study: StudyFolder) -> list[str]:
    """The ids of the last jobs of all shards of a study; empty if it was not submitted to Slurm."""
    record = Record.read(slurm_folder(study) / JOBS_FILE)
    return _ids(record.jobs) if record else []


def _ids(jobs: Mapping[int, Submission]) -> list[str]:
    return list(dict.fromkeys(submission.job for submission in jobs.values()))


class _Jobs:
    """The jobs of one study, as its driver knows them."""

    def __init__(self, engine: SlurmEngine, job: EngineJob) -> None:
        self.engine, self.job, self.study = engine, job, job.study
        self.folder = slurm_folder(job.study)
        self.due, self.unanswered, self.running = 0.0, 0, 0
        self.record = self._attached() or Record(min(engine.array or SHARDS, max(1, len(job.units))))
        self.open = {
            shard
            for shard in range(self.record.shards)
            if not all(is_done(self.study, run) for run in self._runs(shard))
        }
        self.seen: dict[int, float] = {}  # shards whose jobs this driver saw or submitted, and when
        self.lost: dict[int, str] = {}  # shards that were given up, and why
        self.last_status = status_of_folders(self.study)

    def advance(self) -> bool:
        """Submit what is neither done nor queued; False when nothing is open."""
        if time.monotonic() < self.due:
            return True
        self.due = time.monotonic() + self.engine.look_every
        if self.open and (jobs := self._queue()) is not None:
            self.running = 0
            self._submit([shard for shard in sorted(self.open) if self._must_be_submitted(shard, jobs)])
        self.last_status = replace(status_of_folders(self.study), running=self.running)
        if self.open:
            return True
        if self.lost:
            reasons = " ".join(f"Shard {shard} {reason}." for shard, reason in sorted(self.lost.items()))
            raise UnweaveError(f"{len(self.lost)} shards are not done. {reasons}")
        return False

    def wait(self, seconds: float) -> None:
        """Let the jobs work."""
        time.sleep(seconds)

    def status(self) -> Status:
        """What the folders of the runs said when the queue was last read."""
        return self.last_status

    def stop(self) -> str:
        """Detach: the jobs continue."""
        ids = _ids({shard: self.record.jobs[shard] for shard in self.open if shard in self.record.jobs})
        if not ids:
            return ""
        where = shlex.quote(str(self.study.path))
        return (
            f". The Slurm jobs continue. To see how far they are: unweave study status {where}. "
            f"To cancel them: scancel {' '.join(ids)}. To watch them"
        )

    def _attached(self) -> Record | None:
        """The record of an earlier driver, if one of its jobs is still queued or it fits this call."""
        record = Record.read(self.folder / JOBS_FILE)
        if record is None:
            return None
        if (jobs := self._queue()) is None:
            raise UnweaveError(
                "squeue does not answer, so the jobs that are queued are unknown. Run the same command again "
                "later."
            )
        queued = [shard for shard, last in record.jobs.items() if (last.job, shard) in jobs]
        if queued:
            ids = " ".join(_ids({shard: record.jobs[shard] for shard in queued}))
            self.job.say(f"attached to Slurm job {ids}: {len(queued)} of {record.shards} shards are queued")
            return record
        return record if record.shards == (self.engine.array or record.shards) else None

    def _queue(self) -> Queue | None:
        jobs = queue()
        self.unanswered = 0 if jobs is not None else self.unanswered + 1
        if self.unanswered > MAX_UNANSWERED:
            raise UnweaveError(
                f"squeue failed {self.unanswered} times in a row. Jobs that were submitted continue; run the "
                "same command again to watch them."
            )
        return jobs

    def _must_be_submitted(self, shard: int, jobs: Queue) -> bool:
        """Whether an open shard has no job that is queued, and needs one; records what has ended."""
        last = self.record.jobs.get(shard)
        if last is None:
            return True
        if (last.job, shard) in jobs:
            self.seen[shard] = time.time()
            self.running += jobs[last.job, shard] == "RUNNING"
            return False
        if self._exit_status(shard, last) is None and not self._is_missing(shard, last):
            return False  # Slurm may not list a new job at once, nor a shared disk show a new file
        if shard not in self.seen:
            return True  # it ended before this driver was started
        return self._must_be_requeued(shard, last)

    def _must_be_requeued(self, shard: int, last: Submission) -> bool:
        """Whether a shard whose job has ended must be tried again; if not, it is closed."""
        status = self._exit_status(shard, last)
        log = self.folder / f"{last.job}_{shard}.log"
        if (status == 0 and not self._has_untouched_runs(shard)) or self._is_finished(shard):
            self.open.discard(shard)
        elif status == USER_ERROR:
            self._give_up(shard, f"stopped with an error; {log} says why")
        elif was_cancelled(last.job, shard):
            self._give_up(shard, f"was cancelled as job {last.job}")
        elif last.attempts > self.engine.max_requeues and self._progress(shard) <= last.progress:
            self._give_up(shard, f"ended {last.attempts} times without progress; {log} says why")
        return shard in self.open

    def _give_up(self, shard: int, reason: str) -> None:
        self.lost[shard] = reason
        self.open.discard(shard)

    def _is_missing(self, shard: int, last: Submission) -> bool:
        return time.time() - max(last.submitted, self.seen.get(shard, 0.0)) >= self.engine.grace

    def _exit_status(self, shard: int, last: Submission) -> int | None:
        """The exit status that a job wrote at its end; None if it did not get there."""
        with suppress(OSError, ValueError):
            return int((self.folder / f"{last.job}_{shard}.status").read_text())
        return None

    def _submit(self, shards: Sequence[int]) -> None:
        """Submit some shards as one array, and record its id."""
        if not shards:
            return
        for shard in set(shards) - set(self.seen):  # failures of an earlier driver are tried again
            for run in self._runs(shard):
                (self.study.run_path(run) / ERROR_FILE).unlink(missing_ok=True)
        script = self._write_script()
        job_id = submit(script, shards)
        for shard in shards:
            self.record.jobs[shard] = self._submission(shard, job_id)
            self.seen[shard] = time.time()
        self.record.write(self.folder / JOBS_FILE)
        self.job.say(
            f"submitted Slurm job {job_id} with shards {array_text(shards)} of {self.record.shards}: {script}"
        )

    def _submission(self, shard: int, job_id: str) -> Submission:
        last, progress = self.record.jobs.get(shard), self._progress(shard)
        again = last is not None and shard in self.seen and progress <= last.progress
        return Submission(job_id, time.time(), last.attempts + 1 if last and again else 1, progress)

    def _write_script(self) -> Path:
        """Write the script of the array, and show it when it is new."""
        engine, path = self.engine, self.folder / "job.sh"
        command = shard_command(
            engine.program, self.study.path.absolute(), self.record.shards, self.job.work, engine.workers
        )
        resources = Resources(engine.partition, engine.time, engine.gres, engine.cpus, engine.sbatch)
        text = job_script(f"unweave-{self.study.path.absolute().name}", self.folder, command, resources)
        if not path.exists() or path.read_text() != text:
            write_text(path, text)
            self.job.say(text.rstrip())
        return path

    def _runs(self, shard: int) -> list[str]:
        units: Sequence[Unit] = self.job.units[shard :: self.record.shards]
        return [run for unit in units for run in unit.runs]

    def _is_finished(self, shard: int) -> bool:
        """Whether each run of a shard is done or has failed for good."""
        runs = self._runs(shard)
        return all(is_done(self.study, run) or has_failed(self.study, run) for run in runs)

    def _has_untouched_runs(self, shard: int) -> bool:
        """Whether runs of a shard have not been trained: they were added after its job had started."""
        paths = [self.study.run_path(run) for run in self._runs(shard)]
        return not all((path / RESULT_FILE).exists() or (path / ERROR_FILE).exists() for path in paths)

    def _progress(self, shard: int) -> int:
        """A number that grows with each checkpoint and each score of a shard."""
        total = 0
        for run in self._runs(shard):
            folder = self.study.run_folder(run)
            total += self.study.runs[run].steps if folder.ended else folder.newest_checkpoint
            total += (folder.path / SCORES_FILE).exists()
        return total
