"""Subjects of the explorer that lie in no run folder: a user's model, codes in arrays, a run, a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.explore.api.study import records_of
from unweave.explore.subject import ModelInMemory, Subject, TableInMemory
from unweave.results import Results

if TYPE_CHECKING:
    from unweave.data import Collection, GroundTruth
    from unweave.explore.model import ExploredModel
    from unweave.explore.own_model import OwnParts
    from unweave.explore.run_view import RunView
    from unweave.progress import Progress
    from unweave.runs.run import Run


def subject_of_model(model: ExploredModel, data: GroundTruth | Collection) -> Subject:
    """A model with images of a data set."""
    return Subject(Path(model.card.name), "run", in_memory=model_in_memory(model, data))


def model_in_memory(model: ExploredModel, data: GroundTruth | Collection) -> ModelInMemory:
    """A model that is opened with images of a data set."""

    def open_view(tell: Progress) -> RunView:
        from unweave.explore.run_view import view_on

        return view_on(model, data, tell)

    return ModelInMemory(model.card.id, open_view)


def subject_of_parts(parts: OwnParts, data: Any, root: Path | None = None) -> Subject:
    """A user's model on a data set, by its name, its path or as an object, after a trial on a few images."""
    from unweave.explore.own_model import opened_data

    opened = opened_data(data, root)
    return subject_of_model(parts.on(opened), opened)


def subject_of_code_file(path: Path) -> Subject:
    """The codes and images in an .npz file."""
    from unweave.explore.code_table import read_code_table

    return subject_of_model(*read_code_table(path.expanduser()))


def subject_of_run(run: Run) -> Subject:
    """A run that is open already."""

    def open_view(tell: Progress) -> RunView:
        from unweave.explore.run_view import view_of

        return view_of(run, tell)

    return Subject(Path(run.path.name), "run", in_memory=ModelInMemory(run.spec.id, open_view))


def subject_of_results(results: Results, name: str) -> Subject:
    """The study page over a table of results."""
    return Subject(Path(name), "study", in_memory=TableInMemory(records_of(results)))
