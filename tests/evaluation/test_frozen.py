"""Frozen networks as encoders: preprocessing, outputs, ONNX files, and the cache of encodings."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import unweave
from unweave.cli import app
from unweave.data import from_arrays
from unweave.errors import UnweaveError
from unweave.evaluation import Preprocessing
from unweave.evaluation.encoding_cache import prune
from unweave.evaluation.preprocessing import preprocessing_of

FACTORS = np.stack(np.meshgrid(*map(np.arange, (3, 4, 5)), indexing="ij"), axis=-1).reshape(-1, 3)
IMAGES = np.zeros((60, 1, 8, 8), np.uint8)
IMAGES[:, 0, 0, :3] = 40 * FACTORS
DATA = from_arrays(IMAGES, FACTORS, name="dots")
ASKED: dict[str, Any] = {"data": DATA, "metrics": "mig", "points": (100, 50)}


class Counting(nn.Module):
    """The first pixels of the images as codes; counts the images that it sees."""

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.channels, self.images, self.shift = channels, 0, 0.0
        self.shapes: set[tuple[int, ...]] = set()

    def codes(self, images: Tensor) -> Tensor:
        self.images += len(images)
        self.shapes.add(tuple(images.shape[1:]))
        return images[:, 0, 0, :3] * self.weight + self.shift

    def forward(self, images: Tensor) -> Any:
        return self.codes(images)


class Answering(Counting):
    """Wraps its codes into a result of some kind."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.wrap = wrap

    def forward(self, images: Tensor) -> Any:
        return self.wrap(self.codes(images))


@dataclass
class Record:
    last_hidden_state: Tensor
    pooler_output: Tensor | None = None


@cache
def plain() -> dict[str, float]:
    """The scores of the first pixels."""
    return dict(unweave.evaluate(Counting(), cache=False, **ASKED))


def patches(codes: Tensor) -> Tensor:
    """(n, 2, d), whose mean over the patches is the codes."""
    return torch.stack([codes - 1, codes + 1], dim=1)


@pytest.mark.parametrize(
    ("wrap", "output"),
    [
        (lambda z: {"pooler_output": z, "last_hidden_state": patches(-z)}, None),
        (lambda z: OrderedDict(last_hidden_state=patches(z), pooler_output=None), None),
        (lambda z: Record(patches(z)), None),
        (lambda z: Record(patches(-z), z), None),
        (lambda z: {"codes": z}, None),
        (lambda z: {"mean": z, "log_var": 0 * z}, None),
        (lambda z: {"a": -z, "b": z}, "b"),
        (lambda z: (-z, z, z), 1),
        (lambda z: {"map": z[:, :, None, None].expand(-1, -1, 2, 3)}, "map"),
        (lambda z: [patches(z)], lambda result: result[0].mean(1)),
    ],
)
def test_codes_are_found_in_results_of_all_kinds(wrap: Any, output: Any) -> None:
    scores = unweave.evaluate(Answering(wrap), output=output, cache=False, **ASKED)
    assert dict(scores) == pytest.approx(plain())


def test_a_layer_can_be_the_output() -> None:
    first = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    model = nn.Sequential(OrderedDict(trunk=first, head=nn.Linear(3, 2)))
    expected = unweave.evaluate(first, cache=False, **ASKED)
    assert dict(unweave.evaluate(model, output="trunk", cache=False, **ASKED)) == dict(expected)
    maps = nn.Sequential(OrderedDict(trunk=nn.Conv2d(1, 4, 3), head=nn.Flatten()))
    assert len(unweave.evaluate(maps, output="trunk", cache=False, **ASKED).matrix()) == 4


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        (Answering(lambda z: {"a": z, "b": z}), {}, r"has the outputs a, b\. Choose one: output='a'"),
        (Answering(lambda z: {"a": z}), {"output": "b"}, r'has no output "b"; it has a\.'),
        (Counting(), {"output": "b"}, r'no output "b"; it has one without a name'),
        (Answering(lambda z: (z, z)), {"output": 2}, "the encoder has no output 2; it returned tuple"),
        (nn.Conv2d(1, 4, 3), {}, r"it gave \(60, 4, 6, 6\)\. Make them vectors with output=function"),
        (Counting(), {"transform": 3}, "transform must be a Preprocessing, a function.*got int"),
        (Counting(), {"device": "cuda:99"}, 'failed on moving to the device "cuda:99": '),
        (Counting(), {"batch": 0}, "batch must be a whole number, 1 or more, or None; got 0"),
        (
            Counting(),
            {"transform": Preprocessing(mean=(0.5, 0.5))},
            "mean must have a value for each of the 1 channels",
        ),
        (
            SimpleNamespace(transform=lambda x: x),
            {"batch": 2},
            "batch can be set for a torch module, an ONNX",
        ),
    ],
)
def test_mistakes_are_one_sentence(model: Any, options: dict[str, Any], sentence: str) -> None:
    for metrics in ("mig", "quick"):
        with pytest.raises(UnweaveError, match=sentence):
            unweave.evaluate(model, cache=False, **ASKED | options | {"metrics": metrics})


def test_options_of_encoders_are_refused_for_codes() -> None:
    with pytest.raises(
        UnweaveError, match="output can be set for a torch module, an ONNX file or a function"
    ):
        unweave.evaluate(FACTORS * 0.1, FACTORS, metrics="mig", output="b")
    with pytest.raises(UnweaveError, match="channels must be 1, 3 or None; got 2"):
        Preprocessing(channels=2)
    with pytest.raises(UnweaveError, match="std must be greater than 0"):
        Preprocessing(std=(0.0,))


def test_preprocessing_resizes_repeats_and_normalises() -> None:
    images = torch.arange(16.0).reshape(1, 1, 4, 4) / 16
    done = Preprocessing(8, 3, mean=(0.5, 0.0, 0.0), std=(0.5, 1.0, 2.0))(images)
    assert done.shape == (1, 3, 8, 8)
    # Doubling the sides leaves the mean of a ramp as it is.
    assert done.mean((0, 2, 3)).tolist() == pytest.approx([-1 / 16, 15 / 32, 15 / 64], abs=1e-6)
    colours = torch.stack([torch.zeros(4, 4), torch.ones(4, 4), torch.full((4, 4), 0.5)])[None]
    assert Preprocessing(channels=1)(colours).unique().tolist() == [0.5]


SQUARE = {"height": 8, "width": 8}
TIMM: dict[str, Any] = {"input_size": (3, 16, 20), "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"pretrained_cfg": TIMM}, Preprocessing((16, 20), 3, TIMM["mean"], TIMM["std"])),
        ({"default_cfg": SimpleNamespace(**TIMM)}, Preprocessing((16, 20), 3, TIMM["mean"], TIMM["std"])),
        ({"config": SimpleNamespace(image_size=24, num_channels=3)}, Preprocessing(24, 3)),
        ({"config": {"vision_config": {"image_size": (8, 9), "num_channels": 1}}}, Preprocessing((8, 9), 1)),
        ({"config": {"hidden": 3}}, Preprocessing()),
        ({"config": [3]}, Preprocessing()),
        ({"config": SimpleNamespace(image_size=24, num_channels=4)}, Preprocessing(24)),
        (
            {"image_mean": [0.5], "image_std": [0.1], "size": {"height": 6, "width": 7}},
            Preprocessing((6, 7), 1, (0.5,), (0.1,)),
        ),
        (
            {"image_mean": [0.1], "image_std": [1.0], "size": {"shortest_edge": 9}, "crop_size": SQUARE},
            Preprocessing(8, 1, (0.1,), (1.0,)),
        ),
    ],
)
def test_models_say_how_they_take_images(attributes: dict[str, Any], expected: Preprocessing) -> None:
    assert preprocessing_of(SimpleNamespace(**attributes)) == expected


def test_what_a_model_says_is_done_and_noted() -> None:
    model: Any = Counting()
    model.pretrained_cfg = TIMM
    scores = unweave.evaluate(model, cache=False, **ASKED)
    assert model.shapes == {(3, 16, 20)}
    assert scores.notes[0] == (
        "Images were resized to 16 x 20 pixels, turned into 3 channels and normalised by mean (0.5, 0.5, "
        "0.5) and standard deviation (0.25, 0.25, 0.25) before encoding."
    )
    other: Any = Counting()
    other.pretrained_cfg = TIMM
    unweave.evaluate(other, transform=Preprocessing(), batch=7, cache=False, **ASKED)
    assert other.shapes == {(1, 8, 8)}


def test_functions_take_options_too() -> None:
    seen: list[tuple[int, ...]] = []

    def encode(images: NDArray[np.float32]) -> dict[str, Any]:
        seen.append(images.shape)
        return {"codes": images[:, 0, 0, :3], "rest": images}

    scores = unweave.evaluate(encode, output="codes", batch=40, **ASKED)
    assert dict(scores) == pytest.approx(plain())
    assert set(seen) == {(40, 1, 8, 8), (20, 1, 8, 8)}
    doubled = unweave.evaluate(encode, output="codes", transform=lambda x: 2 * x, **ASKED)
    assert dict(doubled) == pytest.approx(plain())


def test_a_further_metric_encodes_nothing() -> None:
    model = Counting().train()
    first = unweave.evaluate(model, **ASKED)
    assert (model.images, model.training) == (60, True)
    assert dict(first) == plain()
    both = unweave.evaluate(model, **ASKED | {"metrics": "mig, sap"})
    assert model.images == 60 + 4  # the check of the cache
    assert dict(both)["mig"] == plain()["mig"]
    assert "The codes of 60 images were read from the cache." in both.notes
    unweave.evaluate(model, cache=False, **ASKED)
    assert model.images == 60 + 4 + 60


@pytest.mark.parametrize("change", ["weights", "options", "images", "attribute"])
def test_the_cache_is_not_used_for_anything_else(change: str) -> None:
    unweave.evaluate(Counting(), **ASKED)
    model, asked = Counting(), dict(ASKED)
    if change == "weights":
        model.weight.data[0] = -1.0
    elif change == "options":
        asked["transform"] = Preprocessing(mean=(0.1,))
    elif change == "images":
        asked["data"] = from_arrays(np.maximum(IMAGES, 1), FACTORS, name="dots")
    else:
        model.shift = 0.5  # which no hash of weights can see
    scores = unweave.evaluate(model, **asked)
    assert model.images >= 60
    assert not [note for note in scores.notes if "cache" in note]


def test_a_damaged_or_unwritable_cache_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "here"))
    unweave.evaluate(Counting(), **ASKED)
    [stored] = (tmp_path / "here").rglob("*.npz")
    stored.write_bytes(b"damaged")
    assert dict(unweave.evaluate(Counting(), **ASKED)) == plain()
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file"))
    assert dict(unweave.evaluate(Counting(), **ASKED)) == plain()


def test_the_oldest_codes_are_removed_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    unweave.evaluate(Counting(), **ASKED)
    [old] = tmp_path.rglob("*.npz")
    unweave.evaluate(Counting(), transform=Preprocessing(mean=(0.1,)), **ASKED)
    prune(limit=old.stat().st_size)
    [left] = tmp_path.rglob("*.npz")
    assert left != old


class StandInSession:
    """What is used of onnxruntime.InferenceSession: a network that returns the first pixels."""

    shape: list[Any] = ["batch", 1, 8, 8]
    sizes: list[int] = []

    def __init__(self, path: Path, providers: list[str]) -> None:
        if path.read_bytes() == b"damaged":
            raise RuntimeError("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF\nmore")
        assert providers[-1] == "CPUExecutionProvider"

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="x", shape=self.shape, type="tensor(float)")]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="pixels"), SimpleNamespace(name="embeddings")]

    def run(self, names: None, feed: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        assert names is None
        assert feed["x"].dtype == np.float32
        self.sizes.append(len(feed["x"]))
        images = feed["x"] if self.shape[1] in (1, 3) else feed["x"].transpose(0, 3, 1, 2)
        return [images, images[:, 0, 0, :3]]


@pytest.fixture
def onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=StandInSession))
    monkeypatch.setattr(StandInSession, "sizes", [])
    path = tmp_path / "model.onnx"
    path.write_bytes(b"network")
    return path


@pytest.mark.parametrize("shape", [["n", 1, 8, 8], [32, 1, "h", "w"], [None, 8, 8, 1]])
def test_onnx_files_are_encoders(onnx: Path, monkeypatch: pytest.MonkeyPatch, shape: list[Any]) -> None:
    monkeypatch.setattr(StandInSession, "shape", shape)
    scores = unweave.evaluate(onnx, **ASKED)
    assert dict(scores) == pytest.approx(plain())
    assert scores.subject == str(onnx)
    assert not [note for note in scores.notes if "before encoding" in note]  # images fit as they are
    assert set(StandInSession.sizes) == ({32} if shape[0] == 32 else {60})
    again = unweave.evaluate(str(onnx), **ASKED)
    assert "The codes of 60 images were read from the cache." in again.notes


def test_onnx_files_on_the_command_line(
    onnx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "dots.npz", images=IMAGES, factors=FACTORS)
    words = [
        "evaluate",
        str(onnx),
        "--metrics",
        "mig",
        "--data",
        str(tmp_path / "dots.npz"),
        "--points",
        "100",
        "50",
    ]
    app(words, result_action="return_value")
    assert "mig[bins20,n100,mean]" in capsys.readouterr().out
    with pytest.raises(UnweaveError, match=r"model\.onnx is an encoder and needs data to encode: add --data"):
        app(words[:4], result_action="return_value")


def test_onnx_files_that_cannot_be_used_are_one_sentence(onnx: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandInSession, "shape", [1, 10])
    with pytest.raises(UnweaveError, match=r"must have one input.* it has x \[1, 10\] tensor\(float\)"):
        unweave.evaluate(onnx, **ASKED)
    with pytest.raises(UnweaveError, match=r"there is no file .*absent\.onnx"):
        unweave.evaluate(onnx.with_name("absent.onnx"), **ASKED)
    onnx.write_bytes(b"damaged")
    with pytest.raises(UnweaveError, match=r"cannot be opened as an ONNX model: .*INVALID_PROTOBUF$"):
        unweave.evaluate(onnx, **ASKED)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UnweaveError, match=r"read by onnxruntime, which is not installed.*unweave\[onnx\]"):
        unweave.evaluate(onnx, **ASKED)
