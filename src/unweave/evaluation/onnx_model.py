"""Networks in ONNX files, run by onnxruntime, which is an extra: pip install "unweave[onnx]"."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.evaluation.preprocessing import Preprocessing, known_channels

SUFFIX = ".onnx"
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


def open_session(path: Path, device: str | None = None) -> Any:
    """The inference session of an ONNX file, on a GPU if the device is one."""
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError:
        raise UnweaveError(
            f'{path} is read by onnxruntime, which is not installed. Run: pip install "unweave[onnx]"'
        ) from None
    if not path.is_file():
        raise UnweaveError(f"there is no file {path}.")
    first = ["CUDAExecutionProvider"] if (device or "").startswith("cuda") else []
    try:
        return onnxruntime.InferenceSession(path, providers=[*first, "CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common class of errors
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UnweaveError(f"{path} cannot be opened as an ONNX model: {reason}") from error


def run_in_batches(session: Any, name: str, rows: NDArray[Any], batch: int | None) -> list[NDArray[Any]]:
    """All outputs of a session for the rows of its one input; with `batch`, it takes whole batches only."""
    missing = 0 if batch is None else -len(rows) % batch
    padded = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]) if missing else rows
    size = batch or len(padded)
    parts = [
        session.run(None, {name: np.ascontiguousarray(padded[start : start + size])})
        for start in range(0, len(padded), size)
    ]
    return [np.concatenate(output)[: len(rows)] for output in zip(*parts, strict=True)]


class OnnxModel:
    """A network in an ONNX file with one input, images (n, c, h, w) or (n, h, w, c)."""

    def __init__(self, path: Path, device: str | None = None) -> None:
        self.session = open_session(path, device)
        self.path = path
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in TYPES:
            described = ", ".join(f"{part.name} {part.shape} {part.type}" for part in inputs)
            raise UnweaveError(
                f"{path} must have one input of float images (n, c, h, w); it has {described}."
            )
        self.name, self.kind = inputs[0].name, TYPES[inputs[0].type]
        shape = [side if isinstance(side, int) else None for side in inputs[0].shape]
        self.batch = shape[0]
        self.channels_last = shape[1] not in (1, 3) and shape[3] in (1, 3)
        self.sides = (shape[3], shape[1], shape[2]) if self.channels_last else (shape[1], shape[2], shape[3])
        self.outputs = [output.name for output in self.session.get_outputs()]

    @property
    def preprocessing(self) -> Preprocessing:
        """Size and channels of the input, where the file fixes them."""
        channels, height, width = self.sides
        return Preprocessing((height, width) if height and width else None, known_channels(channels))

    @property
    def digest(self) -> str:
        """A hash of the file, and of the file next to it that large weights are exported into."""
        weights = self.path.with_name(f"{self.path.name}.data")
        content = self.path.read_bytes() + (weights.read_bytes() if weights.is_file() else b"")
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    def __call__(self, images: NDArray[np.float32]) -> dict[str, Any]:
        """The outputs by name."""
        given = images.transpose(0, 2, 3, 1) if self.channels_last else images
        outputs = run_in_batches(self.session, self.name, given.astype(self.kind), self.batch)
        return dict(zip(self.outputs, outputs, strict=True))
