"""The files for TensorBoard, read by TensorBoard."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loggers.trained import STEPS, own_log, specs, train

event_accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
)


def read(path: Path) -> Any:
    events = event_accumulator.EventAccumulator(str(path / "tensorboard"))
    events.Reload()
    return events


def test_tensorboard_reads_each_loss_once(tmp_path: Path) -> None:
    assert train(tmp_path, "tensorboard", seeds=(0, 1), kill_at=6) == []
    assert train(tmp_path, "tensorboard", seeds=(0, 1)) == []
    for seed in (0, 1):
        path = tmp_path / f"seed{seed}"
        events = read(path)
        for term in ("kl", "reconstruction", "elbo"):
            assert [(event.step, event.value) for event in events.Scalars(term)] == [
                (step, pytest.approx(value, rel=1e-6)) for step, value in own_log(path, term)
            ]
        assert [event.step for event in events.Scalars("kl")] == STEPS
        assert [(event.step, event.value) for event in events.Scalars("score/mig")] == [(8, 0.25)]
    [text] = read(tmp_path / "seed1").Tensors("spec/text_summary")
    assert b"| beta | 3.0 |" in text.tensor_proto.string_val[0]


def test_the_spec_becomes_hyper_parameters(tmp_path: Path) -> None:
    plugin_data_pb2 = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    train(tmp_path, "tensorboard")
    metadata = read(tmp_path / "seed0").SummaryMetadata("_hparams_/session_start_info")
    start = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content).session_start_info
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in dict(start.hparams).items()}
    [spec] = specs()
    assert values["method"] == "beta_vae"
    assert values["beta"] == 3.0
    assert values["steps"] == spec.steps


def test_pictures_are_shown(tmp_path: Path) -> None:
    pictures = tmp_path / "seed0" / "pictures"
    train(tmp_path, finish=False)
    pictures.mkdir()
    Image.new("RGB", (7, 5), (255, 0, 0)).save(pictures / "traversals.png")
    train(tmp_path, "tensorboard")
    [image] = read(tmp_path / "seed0").Images("traversals")
    assert (image.step, image.width, image.height) == (8, 7, 5)
