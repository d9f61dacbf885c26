"""Runs on the Hugging Face Hub: a folder with a model card, push and load.

Only data leaves and enters: weights in safetensors format, JSON and pictures. Nothing is unpickled.
"""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unweave.errors import UnweaveError
from unweave.evaluation.score_store import kept_scores
from unweave.files import write_json, write_text
from unweave.layout import (
    CARD_FILE,
    LOG_FILE,
    PICTURES_FOLDER,
    RESULT_FILE,
    SCORES_FILE,
    SPEC_FILE,
    WEIGHTS_FILE,
)
from unweave.runs.run import Run, load

HUB_CARD_FILE = "README.md"  # the Hub shows this file
COPIED = (LOG_FILE, WEIGHTS_FILE, RESULT_FILE, SCORES_FILE, CARD_FILE)
LOCAL = "data_reference"  # where the user's own data lies on this machine: of no use elsewhere


def save_for_hub(run: Run, folder: str | Path, *, licence: str | None = None) -> Path:
    """Write what the Hub needs of a run into a folder; `unweave.load` opens it.

    README.md is the run's card with the metadata of the Hub: library, tags, scores. `licence` is an
    identifier that the Hub knows, such as "apache-2.0".
    """
    if run.result["outcome"] != "finished":
        raise UnweaveError(f"only finished runs can be published; {run.path} is {run.result['outcome']}.")
    target = Path(folder).expanduser()
    if target.exists() and any(target.iterdir()):
        raise UnweaveError(f"{target} is not empty. Choose another folder.")
    target.mkdir(parents=True, exist_ok=True)
    record = json.loads((run.path / SPEC_FILE).read_text())
    write_json(target / SPEC_FILE, {name: value for name, value in record.items() if name != LOCAL})
    for name in COPIED:
        if (run.path / name).is_file():
            shutil.copyfile(run.path / name, target / name)
    pictures = sorted((run.path / PICTURES_FOLDER).glob("*.png"))
    for picture in pictures:
        (target / PICTURES_FOLDER).mkdir(exist_ok=True)
        shutil.copyfile(picture, target / PICTURES_FOLDER / picture.name)
    write_text(target / HUB_CARD_FILE, _card(run, licence, [picture.name for picture in pictures]))
    return target


def push_to_hub(
    run: Run, repo_id: str, *, licence: str | None = None, private: bool = False, token: str | None = None
) -> str:
    """Publish a run as the model `repo_id`, such as "name/beta-vae-dsprites"; return its address."""
    api = _library().HfApi(token=token)
    with TemporaryDirectory() as folder:
        saved = save_for_hub(run, folder, licence=licence)
        address = str(api.create_repo(repo_id, private=private, exist_ok=True))
        api.upload_folder(repo_id=repo_id, folder_path=str(saved), commit_message="Add a run of unweave")
    return address


def load_from_hub(
    repo_id: str, *, revision: str | None = None, token: str | None = None, **options: Any
) -> Run:
    """Download a run, or take it from the Hub's cache, and open it; `options` are those of `unweave.load`."""
    wanted = [SPEC_FILE, *COPIED, f"{PICTURES_FOLDER}/*.png"]
    folder = _library().snapshot_download(repo_id, revision=revision, token=token, allow_patterns=wanted)
    return load(folder, **options)


def _library() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise UnweaveError('the Hugging Face Hub needs a package. Run: pip install "unweave[hub]"') from None


def _card(run: Run, licence: str | None, pictures: list[str]) -> str:
    """The card of the run below the metadata of the Hub; JSON is YAML, so values are written as JSON."""
    lines = [f"{name}: {json.dumps(value)}" for name, value in _metadata(run, licence).items()]
    shown = [f"![{Path(name).stem}]({PICTURES_FOLDER}/{name})" for name in pictures]
    card = (run.path / CARD_FILE).read_text()
    return "\n".join(["---", *lines, "---", "", card, *shown, ""])


def _metadata(run: Run, licence: str | None) -> dict[str, Any]:
    method, data = run.spec.method.name, run.spec.data
    tags = ["unweave", "disentanglement", "representation-learning", method, data]
    plain: dict[str, Any] = {
        "library_name": "unweave",
        "tags": tags,
        "pipeline_tag": "image-feature-extraction",
    }
    if licence is not None:
        plain["license"] = licence
    if results := _results(run):
        plain["model-index"] = [{"name": f"{method} on {data}", "results": results}]
    return plain


def _results(run: Run) -> list[Mapping[str, Any]]:
    """The stored scores as the Hub's evaluation results, one for each representation."""
    task = {"type": "disentanglement", "name": "Disentanglement"}
    return [
        {
            "task": task,
            "dataset": {"type": run.spec.data, "name": run.spec.data},
            "metrics": [
                {"type": score.name, "name": f"{score.name} ({score.protocol})", "value": score.value}
                for score in record.scores
            ],
        }
        for record in kept_scores(run.folder)
        if record.scores
    ]
