"""Models of a user side by side: functions, files and runs on one data set."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explore.browser import Browser
from explore.conftest import Serve
from explore.dots import decode, dots, encode
from explore.test_server import ask
from unweave.commands.explored import Named, subject_named
from unweave.errors import UnweaveError
from unweave.evaluation.frozen import EncoderOptions
from unweave.explore.compared_models import comparison_of
from unweave.explore.server import ExploreServer
from unweave.explore.session import explore
from unweave.runs.store import RunFolder

OPTIONS = EncoderOptions(cache=False)
SIGNS = np.array([1, -1], np.float32)


def turned(images: Any) -> Any:
    """The same codes in the other order, one of them with the other sign."""
    return encode(images)[:, ::-1] * SIGNS


def decode_turned(codes: Any) -> Any:
    return decode((np.asarray(codes) * SIGNS)[:, ::-1])


def record_of(server: ExploreServer) -> dict[str, Any]:
    ids = json.loads(ask(server, "/api/subject")[1])["runs"]
    status, body, _ = ask(server, f"/api/compare?runs={','.join(ids)}")
    assert status == 200, body
    record: dict[str, Any] = json.loads(body)
    return record


def test_latents_of_models_are_aligned(serve: Serve, browser: Browser) -> None:
    models = {"plain": (encode, decode), "turned": (turned, decode_turned), "codes only": encode}
    with serve(comparison_of(models, dots(), OPTIONS)) as server:
        record = record_of(server)
        for row in record["rows"]:
            latents = [match["latent"] for match in row]
            assert latents[1:] == [1 - latents[0], latents[0]]
            # The second code of `turned` is the first one, with the other sign.
            assert row[1]["correlation"] == pytest.approx(-1 if latents[0] == 0 else 1, abs=1e-3)
        assert [run["name"] for run in record["runs"]] == list(models)
        assert record["settings"] == [{"name": "method", "values": list(models)}]
        browser.open(server.url)
        browser.wait_for("document.querySelectorAll('canvas[data-run][data-codes]').length === 3")
        assert browser.evaluate("document.querySelector('h1').textContent") == "3 models on dots"
        drawn = "(i) => document.querySelectorAll('canvas[data-run]')[i].toDataURL()"
        images = browser.evaluate(f"[0, 1, 2].map({drawn})")
        assert images[0] == images[1] == images[2], "without a decoder, the nearest true image is shown"
        assert browser.errors == []


def test_what_cannot_be_compared(run_folder: Path) -> None:
    with pytest.raises(UnweaveError, match="2 to 8 runs can be compared; got 1"):
        explore({"alone": encode}, data=dots(), open_page=False, wait=False)
    with pytest.raises(UnweaveError, match="one thing at a time; got models by name and encode"):
        explore({"a": encode, "b": turned}, encode=encode, data=dots(), open_page=False, wait=False)
    with pytest.raises(UnweaveError, match="a model needs images to encode"):
        comparison_of({"a": encode, "b": turned}, None, OPTIONS)
    data = RunFolder(run_folder).spec.data
    with pytest.raises(UnweaveError, match=f"was trained on {data}, and the others get images of dots"):
        comparison_of({"a": encode, "run": run_folder}, dots(), OPTIONS)
    with pytest.raises(UnweaveError, match="1 of the 2 models are named twice"):
        comparison_of({"a": run_folder, "b": run_folder}, data, OPTIONS)


def test_files_and_runs_on_the_command_line(run_folder: Path, tmp_path: Path) -> None:
    code = "import numpy\ndef flat(images):\n    return images.mean((1, 3))[:, :4]\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(code)
    models = tuple(tmp_path / name / "model.py:flat" for name in ("one", "two"))
    with pytest.raises(UnweaveError, match="models that are compared need data to encode: add --data"):
        subject_named(Named(models))
    data = RunFolder(run_folder).spec.data
    subject = subject_named(Named((*models, run_folder), data=data))
    described = subject.describe()
    assert (described["kind"], described["name"], described["logs"]) == ("compare", "3 models", False)
    assert len(described["runs"]) == 3
    assert described["runs"][2] == RunFolder(run_folder).spec.id
    assert [subject.view(run).model.latents for run in described["runs"][:2]] == [4, 4]
