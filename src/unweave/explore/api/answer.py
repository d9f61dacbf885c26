"""What the server answers to a request: bytes of a kind, with a status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Answer:
    """The body of an answer, its content type, further headers, and its status."""

    body: bytes
    kind: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK


def json_answer(record: Any) -> Answer:
    """Plain data, whose numbers must be finite: JSON has no NaN."""
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return Answer(text.encode(), "application/json")


def images_answer(images: NDArray[np.uint8]) -> Answer:
    """Images (n, c, h, w) as plain bytes; the header X-Shape says how many of which size."""
    shape = ",".join(map(str, images.shape))
    return Answer(images.tobytes(), "application/octet-stream", {"X-Shape": shape})


def error_answer(status: HTTPStatus, sentence: str) -> Answer:
    """Say in one sentence what is wrong."""
    return Answer(json.dumps({"error": sentence}).encode(), "application/json", status=status)
