"""What a page may ask about a run: what it is, images of codes, codes of images, interventions, swaps.

Everything that comes in is checked, because a page can be altered: shapes, ranges and how much at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UnweaveError
from unweave.explore.api.answer import Answer, images_answer, json_answer
from unweave.explore.run_view import RunView

MOST_IMAGES = 512  # decoded or rendered for one request
MOST_VALUES = 64  # of a factor in an intervention; of more, evenly spaced ones
FARTHEST = 1e6  # a number beyond is a mistake

Body = Mapping[str, Any]


def describe(view: RunView, _body: Body) -> Answer:
    """What the run is, and how much its latents are used."""
    return json_answer(view.description)


def decode(view: RunView, body: Body) -> Answer:
    """{codes: (n, d)} -> images."""
    codes = _numbers(body.get("codes"), "codes", view.model.latents)
    return images_answer(view.decode(codes.astype(np.float32)))


def encode(view: RunView, body: Body) -> Answer:
    """{factors: (k,)} -> the mean and log_var of the true image's code; without variances, null."""
    mean, log_var = view.encode(_factors(view, [body.get("factors")]))
    variance = None if log_var is None else _plain(log_var[0])
    return json_answer({"mean": _plain(mean[0]), "log_var": variance})


def observe(view: RunView, body: Body) -> Answer:
    """{factors: (n, k)} -> true images."""
    return images_answer(view.observe(_factors(view, body.get("factors"))))


def examples(view: RunView, _body: Body) -> Answer:
    """True images to start from, whose codes are in the description."""
    if view.examples is None:
        raise UnweaveError("true images are chosen by their factors, or there are none.")
    return images_answer(view.examples)


def intervene(view: RunView, body: Body) -> Answer:
    """{factors: (k,), factor: j} -> mean codes while factor j takes its values and all others stay."""
    start = _factors(view, [body.get("factors")])
    factor = _whole(body.get("factor"), "factor", start.shape[1])
    return json_answer(intervention(view, start[0], factor))


def swap(view: RunView, body: Body) -> Answer:
    """{sheet: i} -> images that give content, images that give style, and all pairs of them, row by row.

    {sheet: i, levels: j}, if codes have levels: content are levels 0 to j.
    """
    if not view.sheets:
        raise UnweaveError("swaps need true images, and a method whose codes are content and style.")
    sheet = _whole(body.get("sheet"), "sheet", view.sheets)
    if view.model.content:
        return images_answer(view.swaps(sheet))
    return images_answer(view.swaps(sheet, 1 + _whole(body.get("levels"), "levels", len(view.levels) - 1)))


def intervention(view: RunView, start: NDArray[np.int64], factor: int) -> dict[str, Any]:
    """The values that a factor takes, and the mean codes of their images."""
    if view.truth is None:
        raise UnweaveError(view.note)
    size = view.truth.sizes[factor]
    values = np.unique(np.linspace(0, size - 1, min(size, MOST_VALUES)).round().astype(np.int64))
    moved = np.repeat(start[None], len(values), axis=0)
    moved[:, factor] = values
    return {"values": values.tolist(), "mean": _plain(view.encode(moved)[0])}


ROUTES: dict[tuple[str, str | None], Callable[[RunView, Body], Answer]] = {
    ("GET", None): describe,
    ("GET", "examples"): examples,
    ("POST", "decode"): decode,
    ("POST", "encode"): encode,
    ("POST", "observe"): observe,
    ("POST", "intervene"): intervene,
    ("POST", "swap"): swap,
}


def _plain(codes: NDArray[Any]) -> list[Any]:
    rounded: list[Any] = codes.astype(np.float64).round(4).tolist()
    return rounded


def _factors(view: RunView, value: Any) -> NDArray[np.int64]:
    if view.truth is None:
        raise UnweaveError(view.note)
    return view.truth.check(_numbers(value, "factors", len(view.truth.factors)))


def _whole(value: Any, what: str, size: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        raise UnweaveError(f"{what} must be a number from 0 to {size - 1}; got {value!r:.40}.")
    return value


def _numbers(value: Any, what: str, columns: int) -> NDArray[np.float64]:
    rows = value if isinstance(value, list) else []
    if not rows or not all(isinstance(row, list) and len(row) == columns for row in rows):
        raise UnweaveError(f"{what} must be rows of {columns} numbers.")
    if len(rows) > MOST_IMAGES:
        raise UnweaveError(f"at most {MOST_IMAGES} rows of {what} can be asked for at once; got {len(rows)}.")
    if not all(_is_number(value) for row in rows for value in row):
        raise UnweaveError(f"{what} must be numbers between {-FARTHEST:g} and {FARTHEST:g}.")
    return np.array(rows, np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FARTHEST
