"""Models of a user and runs, compared on one data set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from unweave.data import Collection, GroundTruth
from unweave.errors import UnweaveError
from unweave.evaluation.frozen import EncoderOptions
from unweave.explore.compared import check_count
from unweave.explore.in_memory import model_in_memory
from unweave.explore.own_model import OwnParts, opened_data
from unweave.explore.run_view import open_run
from unweave.explore.subject import ModelInMemory, Subject
from unweave.layout import SPEC_FILE
from unweave.runs.store import RunFolder
from unweave.zoo import run_path


def comparison_of(
    models: Mapping[str, Any], data: Any, options: EncoderOptions, root: Path | None = None
) -> Subject:
    """The page of models by name: folders of runs, encoders, pairs (encoder, decoder), or what has both."""
    check_count(len(models))
    opened = opened_data(data, root)
    compared = [_model(name, model, opened, options, root) for name, model in models.items()]
    repeated = len(compared) - len({model.id for model in compared})
    if repeated:
        raise UnweaveError(f"{repeated} of the {len(compared)} models are named twice. Name each once.")
    return Subject(Path(f"{len(compared)} models"), "compare", models=tuple(compared))


def _model(
    name: str, model: Any, data: GroundTruth | Collection, options: EncoderOptions, root: Path | None
) -> ModelInMemory:
    if isinstance(model, str | Path) and (run_path(Path(model)) / SPEC_FILE).is_file():
        return _run(run_path(Path(model)), data, options, root)
    encode, decode = model if isinstance(model, tuple) else (model, None)
    return model_in_memory(OwnParts(encode, decode, name, options=options).on(data), data)


def _run(
    path: Path, data: GroundTruth | Collection, options: EncoderOptions, root: Path | None
) -> ModelInMemory:
    spec = RunFolder(path).spec
    if spec.data != data.name:
        raise UnweaveError(
            f"only models on the same data set can be compared; {path.name} was trained on {spec.data}, and "
            f"the others get images of {data.name}."
        )
    return ModelInMemory(spec.id, partial(open_run, path, options.device or "cpu", root, None))
