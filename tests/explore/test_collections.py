"""Runs on data that are not a grid of factors: what their pages start from, and what they know of factors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import unweave
from explore.dots import FACTORS, dot_images
from unweave.explore.export import export_page
from unweave.explore.run_view import view_of
from unweave.methods import AE


def test_a_run_on_a_collection_starts_from_images_and_knows_factors(tmp_path: Path) -> None:
    some = np.arange(len(FACTORS)) % 7 != 3  # combinations are missing
    known = {"x": FACTORS[some, 0], "weight": np.linspace(0.0, 1.0, some.sum())}
    data = unweave.data.from_arrays(dot_images()[some], known, name="some", size="auto")
    run = unweave.train(AE(), data, out=tmp_path, device="cpu", steps=1, batch=4, latents=3)
    view = view_of(run)
    described = view.description
    assert described["note"] == "some is not a full grid of factors."
    assert [factor["name"] for factor in described["factors"]] == ["x"]  # continuous ones are left out
    assert np.array(described["information"]).shape == (3, 1)
    assert (described["first_factors"], described["points"]) == (None, some.sum())
    assert view.examples is not None
    assert np.array(described["example_codes"]) == pytest.approx(run.encode(view.examples), abs=1e-3)
    export_page(view, tmp_path / "page.html")
    found = re.search(r'id="record">(.*?)</script>', (tmp_path / "page.html").read_text())
    assert found
    record = json.loads(found[1])
    assert [example["code"] for example in record["examples"]] == described["example_codes"][:12]
    assert record["interventions"] == []
