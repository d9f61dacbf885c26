"""What `unweave explore` opens: the subject that its arguments name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.errors import UnweaveError
from unweave.explore.compared import comparison_at
from unweave.explore.in_memory import subject_of_code_file, subject_of_parts, subject_of_results
from unweave.explore.subject import Subject, subject_at
from unweave.plugins.loading import is_reference
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.evaluation.frozen import EncoderOptions

ARRAYS, ONNX, DIRECTIONS = ".npz", ".onnx", ".safetensors"


@dataclass(frozen=True)
class Named:
    """The arguments of `unweave explore` that say what to open; the command's help describes them."""

    subjects: tuple[Path, ...] = ()
    encoder: str | None = None
    decoder: str | None = None
    published: Path | None = None
    mapping: Path | None = None
    device: str = "cpu"
    data: str | None = None
    data_root: Path | None = None
    wait: bool = False


def subject_named(named: Named) -> Subject:
    """The run, study, runs to compare, model, codes or table that the arguments name."""
    if named.encoder is not None or named.decoder is not None:
        return _model(named)
    if named.published is not None or named.mapping is not None:
        return _tables(named)
    if not named.subjects:
        raise UnweaveError(
            "name what to explore: the folder of a run or a study, a table of results, codes.npz, a model "
            "(--encoder FILE --data NAME), or published results (--published FOLDER)."
        )
    if len(named.subjects) > 1:
        return _several(named)
    [path] = map(run_path, named.subjects)
    if path.suffix.lower() == ARRAYS:
        return subject_of_code_file(path)
    if path.suffix.lower() == DIRECTIONS:
        return _directions(path, named)
    if _is_model(path):
        return _model(named)
    return subject_at(path, named.device, named.data_root, named.data, wait=named.wait)


def _directions(path: Path, named: Named) -> Subject:
    """A run or network whose codes are read along directions, which `unweave directions` wrote."""
    from unweave.directions import open_encoder
    from unweave.explore.own_model import OwnParts

    model = open_encoder(path, data=named.data, data_root=named.data_root, device=named.device)
    return subject_of_parts(OwnParts(model, name=model.name), model.data)


def _is_model(path: Path) -> bool:
    return path.suffix.lower() == ONNX or is_reference(str(path))


def _several(named: Named) -> Subject:
    """Runs, or models on a data set, to be compared."""
    if not any(map(_is_model, named.subjects)):
        return comparison_at(named.subjects, named.device, named.data_root, named.data)
    if named.data is None:
        raise UnweaveError("models that are compared need data to encode: add --data dsprites.")
    # Here, because torch takes seconds to import.
    from unweave.explore.compared_models import comparison_of

    short = {path.name: str(path) for path in named.subjects}
    models = short if len(short) == len(named.subjects) else {str(path): str(path) for path in named.subjects}
    return comparison_of(models, named.data, _options(named), named.data_root)


def _options(named: Named) -> EncoderOptions:
    from unweave.evaluation.frozen import EncoderOptions
    from unweave.training.trainer import pick_device

    device = None if named.device == "cpu" else str(pick_device(named.device))
    return EncoderOptions(device=device, cache=False)


def _model(named: Named) -> Subject:
    """A model of the user: an encoder, and perhaps a decoder, on a data set."""
    encoders = [*([named.encoder] if named.encoder else []), *map(str, named.subjects)]
    if len(encoders) != 1:
        raise UnweaveError(
            "a model has one encoder, an ONNX file or path/to/file.py:Name: --encoder FILE; got "
            f"{', '.join(encoders) or 'none'}."
        )
    if named.data is None:
        raise UnweaveError(f"{encoders[0]} is an encoder and needs data to encode: add --data dsprites.")
    # Here, because torch takes seconds to import.
    from unweave.explore.own_model import OwnParts

    parts = OwnParts(encoders[0], named.decoder, options=_options(named))
    return subject_of_parts(parts, named.data, named.data_root)


def _tables(named: Named) -> Subject:
    """Published results, and tables of results or of other tools, on one study page."""
    from unweave.report.inputs import read_results

    results = read_results(named.subjects, named.published, named.mapping)
    sources = [*named.subjects, *([named.published] if named.published else [])]
    return subject_of_results(results, " and ".join(path.resolve().name for path in sources))
