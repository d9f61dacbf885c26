"""Runs on the Hugging Face Hub, without a network."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unweave
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation.effort import Effort
from unweave.evaluation.score_store import evaluate_run
from unweave.integrations import load_from_hub, push_to_hub, save_for_hub
from unweave.runs.run import Run

IMAGES = TINY.sample_images(4, 0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 2, "architecture": "mlp", "device": "cpu"}
    trained = unweave.train("vae", TINY, out=tmp_path_factory.mktemp("runs"), progress=False, **settings)
    evaluate_run(trained, "mig", effort=Effort((40, 20)))
    return trained


def metadata(folder: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    plain: dict[str, Any] = yaml.safe_load(front)
    return plain


def test_a_saved_folder_is_a_run_with_a_card(run: Run, tmp_path: Path) -> None:
    (run.path / "pictures").mkdir(exist_ok=True)
    (run.path / "pictures" / "traversals.png").write_bytes(b"png")
    folder = save_for_hub(run, tmp_path / "model", licence="apache-2.0")
    loaded = unweave.load(folder)
    assert loaded.spec == run.spec
    assert np.array_equal(loaded.encode(IMAGES), run.encode(IMAGES))
    plain = metadata(folder)
    assert plain["library_name"] == "unweave"
    assert plain["license"] == "apache-2.0"
    assert {"disentanglement", "vae", "tiny"} <= set(plain["tags"])
    [result] = plain["model-index"][0]["results"]
    assert result["metrics"][0]["type"] == "mig"
    card = (folder / "README.md").read_text()
    assert "![traversals](pictures/traversals.png)" in card
    assert "# vae on tiny" in card
    with pytest.raises(UnweaveError, match=r"is not empty. Choose another folder"):
        save_for_hub(run, folder)


def test_the_hub_reads_the_card(run: Run, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    folder = save_for_hub(run, tmp_path / "model")
    data = hub.ModelCard.load(folder / "README.md").data
    assert data.library_name == "unweave"
    assert data.model_name == "vae on tiny"
    [score] = data.eval_results
    assert score.metric_type == "mig"
    assert 0 <= score.metric_value <= 1


def test_push_and_load(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is replaced by one whose repositories are folders."""
    calls: list[Any] = []

    class HfApi:
        def __init__(self, token: str | None) -> None:
            calls.append(token)

        def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> str:
            calls.append((private, exist_ok))
            return f"https://hub/{repo_id}"

        def upload_folder(self, *, repo_id: str, folder_path: str, commit_message: str) -> None:
            assert (repo_id, bool(commit_message)) == ("me/model", True)
            Path(folder_path).rename(tmp_path / "hub")
            Path(folder_path).mkdir()  # its owner removes it

    def snapshot_download(repo_id: str, **options: Any) -> str:
        assert "weights.safetensors" in options["allow_patterns"]
        return str(tmp_path / "hub")

    library = SimpleNamespace(HfApi=HfApi, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    assert push_to_hub(run, "me/model", private=True, token="secret") == "https://hub/me/model"  # noqa: S106
    assert calls == ["secret", (True, True)]
    loaded = load_from_hub("me/model", data=TINY)
    assert np.array_equal(loaded.encode(IMAGES), run.encode(IMAGES))


def test_places_on_this_machine_are_not_published(tmp_path: Path) -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    np.savez(tmp_path / "squares.npz", images=TINY.observe(factors), factors=factors)
    settings: dict[str, Any] = {"steps": 1, "batch": 4, "latents": 2, "architecture": "mlp", "device": "cpu"}
    run = unweave.train("vae", tmp_path / "squares.npz", out=tmp_path / "runs", progress=False, **settings)
    folder = save_for_hub(run, tmp_path / "model")
    assert all(str(tmp_path).encode() not in path.read_bytes() for path in folder.iterdir())
    assert unweave.load(folder, data=tmp_path / "squares.npz").data.name == "squares"


def test_a_missing_library_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UnweaveError, match=r'pip install "unweave\[hub\]"'):
        push_to_hub(run, "me/model")
