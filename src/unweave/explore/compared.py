"""What can be compared: 2 to 8 different runs that were trained on the same data set, or models on one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.explore.subject import Subject
from unweave.layout import SPEC_FILE
from unweave.zoo import run_path

FEWEST, MOST = 2, 8


def comparison_at(
    paths: Sequence[Path], device: str = "cpu", data_root: Path | None = None, data: str | None = None
) -> Subject:
    """The runs in these folders, to be compared."""
    folders = tuple(run_path(path).resolve() for path in paths)
    for path, folder in zip(paths, folders, strict=True):
        if not (folder / SPEC_FILE).is_file():
            raise UnweaveError(
                f"{path} is not the folder of a run: it has no {SPEC_FILE}. Several subjects "
                "are compared, and must be runs or models; open a study or codes alone."
            )
    check_comparable(folders)
    return Subject(Path(f"{len(folders)} runs"), "compare", device, data_root, data, compared=folders)


def check_count(number: int) -> None:
    """Refuse too few or too many to be compared."""
    if not FEWEST <= number <= MOST:
        raise UnweaveError(f"{FEWEST} to {MOST} runs can be compared; got {number}.")


def check_comparable(folders: Sequence[Path]) -> None:
    """Refuse too few or too many runs, the same run twice, and runs on different data sets."""
    from unweave.runs.store import RunFolder  # here, because it needs torch

    check_count(len(folders))
    specs = [RunFolder(folder).spec for folder in folders]
    for i, (folder, spec) in enumerate(zip(folders, specs, strict=True)):
        same = next((k for k in range(i) if specs[k].id == spec.id), None)
        if same is not None:
            raise UnweaveError(
                f"{folders[same].name} and {folder.name} are the same run, because their specs are equal. "
                "Name it once."
            )
        if spec.data != specs[0].data:
            raise UnweaveError(
                f"only runs on the same data set can be compared; {folders[0].name} was trained on "
                f"{specs[0].data}, {folder.name} on {spec.data}."
            )
