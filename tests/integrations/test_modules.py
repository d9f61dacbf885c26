"""The networks of a run as plain modules of torch, and as files for other programs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

import unweave
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.runs.run import Run

SETTINGS: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3, "device": "cpu", "progress": False}
IMAGES = torch.from_numpy(TINY.sample_images(5, 0)).float() / 255
CODES = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return unweave.train("vae", TINY, out=tmp_path_factory.mktemp("runs"), **SETTINGS)


def test_modules_compute_what_the_run_computes(run: Run) -> None:
    encoder, decoder = run.modules()
    mean, log_var = encoder(IMAGES)
    posterior = run.posterior(IMAGES)
    assert torch.equal(mean, posterior.mean)
    assert torch.equal(log_var, posterior.log_var)
    assert torch.equal(decoder(CODES), run.decode(CODES))
    decoder(encoder(IMAGES)[0]).sum().backward()  # they can be trained, and the run stays as it is
    assert all(weight.grad is not None for weight in decoder.parameters())
    assert not any(
        weight.requires_grad for network in run.networks.values() for weight in network.parameters()
    )


@pytest.mark.parametrize("method", ["info_gan", "drnet"])
def test_methods_with_networks_of_their_own(method: str, tmp_path: Path) -> None:
    run = unweave.train(method, TINY, out=tmp_path, steps=1, batch=4, device="cpu", progress=False)
    encoder, decoder = run.modules()
    for module in (encoder, decoder):
        module.load_state_dict(module.state_dict())
    codes = encoder(IMAGES)[0]
    assert torch.equal(codes, run.encode(IMAGES))
    assert torch.equal(decoder(codes), run.decode(codes))


def test_state_dicts_can_be_loaded(run: Run, tmp_path: Path) -> None:
    other = unweave.train("vae", TINY, out=tmp_path, seed=1, **SETTINGS)
    model = nn.ModuleDict({"encoder": other.modules().encoder})  # within another model
    assert not torch.equal(model["encoder"](IMAGES)[0], run.encode(IMAGES))
    state = {f"encoder.{name}": value for name, value in run.modules().encoder.state_dict().items()}
    assert set(model.state_dict()) == set(state)
    model.load_state_dict(state)
    assert torch.equal(model["encoder"](IMAGES)[0], run.encode(IMAGES))
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({})


def test_exported_networks_compute_the_same(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """torch.export and ONNX in one test: importing torch's exporters takes most of the time."""
    exported = [torch.export.load(path).module() for path in run.to_torch_export(tmp_path)]
    assert torch.allclose(exported[0](IMAGES)[0], run.encode(IMAGES), atol=1e-6)
    assert torch.allclose(exported[1](CODES[:1]), run.decode(CODES[:1]), atol=1e-6)
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    if torch.__version__ < "2.7":
        pytest.skip("torch 2.6 cannot write networks that take batches of any size")
    paths = run.to_onnx(tmp_path / "model")
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in paths] == ["encoder.onnx", "decoder.onnx"]
    assert sorted((tmp_path / "model").iterdir()) == sorted(paths)
    encoder, decoder = (onnxruntime.InferenceSession(path) for path in paths)
    for images in (IMAGES, IMAGES[:1]):
        mean, log_var = encoder.run(["mean", "log_var"], {"images": images.numpy()})
        assert np.allclose(mean, run.encode(images), atol=1e-5)
        assert np.allclose(log_var, run.posterior(images).log_var, atol=1e-5)
    [decoded] = decoder.run(["images"], {"codes": CODES.numpy()})
    assert np.allclose(decoded, run.decode(CODES), atol=1e-5)


def test_missing_packages_are_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.runs.exporting.find_spec", lambda _name: None)
    with pytest.raises(UnweaveError, match=r'pip install "unweave\[onnx\]"'):
        run.to_onnx(tmp_path)
    monkeypatch.setattr("unweave.runs.exporting.find_spec", lambda _name: object())
    monkeypatch.setattr("torch.__version__", TorchVersion("2.6.0"))
    with pytest.raises(UnweaveError, match=r"needs torch 2\.7 or later; this is 2\.6\.0\. Run: pip install"):
        run.to_onnx(tmp_path)
