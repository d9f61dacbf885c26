"""Architecture and likelihood by name on the command line: trained, drawn, measured, shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import unweave
from unweave.commands.train import train_app
from unweave.errors import UnweaveError
from unweave.explore.run_view import view_of

OPTIONS = ["--steps", "3", "--batch", "4", "--latents", "3", "--device", "cpu", "--no-scores"]


def train(*arguments: str) -> Any:
    return train_app()(
        ["beta_vae", *OPTIONS, *arguments],
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """24 squares of 28 x 28 pixels: 2 sizes at 3 x 4 places, with a table of these factors."""
    folder = tmp_path / "squares"
    folder.mkdir()
    lines = ["file,size,x,y"]
    for number, (size, x, y) in enumerate(np.ndindex(2, 3, 4)):
        pixels = np.zeros((28, 28), np.uint8)
        pixels[5 * y + 1 : 5 * y + 5 + size, 7 * x + 1 : 7 * x + 5 + size] = 255
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
        lines.append(f"{number:02}.png,{size},{x},{y}")
    (folder / "factors.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_resnet_with_a_laplace_likelihood(tmp_path: Path, pictures: Path) -> None:
    out = tmp_path / "runs"
    train("--architecture", "resnet", "--likelihood", "laplace", "--data", str(pictures), "--out", str(out))
    [folder] = out.iterdir()
    assert (folder / "pictures" / "traversals.png").exists()
    run = unweave.load(folder)
    assert (run.spec.architecture, run.spec.likelihood) == ("resnet", "laplace")
    scores = unweave.evaluate(run, metrics=["mig", "elbo"], points=(100, 50))
    assert all(np.isfinite(value) for value in scores.values())
    codes = np.zeros((1, 3), np.float32)
    assert view_of(run).decode(codes).shape == (1, *run.shape)


def test_images_of_28_pixels_are_taken_as_they_are(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28), np.uint8)
    run = unweave.train(
        "beta_vae",
        unweave.data.from_arrays(images),
        out=tmp_path,
        device="cpu",
        steps=2,
        batch=4,
        architecture="resnet",
    )
    assert run.shape == (1, 28, 28)
    assert run.reconstruct(images[:2, None]).shape == (2, 1, 28, 28)


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--architecture", "resnett", 'there is no architecture "resnett". Did you mean "resnet"?'),
        ("--likelihood", "laplac", 'there is no likelihood "laplac". Did you mean "laplace"?'),
    ],
)
def test_names_that_there_are_not(option: str, name: str, message: str) -> None:
    with pytest.raises(UnweaveError) as caught:
        train(option, name)
    assert str(caught.value) == message
