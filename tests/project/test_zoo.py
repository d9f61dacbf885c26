"""The trained models in zoo/: each folder opens, works, and has the scores that it states."""

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import unweave
from unweave.data import GroundTruth
from unweave.evaluation.score_store import kept_scores
from unweave.files import write_json
from unweave.metrics import mig
from unweave.runs.store import RunFolder
from unweave.selection import Candidate

ZOO = Path(__file__).parents[2] / "zoo"
MODELS = sorted(spec.parent for spec in ZOO.glob("*/spec.json"))
POINTS = 2_000
MOST_BYTES = 12_000_000

pytestmark = pytest.mark.skipif(not MODELS, reason="zoo/ is not part of this copy of the source")
each_model = pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)


@pytest.fixture(scope="module")
def make() -> Iterator[ModuleType]:
    """The script that makes the zoo."""
    spec = importlib.util.spec_from_file_location("zoo_make", ZOO / "make.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look it up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def stated(folder: Path) -> dict[str, float]:
    """The scores in the folder of a model."""
    return {score.name: score.value for record in kept_scores(RunFolder(folder)) for score in record.scores}


@each_model
def test_a_model_encodes_decodes_and_has_its_mig(folder: Path) -> None:
    run = unweave.load(folder)
    data = run.data
    assert isinstance(data, GroundTruth)
    stream = unweave.Stream.of(0).child("zoo")
    factors = data.sample_factors(POINTS, stream)
    codes = run.encode(data.observe(factors, stream))
    assert codes.shape == (POINTS, run.spec.latents)
    images = run.decode(codes[:3])
    assert images.shape == (3, *data.shape)
    assert 0 <= images.min() < images.max() <= 1
    assert mig(codes, factors) == pytest.approx(stated(folder)["mig"], abs=0.05)


@each_model
def test_a_model_is_what_the_script_trains(folder: Path, make: ModuleType) -> None:
    [model] = [model for model in make.MODELS if model.name == folder.name]
    found = RunFolder(folder).spec
    [spec] = make.specs_of(model, [found.seed], None, "cpu")
    assert replace(spec, precision=found.precision) == found
    assert (RunFolder(folder).result or {})["steps"] == found.steps
    assert {tensor.dtype for tensor in RunFolder(folder).weights().values()} == {torch.float16}


def test_files_are_those_of_the_checksums() -> None:
    lines = [line.split("  ") for line in (ZOO / "checksums.txt").read_text().splitlines()]
    assert {name.split("/")[0] for _, name in lines} == {folder.name for folder in MODELS}
    for checksum, name in lines:
        assert hashlib.sha256((ZOO / name).read_bytes()).hexdigest() == checksum, name
    assert sum((ZOO / name).stat().st_size for _, name in lines) < MOST_BYTES


def table_below(text: str, head: str) -> dict[str, list[str]]:
    """The cells of each row of a Markdown table, by the name in its first cell."""
    _, _, rest = text.partition(head)
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", rest.split("\n\n")[0], re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def test_readme_has_the_scores_of_each_model(make: ModuleType) -> None:
    text = (ZOO / "README.md").read_text()
    with_blocks = [folder for folder in MODELS if make.metrics_of(folder) == make.BLOCK_METRICS]
    for head, shown, models in (
        (make.TABLE_HEAD, make.SHOWN, MODELS),
        (make.BLOCKS_HEAD, make.BLOCKS_SHOWN, with_blocks),
    ):
        table = table_below(text, head)
        assert set(table) == {folder.name for folder in models}
        for folder in models:
            scores = [cell.split(" ")[0] for cell in table[folder.name][-len(shown) :]]
            assert scores == [f"{stated(folder)[name]:.3f}" for name in shown]


def test_writing_some_models_keeps_the_rows_of_others(make: ModuleType) -> None:
    first, second, third = (model.name for model in make.MODELS[:3])
    text = make.with_rows("Models:\n", make.BLOCKS_HEAD, {third: ["3"], first: ["1"]})
    text = make.with_rows(text + "\nMore.\n", make.BLOCKS_HEAD, {second: ["2"], third: ["4"]})
    head = f"Models:\n\n{make.BLOCKS_HEAD}\n|---|---|---|---|\n"
    assert text == f"{head}| `{first}` | 1 |\n| `{second}` | 2 |\n| `{third}` | 4 |\n\nMore.\n"
    assert make.with_rows(text, make.TABLE_HEAD, {}) == text


def test_a_block_method_has_its_own_metrics_and_rate(tmp_path: Path, make: ModuleType) -> None:
    models = {model.name: model for model in make.MODELS}
    for name, metrics, rate in (
        ("glyphs-ml_vae-1", make.BLOCK_METRICS, 1e-3),
        ("info_gan_cr-2", make.METRICS, 1e-4),
    ):
        [spec] = make.specs_of(models[name], [0], None, "cpu")
        write_json(tmp_path / name / "spec.json", {"spec": spec.to_dict(), "image_shape": [1, 64, 64]})
        assert make.metrics_of(tmp_path / name) == metrics
        assert spec.learning_rate == rate


def test_the_script_trains_and_writes_a_model(tmp_path: Path, make: ModuleType) -> None:
    [model] = [model for model in make.MODELS if model.name == "beta_vae-16"]
    folders = make.train(tmp_path / "runs", [model], range(2), 1, "cpu")
    assert make.finished(tmp_path / "runs") == sorted(folder.path for folder in folders)
    ranking = [(Candidate(folder, folder.spec), 0.5) for folder in folders]
    target = tmp_path / "zoo" / model.name
    make.write_model(target, ranking)
    assert "highest ModelCentrality (0.500)" in (target / "card.md").read_text()
    exact, rounded = unweave.load(folders[0].path), unweave.load(target)
    data = unweave.data.load(model.data)
    images = data.observe(data.factors_at([0, 1]))
    np.testing.assert_allclose(rounded.encode(images), exact.encode(images), atol=1e-3)
    make.write_checksums(tmp_path / "zoo")
    names = [line.split("  ")[1] for line in (tmp_path / "zoo/checksums.txt").read_text().splitlines()]
    assert f"{model.name}/pictures/traversals.png" in names
