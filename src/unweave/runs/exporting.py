"""The networks of a run as files for other programs: ONNX, and programs of torch.export."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.errors import UnweaveError
from unweave.files import explained, replacing
from unweave.runs.modules import Modules

EXAMPLES = 2  # images in the batch that is recorded; a program of one image would not take two


class _Direction(NamedTuple):
    """What is recorded of a module: its name, example input, and the names of input and outputs."""

    name: str
    module: nn.Module
    example: Tensor
    reads: str
    makes: tuple[str, ...]


def export_onnx(modules: Modules, shape: tuple[int, int, int], latents: int, folder: Path) -> list[Path]:
    """Write encoder.onnx and decoder.onnx, which take batches of any size; return their paths."""
    if find_spec("onnxscript") is None:
        raise UnweaveError('to write ONNX files needs a package. Run: pip install "unweave[onnx]"')
    if torch.__version__ < "2.7":
        raise UnweaveError(
            f"writing ONNX files needs torch 2.7 or later; this is {torch.__version__}. "
            'Run: pip install "torch>=2.7"'
        )
    paths = []
    for direction in _directions(modules, shape, latents):
        program = _recorded(direction)
        paths.append(path := folder / f"{direction.name}.onnx")
        with explained(path), replacing(path, keep_suffix=True) as part, _quiet():
            torch.onnx.export(
                program,
                (),
                part,
                dynamo=True,
                external_data=False,
                input_names=[direction.reads],
                output_names=list(direction.makes),
            )
    return paths


def export_programs(modules: Modules, shape: tuple[int, int, int], latents: int, folder: Path) -> list[Path]:
    """Write encoder.pt2 and decoder.pt2, which `torch.export.load` reads; return their paths."""
    paths = []
    for direction in _directions(modules, shape, latents):
        program = _recorded(direction)
        paths.append(path := folder / f"{direction.name}.pt2")
        with explained(path), replacing(path, keep_suffix=True) as part, _quiet():
            torch.export.save(program, part)
    return paths


def _directions(modules: Modules, shape: tuple[int, int, int], latents: int) -> list[_Direction]:
    images, codes = torch.zeros(EXAMPLES, *shape), torch.zeros(EXAMPLES, latents)
    return [
        _Direction("encoder", modules.encoder, images, "images", ("mean", "log_var")),
        _Direction("decoder", modules.decoder, codes, "codes", ("images",)),
    ]


@torch.no_grad()
def _recorded(direction: _Direction) -> torch.export.ExportedProgram:
    shapes = ({0: torch.export.Dim("batch")},)
    module = direction.module.eval()
    with _quiet():
        try:
            return torch.export.export(module, (direction.example,), dynamic_shapes=shapes, strict=False)
        except Exception as error:  # torch's errors about what it cannot record have no common class
            reason = (str(error).strip().splitlines() or [""])[0]
            raise UnweaveError(
                f"torch.export cannot record the {direction.name} of this run: {reason}"
            ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress reports, log lines and warnings of torch's exporters."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
