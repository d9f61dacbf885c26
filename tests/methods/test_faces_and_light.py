"""The structured model of faces in the page of generalized_m2, on made-up faces in the format of Yale B."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unweave
from data.faces import shaded_faces
from data.test_yale_b import PUBLISHED_LIGHTS
from unweave.data import Collection, open_data
from unweave.data.supervision import Chosen
from unweave.data.supervision.row_labels import rows_of_run
from unweave.methods import GeneralizedM2
from unweave.streams import Stream

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "generalized_m2.md"
LIGHTS = tuple(
    f"A{side * azimuth:+04}E{elevations[0]:+03}"
    for azimuth, elevations in PUBLISHED_LIGHTS.items()
    for side in ((1, -1) if azimuth else (1,))
)


def documented(monkeypatch: pytest.MonkeyPatch) -> tuple[GeneralizedM2, dict[str, Any]]:
    """The method and the settings of the run in the page's section."""
    section = PAGE.read_text().partition("### Faces and light")[2]
    [block] = re.findall(
        r"^```python\n(.*?)^```", section.partition("`label_accuracy` measures")[0], re.M | re.S
    )
    asked: list[tuple[GeneralizedM2, dict[str, Any]]] = []
    with monkeypatch.context() as patched:
        patched.setattr(
            unweave, "train", lambda method, **options: asked.append((method, options)), raising=False
        )
        exec(block, {"unweave": unweave})  # noqa: S102
    [(method, options)] = asked
    return method, options


def test_light_is_predicted_for_images_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, options = documented(monkeypatch)
    shaded_faces(tmp_path / "yale_b", people=2, lights=LIGHTS)
    data = open_data(options.pop("data"), tmp_path, check=False)
    assert isinstance(data, Collection)
    assert len(data) == 58
    few = GeneralizedM2(**{**vars(method), "labels": 30, "samples": 1})
    run = unweave.train(few, data=data, steps=45, batch=12, learning_rate=1e-3, out=tmp_path, **options)
    known = rows_of_run(data, 30, Stream.of(0), Chosen(few.factors)).rows
    rows = np.setdiff1d(np.arange(len(data)), known)
    images = torch.from_numpy(data.images_at(rows))[None].float() / 255
    predicted = few.predict(run.networks, images)[0].numpy()
    assert np.corrcoef(predicted[:, 1], data.values[rows, 1])[0, 1] > 0.9
