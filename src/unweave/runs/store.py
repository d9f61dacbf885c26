"""Run folders: everything about a run in one place, every file whole or not there.

spec.json             what the run is, and the versions, data source and device it was made with
log.jsonl             one line of losses every so many steps
checkpoint-N.safetensors  weights and moments after N steps, while it trains
weights.safetensors   the trained weights
result.json           how it ended: finished or diverged, steps, seconds, last losses
train.lock            which process trains it, while it trains
pictures/             reconstructions, traversals
card.md               the same for people
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.files import explained, remove_parts, write_bytes, write_json, write_text
from unweave.layout import (
    CARD_FILE,
    ENDING_FILE,
    ERROR_FILE,
    LOG_FILE,
    RESULT_FILE,
    SPEC_FILE,
    TRAIN_LOCK_FILE,
    WEIGHTS_FILE,
)
from unweave.locks import claim
from unweave.nn.optimiser import AVERAGE
from unweave.runs.card import model_card
from unweave.runs.spec import RunSpec

CHECKPOINT = re.compile(r"checkpoint-(0|[1-9]\d*)\.safetensors")
# What a record must have to be one.
NEEDED = {
    SPEC_FILE: ("spec", "image_shape"),
    RESULT_FILE: ("outcome", "steps", "terms"),
    ENDING_FILE: ("result", "together"),
}
# What tells one data set from another of the same name.
DATA = ("image_shape", "data_source", "data_drawn")


def weights_in(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The trained weights in the state of a run: moving averages of weights where it keeps some."""
    return {
        name.removeprefix(f"{kind}."): tensor
        for kind in ("weights", AVERAGE)
        for name, tensor in state.items()
        if name.startswith(f"{kind}.")
    }


class CheckpointOrigin(NamedTuple):
    """The runs that a checkpoint was written with, by id, and the step of the checkpoint before it."""

    population: tuple[str, ...] = ()
    previous: int = 0


UNKNOWN_ORIGIN = CheckpointOrigin()


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def spec(self) -> RunSpec:
        """What the run is."""
        try:
            return RunSpec.from_dict(self._record(SPEC_FILE)["spec"])
        except UnweaveError as error:
            raise UnweaveError(f"cannot use the run in {self.path}: {error}") from error

    @property
    def origin(self) -> dict[str, Any]:
        """Versions, data source and device."""
        return {name: value for name, value in self._record(SPEC_FILE).items() if name != "spec"}

    @property
    def result(self) -> dict[str, Any] | None:
        """How the run ended; None while it has not, or where its weights are lost."""
        whole = all((self.path / name).exists() for name in (RESULT_FILE, WEIGHTS_FILE))
        return self._record(RESULT_FILE) if whole else None

    @property
    def ended(self) -> bool:
        """Whether the run has ended, also where its weights are lost."""
        return (self.path / RESULT_FILE).exists()

    def create(self, spec: RunSpec, origin: Mapping[str, Any]) -> bool:
        """Make the folder, or check that it belongs to the same run; return whether it is new."""
        with explained(self.path):
            if (self.path / SPEC_FILE).exists():
                self._compare(spec, origin)
                return False
            if self.path.exists() and (not self.path.is_dir() or self._has_foreign_files()):
                raise UnweaveError(
                    f"{self.path} has files that are not of a run. Choose another folder, or empty this one."
                )
            write_json(self.path / SPEC_FILE, {"spec": spec.to_dict(), **origin})
            return True

    def _has_foreign_files(self) -> bool:
        """Whether there is anything but what a kill, or a failed training, leaves without a spec."""
        unfinished = re.compile(r"\..*\.part")
        names = [path.name for path in self.path.iterdir()]
        return any(name != ERROR_FILE and not unfinished.fullmatch(name) for name in names)

    def discard_unused(self) -> None:
        """Remove the folder of a run that never made a step: nothing in it is worth resuming."""
        if self.checkpoints() or self.log() or self.ended:
            return
        self.drop_checkpoints()
        for name in (SPEC_FILE, LOG_FILE, TRAIN_LOCK_FILE):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it: it stays
            self.path.rmdir()

    def claimed(self) -> AbstractContextManager[None]:
        """Keep other processes from training the run; an error names the process that trains it already."""
        return claim(self.path / TRAIN_LOCK_FILE, str(self.path))

    def _checkpoint_path(self, step: int) -> Path:
        return self.path / f"checkpoint-{step}.safetensors"

    def checkpoints(self) -> list[int]:
        """The steps of which there is a checkpoint."""
        names = [CHECKPOINT.fullmatch(path.name) for path in self.path.glob("checkpoint-*")]
        return sorted(int(name[1]) for name in names if name)

    @property
    def newest_checkpoint(self) -> int:
        """The step of the newest checkpoint; 0 if there is none."""
        return max(self.checkpoints(), default=0)

    def save_checkpoint(
        self, step: int, state: Mapping[str, Tensor], origin: CheckpointOrigin = UNKNOWN_ORIGIN
    ) -> None:
        """Add a checkpoint; older ones stay until `drop_checkpoints`."""
        record = {"population": " ".join(origin.population), "previous": str(origin.previous)}
        write_tensors(self._checkpoint_path(step), state, record)

    def checkpoint_origin(self, step: int) -> CheckpointOrigin:
        """How a checkpoint came about, from the head of its file."""
        path = self._checkpoint_path(step)
        with _readable(path), safe_open(path, "pt") as file:
            record = file.metadata() or {}
        return CheckpointOrigin(
            tuple(record.get("population", "").split()), int(record.get("previous", step))
        )

    def load_checkpoint(self, step: int) -> dict[str, Tensor]:
        """What `save_checkpoint` wrote."""
        return read_tensors(self._checkpoint_path(step))

    def checkpoint_weights(self, step: int) -> dict[str, Tensor]:
        """The weights in a checkpoint, by the names that `weights` has."""
        return weights_in(self.load_checkpoint(step))

    def drop_checkpoints(self, keep: int | None = None) -> None:
        """Remove all checkpoints but one, and what a killed process has left of its writing."""
        remove_parts(self.path)
        for step in self.checkpoints():
            if step != keep:
                self._checkpoint_path(step).unlink(missing_ok=True)

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log up to one that was cut by a kill."""
        lines = []
        if (self.path / LOG_FILE).exists():
            for text in (self.path / LOG_FILE).read_text(errors="replace").splitlines():
                try:
                    line = json.loads(text)
                except json.JSONDecodeError:
                    break
                if not isinstance(line, dict) or "step" not in line:
                    break
                lines.append(line)
        return lines

    def append_log(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add lines to the log."""
        with explained(self.path / LOG_FILE), (self.path / LOG_FILE).open("a", newline="\n") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def cut_log(self, step: int) -> None:
        """Forget what was logged after that step: it will be done again."""
        lines = [line for line in self.log() if line["step"] <= step]
        write_text(self.path / LOG_FILE, "".join(json.dumps(line) + "\n" for line in lines))

    def finish(self, weights: Mapping[str, Tensor], result: Mapping[str, Any]) -> None:
        """Write how the run ended."""
        self.prepare(weights, result, [])
        self.complete()

    def prepare(
        self, weights: Mapping[str, Tensor], result: Mapping[str, Any], together: Sequence[str]
    ) -> None:
        """Write everything about the end except the result, which follows when all runs are prepared.

        Runs of a population end together or not at all. Otherwise, after a kill, the remaining runs would
        repeat their last steps in a smaller population, and their numbers would differ in the last digits.
        """
        write_tensors(self.path / WEIGHTS_FILE, weights)
        write_text(self.path / CARD_FILE, model_card(self.spec, self.origin, result))
        write_json(self.path / ENDING_FILE, {"result": result, "together": list(together)})

    @property
    def ending(self) -> list[str] | None:
        """The ids of the runs that end together with this one, if it is prepared to end."""
        path = self.path / ENDING_FILE
        return list(self._record(ENDING_FILE)["together"]) if path.exists() else None

    def complete(self) -> None:
        """End the run that was prepared. The result comes last: where it is, everything else is."""
        write_json(self.path / RESULT_FILE, self._record(ENDING_FILE)["result"])
        self.drop_checkpoints()
        (self.path / ENDING_FILE).unlink(missing_ok=True)

    def unprepare(self) -> None:
        """Take back what `prepare` wrote: the run goes on from its last checkpoint."""
        for name in (ENDING_FILE, WEIGHTS_FILE, CARD_FILE):
            (self.path / name).unlink(missing_ok=True)

    def weights(self) -> dict[str, Tensor]:
        """The trained weights."""
        if not (self.path / WEIGHTS_FILE).exists():
            raise UnweaveError(
                f"{self.path} has no trained weights: its training has not finished. Start the same training "
                "again to resume it."
            )
        return read_tensors(self.path / WEIGHTS_FILE)

    def _compare(self, spec: RunSpec, origin: Mapping[str, Any]) -> None:
        """Check that the folder is of that run, and of the same data: equal names do not suffice."""
        if self.spec != spec:
            raise UnweaveError(
                f"{self.path} is the folder of another run ({self.spec.method.name}, {self.spec.id}). "
                "Choose another folder."
            )
        before = self.origin
        for name in DATA:
            if before.get(name) != origin.get(name):
                raise UnweaveError(
                    f'{self.path} was trained on other data of the name "{spec.data}": {name} was '
                    f"{before.get(name)}, and is {origin.get(name)}. Choose another folder, or another name."
                )

    def _record(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            record = json.loads(path.read_text())
        except FileNotFoundError:
            raise UnweaveError(f"{self.path} is not the folder of a run: it has no {name}.") from None
        except (OSError, ValueError) as error:
            raise UnweaveError(
                f"cannot read {path}: {error}. If this is the folder of a run, delete it and train again."
            ) from error
        if not isinstance(record, dict) or not all(need in record for need in NEEDED[name]):
            raise UnweaveError(
                f"{path} is not of a run: it must have {', '.join(NEEDED[name])}. Choose another folder."
            )
        return record


def write_tensors(path: Path, tensors: Mapping[str, Tensor], record: dict[str, str] | None = None) -> None:
    """Write tensors in safetensors format, atomically; `record` goes into the file's header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(plain, record))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file in safetensors format."""
    with _readable(path):
        return safetensors.torch.load(path.read_bytes())


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what can be wrong with a file of tensors into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UnweaveError(f"there is no file {path}.") from None
    except (OSError, SafetensorError) as error:
        raise UnweaveError(
            f"cannot read the weights in {path}: {error}. Delete this file and run the same command again."
        ) from error
