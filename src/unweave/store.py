"""Run folders: everything about a run in one place, every file whole or not there.

spec.json             what the run is, and the versions, data source and device it was made with
log.jsonl             one line of losses every so many steps
checkpoint-N.safetensors  weights and moments after N steps, while it trains
weights.safetensors   the trained weights
result.json           how it ended: finished or diverged, steps, seconds, last losses
pictures/             reconstructions, traversals
card.md               the same for people
"""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.spec import RunSpec

CHECKPOINT = re.compile(r"checkpoint-(\d+)\.safetensors")


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def spec(self) -> RunSpec:
        """What the run is."""
        return RunSpec.from_dict(self._record("spec.json")["spec"])

    @property
    def origin(self) -> dict[str, Any]:
        """Versions, data source and device."""
        return {name: value for name, value in self._record("spec.json").items() if name != "spec"}

    @property
    def result(self) -> dict[str, Any] | None:
        """How the run ended; None while it has not."""
        return self._record("result.json") if (self.path / "result.json").exists() else None

    def create(self, spec: RunSpec, origin: Mapping[str, Any]) -> None:
        """Make the folder, or see that what is there is of the same run."""
        if (self.path / "spec.json").exists():
            if self.spec != spec:
                raise UnweaveError(
                    f"{self.path} is the folder of another run ({self.spec.method.name}, {self.spec.id}). "
                    "Choose another folder."
                )
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UnweaveError(
                f"{self.path} has files that are not of a run. Choose another folder, or empty this one."
            )
        write_json(self.path / "spec.json", {"spec": spec.to_dict(), **origin})

    def checkpoints(self) -> list[int]:
        """The steps of which there is a checkpoint."""
        names = [CHECKPOINT.fullmatch(path.name) for path in self.path.glob("checkpoint-*")]
        return sorted(int(name[1]) for name in names if name)

    def save_checkpoint(self, step: int, state: Mapping[str, Tensor]) -> None:
        """Add a checkpoint; older ones stay until `drop_checkpoints`."""
        write_tensors(self.path / f"checkpoint-{step}.safetensors", state)

    def load_checkpoint(self, step: int) -> dict[str, Tensor]:
        """What `save_checkpoint` wrote."""
        return read_tensors(self.path / f"checkpoint-{step}.safetensors")

    def drop_checkpoints(self, keep: int | None = None) -> None:
        """Remove all checkpoints but one."""
        for step in self.checkpoints():
            if step != keep:
                (self.path / f"checkpoint-{step}.safetensors").unlink(missing_ok=True)

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log; a line that was cut by a kill is left out."""
        lines = []
        if (self.path / "log.jsonl").exists():
            for line in (self.path / "log.jsonl").read_text().splitlines():
                try:
                    lines.append(json.loads(line))
                except json.JSONDecodeError:
                    break
        return lines

    def append_log(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add lines to the log."""
        with explained(self.path / "log.jsonl"), (self.path / "log.jsonl").open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def cut_log(self, step: int) -> None:
        """Forget what was logged after that step: it will be done again."""
        kept = [line for line in self.log() if line["step"] <= step]
        write_text(self.path / "log.jsonl", "".join(json.dumps(line) + "\n" for line in kept))

    def finish(self, weights: Mapping[str, Tensor], result: Mapping[str, Any]) -> None:
        """Write how the run ended. The result comes last: where it is, everything else is."""
        write_tensors(self.path / "weights.safetensors", weights)
        write_json(self.path / "result.json", result)
        self.drop_checkpoints()

    def weights(self) -> dict[str, Tensor]:
        """The trained weights."""
        if not (self.path / "weights.safetensors").exists():
            raise UnweaveError(
                f"{self.path} has no trained weights yet. Resume the run with the same command."
            )
        return read_tensors(self.path / "weights.safetensors")

    def _record(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            record = json.loads(path.read_text())
        except FileNotFoundError:
            raise UnweaveError(f"{self.path} is not the folder of a run: it has no {name}.") from None
        except (OSError, ValueError) as error:
            raise UnweaveError(f"cannot read {path}: {error}. Is it the folder of a run?") from error
        if not isinstance(record, dict) or (name == "spec.json" and "spec" not in record):
            raise UnweaveError(f"{path} is not of a run of unweave.")
        return record


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record, whole or not at all."""
    write_text(path, json.dumps(record, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors in safetensors format, whole or not at all."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(plain))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file in safetensors format."""
    try:
        return safetensors.torch.load(path.read_bytes())
    except FileNotFoundError:
        raise UnweaveError(f"there is no file {path}.") from None
    except (OSError, SafetensorError) as error:
        raise UnweaveError(f"cannot read the weights in {path}: {error}. The file is damaged.") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write under another name, make sure that it is on the disk, then rename."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


class explained:  # noqa: N801  reads as a word in a with statement
    """Turns an error of the file system into one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = "the disk is full" if full else str(error.strerror)
            raise UnweaveError(
                f"cannot write {self.path}: {what}. {'Make room' if full else 'Mend that'} and run the same "
                "command again: it goes on from the last checkpoint."
            ) from error
