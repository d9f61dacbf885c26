"""A user's own model in the explorer: functions, modules and ONNX files; what is shown, and what refused."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import unweave
from command_line import run_here
from explore.dots import FACTORS, PLACES, SIZE, decode, dot_images, dots, encode
from unweave.commands.explored import Named, subject_named
from unweave.errors import UnweaveError
from unweave.explore.code_table import code_table, read_code_table
from unweave.explore.export import export_page
from unweave.explore.nearest import NearestImages
from unweave.explore.own_model import OwnParts
from unweave.explore.run_view import RunView, view_on
from unweave.explore.session import explore

BACKGROUND: dict[str, Any] = {"open_page": False, "wait": False}


def view(encode: Any, decode: Any = None, **options: Any) -> RunView:
    data = dots()
    return view_on(OwnParts(encode, decode, **options).on(data), data)


def test_functions_are_shown_like_a_run() -> None:
    shown = view(encode, decode, name="places", scores={"mig": 1.0, "sap": float("nan")})
    described = shown.description
    assert (described["method"], described["data"], described["seed"]) == ("places", "dots", None)
    assert described["scores"] == {"mig": 1.0}
    assert (described["latents"], described["kl"], described["decodes"]) == (2, None, True)
    # x and y are known completely: log 5 nats of each by its own latent, nothing of the other.
    assert np.array(described["information"]) == pytest.approx(np.log(PLACES) * np.eye(2), abs=0.05)
    assert shown.decode(shown.encode(FACTORS).mean).tolist() == dot_images().tolist()


def test_means_and_log_variances_give_the_divergence_from_the_prior() -> None:
    def means_and_variances(images: Any) -> Any:
        n = len(images)
        return np.tile([2.0, 0.0], (n, 1)), np.tile([np.log(0.25), 0.0], (n, 1))

    described = view(means_and_variances).description
    # KL(N(2, 1/4) || N(0, 1)) = (4 + 1/4 - 1 + log 4) / 2; the second latent is the prior.
    assert described["kl"] == pytest.approx([(4 + 0.25 - 1 + np.log(4)) / 2, 0.0], abs=1e-5)
    assert described["dead"] == [False, True]
    assert described["spans"] == [[-2, 2]] * 2


class Coder(nn.Module):
    """An autoencoder that is exact in evaluation mode, and random in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def encode(self, images: Tensor) -> Tensor:
        return torch.as_tensor(encode(self.dropout(images)))

    def decode(self, codes: Tensor) -> Tensor:
        images: Tensor = self.dropout(torch.as_tensor(decode(codes)))
        return images


def test_a_module_with_encode_and_decode_is_used_in_evaluation_mode() -> None:
    module = Coder().train()
    shown = view(module)
    assert shown.description["name"] == "Coder"
    assert shown.encode(FACTORS).mean.tolist() == FACTORS.tolist()
    assert shown.decode(FACTORS.astype(np.float32)).tolist() == dot_images().tolist()
    assert module.training


def test_without_a_decoder_the_nearest_true_image_is_shown() -> None:
    shown = view(encode)
    assert shown.description["decodes"] is False
    near = FACTORS[[7, 20]] + np.array([0.4, -0.4])
    assert shown.decode(near.astype(np.float32)).tolist() == dot_images()[[7, 20]].tolist()


def test_the_nearest_image_counts_all_latents_alike() -> None:
    # In plain distance (1.5, 0) is nearer to (0, 0); in deviations of the latents, to (300, 0) / 200.
    codes = np.array([[0.0, 0.0], [400.0, 0.0], [0.0, 1.0], [400.0, 1.0]])
    images = np.arange(4, dtype=np.uint8).reshape(4, 1, 1, 1)
    assert NearestImages(codes, images).decode(np.array([[90.0, 0.8], [310.0, 0.2]])).ravel().tolist() == [
        2,
        1,
    ]
    constant = np.array([[0.0, 5.0], [1.0, 5.0]])
    assert NearestImages(constant, images[:2]).decode(np.array([[0.9, -1e6]])).ravel().tolist() == [1]


def test_content_and_style_of_a_model_are_swapped() -> None:
    shown = view(encode, decode, content=1)
    sheet = shown.swaps(0)
    codes = encode(sheet[:12] / 255)
    made = encode(sheet[12:] / 255).reshape(4, 8, 2)
    assert (made[..., 0] == codes[:4, None, 0]).all()
    assert (made[..., 1] == codes[None, 4:, 1]).all()


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((lambda x: np.zeros((3, x.ndim - 2)),), r"codes of shape \(8, d\) for 8 images; it gave \(3, 2\)"),
        ((lambda x: encode(x) * np.nan,), r"codes must be finite; 16 of 16 are NaN"),
        ((lambda x: x.nonsense,), r"the encoder <lambda> failed on images of shape \(8, 1, 8, 8\)"),
        ((encode, lambda z: z), r"decode must return images of shape \(8, 1, 8, 8\).*got \(8, 2\)"),
        ((encode, lambda z: decode(z) * np.nan), r"decode returned NaN or infinite pixels"),
        ((encode, lambda z: 20 * decode(z) - 10), r"from -10 to 10\. If they are logits, apply a sigmoid"),
        ((encode, lambda z: 255 * decode(z)), r"from 0 to 255\. Divide them by 255"),
        ((encode, lambda z: 2 * decode(z) - 1), r"from -1 to 1\. Return \(images \+ 1\) / 2"),
        ((encode, lambda z: z.nonsense), r"the decoder <lambda> failed on codes of shape \(8, 2\)"),
        ((encode, 3), r"decode must be a function from codes.*got int"),
        (("model.pt",), r"a model is an ONNX file or path/to/file\.py:Name; got model\.pt"),
    ],
)
def test_what_is_no_model_is_refused_in_a_sentence(parts: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(UnweaveError, match=sentence):
        view(*parts)


def test_a_decoder_without_a_sigmoid_is_clipped() -> None:
    shown = view(encode, lambda z: 1.2 * decode(z) - 0.1)
    assert shown.decode(FACTORS.astype(np.float32)).tolist() == dot_images().tolist()


def test_python_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UnweaveError, match=r"content must be how many of the 2 latents.*got 2"):
        explore(encode=encode, data=dots(), content=2, **BACKGROUND)
    with pytest.raises(UnweaveError, match="a model needs images to encode"):
        explore(encode=encode, **BACKGROUND)
    with pytest.raises(UnweaveError, match=r"data must be the name of a data set.*got list"):
        explore(encode=encode, data=[1], **BACKGROUND)
    with pytest.raises(UnweaveError, match="one thing at a time; got a model and encode"):
        explore(encode, encode=encode, data=dots(), **BACKGROUND)
    with pytest.raises(UnweaveError, match="codes need their images"):
        explore(codes=FACTORS, **BACKGROUND)
    with pytest.raises(UnweaveError, match="name what to explore"):
        explore(**BACKGROUND)


def test_unweave_explore_is_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    opened = unweave.explore(encode=encode, decode=decode, data=dots(), **BACKGROUND)  # type: ignore[operator]
    try:
        assert capsys.readouterr().out == f"encode: {opened.url}\n"
    finally:
        opened.close()


def test_which_models_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(
        UnweaveError, match=r"encode cannot be exported.*a decoder of the type function: an exp"
    ):
        export_page(view(encode, decode), tmp_path / "page.html")
    with pytest.raises(UnweaveError, match=r"encode cannot be exported, because it has no decoder"):
        export_page(view(encode, None), tmp_path / "page.html")


def test_codes_are_looked_up(tmp_path: Path) -> None:
    codes = FACTORS[:, ::-1] * 10.0
    np.savez(tmp_path / "places.npz", codes=codes, images=dot_images(), factors=FACTORS, names=["x", "y"])
    shown = view_on(*read_code_table(tmp_path / "places.npz"))
    described = shown.description
    assert (described["name"], described["decodes"], described["images"]) == ("places", False, len(codes))
    assert [factor["name"] for factor in described["factors"]] == ["x", "y"]
    assert shown.encode(FACTORS[[3, 9]]).mean.tolist() == codes[[3, 9]].tolist()
    assert shown.decode(codes[[3]].astype(np.float32)).tolist() == dot_images()[[3]].tolist()


def test_codes_without_factors_start_from_images() -> None:
    shown = view_on(*code_table(FACTORS, dot_images()[:, 0]))
    described = shown.description
    assert (described["factors"], described["information"], described["first_factors"]) == ([], None, None)
    assert described["example_codes"] == FACTORS[:12].tolist()
    assert shown.examples is not None
    assert shown.examples.tolist() == dot_images()[:12].tolist()


def test_rows_are_not_counted_twice() -> None:
    """Codes that have nothing to do with the factors have no information, also with few rows."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (100, SIZE, SIZE), np.uint8)
    factors = np.arange(100)[:, None] % 4  # 25 rows of each value: a grid, if rows may be drawn repeatedly
    described = view_on(*code_table(generator.normal(size=(100, 3)), images, factors)).description
    assert described["points"] == 100
    assert np.array(described["information"]).max() < 0.1
    assert described["note"] == "codes has several images of one combination of factors."
    assert described["first_factors"] is None  # a change of the factor would change the hidden rest too


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"one row for each of the 25 images: .*\(25, d\)"):
        code_table(FACTORS[:20], dot_images())
    np.savez(tmp_path / "codes.npz", codes=FACTORS, factors=FACTORS)
    with pytest.raises(UnweaveError, match=r"must hold codes .* and images .*; it holds codes, factors"):
        read_code_table(tmp_path / "codes.npz")


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    """A file with a model, next to a data set."""
    np.savez(tmp_path / "dots.npz", images=dot_images(), factors=FACTORS)
    path = tmp_path / "own.py"
    path.write_text(
        "from explore.dots import decode, encode\n\n\n"
        "class Model:\n    encode, decode = staticmethod(encode), staticmethod(decode)\n"
    )
    return path


def test_models_on_the_command_line(own_file: Path) -> None:
    data = str(own_file.with_name("dots.npz"))
    chosen = [
        Named((Path(f"{own_file}:Model"),), data=data),
        Named(encoder=f"{own_file}:Model", data=data),
        Named(encoder=f"{own_file}:encode", decoder=f"{own_file}:decode", data=data),
    ]
    for named in chosen:
        subject = subject_named(named)
        described = subject.view(subject.describe()["run"]).description
        assert (described["decodes"], described["data"], described["latents"]) == (True, "dots", 2)


def test_mistakes_on_the_command_line(own_file: Path) -> None:
    mistakes: list[tuple[list[object], str]] = [
        (["--encoder", f"{own_file}:encode"], "is an encoder and needs data to encode: add --data dsprites"),
        (["--decoder", f"{own_file}:decode", "--data", "dsprites"], "a model has one encoder"),
        (["--encoder", f"{own_file}:absent", "--data", own_file.with_name("dots.npz")], 'no model "absent"'),
        ([], "name what to explore: the folder of a run or a study"),
    ]
    for words, sentence in mistakes:
        done = run_here("explore", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr


class StandInDecoder:
    """What is used of onnxruntime.InferenceSession, for a decoder with batches of four."""

    shape: tuple[Any, ...] = (4, 2)

    def __init__(self, path: Path, providers: list[str]) -> None:
        assert path.exists()
        assert providers == ["CPUExecutionProvider"]

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="z", shape=list(self.shape), type="tensor(float)")]

    def run(self, names: None, feed: dict[str, NDArray[np.float32]]) -> list[Any]:
        assert names is None
        assert len(feed["z"]) == 4
        return [decode(feed["z"])]


def test_decoders_in_onnx_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=StandInDecoder))
    path = tmp_path / "decoder.onnx"
    path.write_bytes(b"network")
    shown = view(encode, path)
    assert shown.decode(FACTORS.astype(np.float32)).tolist() == dot_images().tolist()
    monkeypatch.setattr(StandInDecoder, "shape", ("n", 1, 8, 8))
    with pytest.raises(UnweaveError, match=r"one input of float codes \(n, d\); it has z \['n', 1, 8, 8\]"):
        view(encode, path)


def write_linear(path: Path, weights: NDArray[np.float32], source: list[Any], target: list[Any]) -> None:
    """Write an ONNX file that flattens its input, multiplies it by weights and reshapes the result."""
    onnx = pytest.importorskip("onnx", reason="onnx writes the file")
    helper, arrays = onnx.helper, onnx.numpy_helper
    shape = np.array([-1, *target[1:]])
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["in"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weights"], ["product"]),
            helper.make_node("Reshape", ["product", "shape"], ["out"]),
        ],
        "linear",
        [helper.make_tensor_value_info("in", onnx.TensorProto.FLOAT, source)],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, target)],
        [arrays.from_array(weights, "weights"), arrays.from_array(shape, "shape")],
    )
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def test_real_onnx_files(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is an extra")
    images = ["n", 1, SIZE, SIZE]
    places = encode(np.eye(SIZE * SIZE).reshape(-1, 1, SIZE, SIZE))  # the code of each pixel
    write_linear(tmp_path / "encoder.onnx", places, images, ["n", 2])
    write_linear(tmp_path / "decoder.onnx", np.full((2, SIZE * SIZE), 0.1, np.float32), ["n", 2], images)
    shown = view(tmp_path / "encoder.onnx", tmp_path / "decoder.onnx")
    assert shown.description["name"] == "encoder"
    assert shown.encode(FACTORS).mean.tolist() == FACTORS.tolist()
    decoded = shown.decode(FACTORS[[7]].astype(np.float32))
    assert (decoded == round(25.5 * FACTORS[7].sum())).all()
