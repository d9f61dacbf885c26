"""What all directions share: codes, moves, files, and encoders for evaluate, explore and the commands."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import unweave
from command_line import run_here
from directions.mixed import FACTORS, UNEQUAL, Floats, rotation
from training.tiny import TINY
from unweave.commands.explored import Named, subject_named
from unweave.data import conditioned
from unweave.data.grid import Factors, Images
from unweave.directions import Directions, fit, ganspace, ica, linear, load, open_encoder, pca, sefa, sparse
from unweave.errors import UnweaveError
from unweave.explore.own_model import OwnParts
from unweave.sparse import SparseSpec
from unweave.streams import Stream

SPEC = SparseSpec(features=6, k=2, steps=20, batch=32)
TURN = rotation(3, 9)
FITS: dict[str, Callable[[], Directions]] = {
    "pca": lambda: pca(UNEQUAL),
    "ica": lambda: ica(UNEQUAL),
    "ganspace": lambda: ganspace(UNEQUAL @ rotation(3, 4), UNEQUAL),
    "sefa": lambda: sefa(rotation(5)[:, :3] * [3.0, 2.0, 1.0], mean=UNEQUAL.mean(axis=0)),
    "linear": lambda: linear(UNEQUAL, FACTORS),
    "sparse": lambda: sparse(UNEQUAL, SPEC, device="cpu"),
}


@pytest.mark.parametrize("by", FITS)
def test_files_hold_everything(by: str, tmp_path: Path) -> None:
    found = FITS[by]()
    found.save(tmp_path / "found.safetensors")
    again = load(tmp_path / "found.safetensors")
    assert (again.fitted, again.names, again.word) == (found.fitted, found.names, found.word)
    for name in ("directions", "mean", "explained"):
        assert (getattr(again, name) == getattr(found, name)).all()
    assert (again.codes(UNEQUAL) == found.codes(UNEQUAL)).all()
    assert again.codes(UNEQUAL[:1]) == pytest.approx(found.codes(UNEQUAL)[:1], abs=1e-5)


@pytest.mark.parametrize("by", [by for by in FITS if by != "sparse"])
def test_a_move_changes_one_code_only(by: str) -> None:
    found = FITS[by]()
    for i in range(3):
        moved = found.move(UNEQUAL, i, 0.7)
        assert found.codes(moved) - found.codes(UNEQUAL) == pytest.approx(
            np.tile(0.7 * np.eye(3)[i], (len(UNEQUAL), 1)), abs=1e-9
        )
        assert found.move(UNEQUAL[0], i, 0.7) == pytest.approx(moved[0])
    assert found.reconstruct(found.codes(UNEQUAL)) == pytest.approx(UNEQUAL, abs=1e-9)
    assert (found.codes(found.mean[None]) == 0).all()


def test_features_of_a_sparse_autoencoder_reconstruct_codes_as_it_does() -> None:
    found = FITS["sparse"]()
    codes = found.codes(UNEQUAL)
    assert codes.shape == (1500, 6)
    assert (codes >= 0).all()
    trained = unweave.sparse.train(UNEQUAL, SPEC, device="cpu")
    assert found.reconstruct(codes) == pytest.approx(trained.decode(trained.encode(UNEQUAL)), abs=1e-5)
    assert (np.diff(found.explained) <= 0).all()


def test_protocols_tell_fits_of_different_settings_apart(tmp_path: Path) -> None:
    options: dict[str, Any] = {"features": 6, "steps": 0}
    specs = [SparseSpec(**options, k=k, seed=seed) for k, seed in ((2, 0), (2, 5), (3, 0))]
    specs.append(SparseSpec(**options, kind="relu", l1=0.01))
    found = [fit(encode, "sparse", data=TINY, images=40, seed=1, spec=spec).directions for spec in specs]
    assert [fitted.word for fitted in found] == [
        "read:sparse6-topk2-steps0-n40-seed1",
        "read:sparse6-topk2-steps0-seed5-n40-seed1",
        "read:sparse6-topk3-steps0-n40-seed1",
        "read:sparse6-relu0.01-steps0-n40-seed1",
    ]
    assert "found by sparse (topk2-steps0-seed5), fitted on 40 codes (seed 1)." in found[1].note
    found[1].save(tmp_path / "found.safetensors")
    assert load(tmp_path / "found.safetensors").word == found[1].word
    weights = np.diag([3.0, 1.0])
    assert (sefa(weights).word, sefa(weights, normalise=True).word) == ("read:sefa2", "read:sefa2-normalised")


def test_wrong_codes_and_directions_are_refused(tmp_path: Path) -> None:
    found = pca(UNEQUAL)
    (tmp_path / "other.safetensors").write_bytes(b"nothing")
    unweave.sparse.train(UNEQUAL, replace(SPEC, steps=0), device="cpu").save(tmp_path / "sae.safetensors")
    wrong: list[tuple[Callable[[], object], str]] = [
        (
            lambda: found.codes(UNEQUAL[:, :2]),
            "codes must be numbers of shape (n, 3), like those of the fit;",
        ),
        (lambda: found.codes(np.array([["a", "b", "c"]])), "codes must be numbers of shape (n, 3)"),
        (
            lambda: found.reconstruct(UNEQUAL[:, :2]),
            "codes along 3 directions must be (n, 3); got (1500, 2).",
        ),
        (lambda: found.move(UNEQUAL, 3, 1.0), "direction must be a whole number from 0 to 2; got 3."),
        (
            lambda: found.move(UNEQUAL, 0.5, 1.0),  # type: ignore[arg-type]
            "direction must be a whole number from 0 to 2; got 0.5.",
        ),
        (lambda: load(tmp_path / "nowhere.safetensors"), "there is no file"),
        (lambda: load(tmp_path / "other.safetensors"), "must be a file that `unweave directions`"),
        (lambda: load(tmp_path / "sae.safetensors"), "must be a file that `unweave directions`"),
        (lambda: sparse(UNEQUAL, 6), "spec must be a SparseSpec"),  # type: ignore[arg-type]
        (lambda: fit(encode, "pcs", data=TINY), 'there is no way "pcs" to find directions. Did you mean'),  # type: ignore[arg-type]
        (lambda: fit(encode, data=TINY, images=2), "images must be a whole number, 10 or more; got 2."),
        (lambda: fit(encode), 'an encoder needs data to encode: fit(encode, data="dsprites").'),
        (lambda: fit(encode, "linear", 2, data=TINY), "a linear read-out has a direction for each factor."),
        (lambda: fit(encode, "sefa", data=TINY), "sefa needs the weights of a decoder"),
        (
            lambda: fit(encode, "ica", data=TINY, spec=SPEC),
            'spec belongs to by="sparse"; got it with by="ica".',
        ),
    ]
    for call, message in wrong:
        with pytest.raises(UnweaveError) as caught:
            call()
        assert message in str(caught.value)


def encode(images: NDArray[Any]) -> Floats:
    """Size and position of the square, mixed by a rotation."""
    along, across = images.max(axis=(1, 3)), images.max(axis=(1, 2))
    rows = np.arange(32)
    places = [(part * rows).sum(axis=1) / part.sum(axis=1) for part in (across, along)]
    size = (along.sum(axis=1) + across.sum(axis=1)) / 4
    return np.stack([size * 9, places[0] * 2, places[1]], axis=1) @ TURN


def test_a_read_encoder_is_measured_with_its_own_protocol() -> None:
    reading = fit(encode, "ica", data=TINY, images=400, seed=3)
    options: dict[str, Any] = {"metrics": "dci, factor_vae_score", "points": (300, 150)}
    plain, read = unweave.evaluate(encode, data=TINY, **options), unweave.evaluate(reading, **options)
    assert plain["dci.disentanglement"] < 0.6
    assert read["dci.disentanglement"] > 0.9
    assert read["factor_vae_score.active"] == 3
    word = "read:ica3-n400-seed3"
    assert all(word in score.protocol for score in read.scores)
    assert not any("read:" in score.protocol for score in plain.scores)
    assert "Codes were read along 3 directions found by ica, fitted on 400 codes (seed 3)." in read.notes
    assert read.subject == "ica3 of encode"
    compared = unweave.compare(reading, encode, data=TINY, metrics="mig", points=(300, 150), repeats=3)
    assert f"{word}|codes" in compared["mig"].protocol


def test_linear_directions_know_the_kinds_and_names_of_factors() -> None:
    reading = fit(encode, "linear", data=TINY, images=300)
    assert reading.directions.names == ("size", "x", "y")
    scores = unweave.evaluate(reading, metrics="mig", points=(200, 100))
    assert scores.code_names == ("size", "x", "y")
    assert "The fit used the factors of these codes." in " ".join(scores.notes)


def test_nothing_is_fitted_to_what_was_held_out() -> None:
    seen: list[Factors] = []

    def render(factors: Factors, stream: Stream) -> Images:
        seen.append(factors)
        return TINY.render(factors, stream)

    data = conditioned(replace(TINY, render=render), "hold(size=2,x>=2)")
    fit(encode, "pca", data=data, images=300)
    drawn = np.concatenate(seen)
    assert len(drawn) >= 300
    assert not ((drawn[:, 0] == 2) & (drawn[:, 1] >= 2)).any()


def test_a_collection_is_encoded_too() -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    rows = unweave.data.from_arrays(TINY.observe(factors)[:50], factors[:50])
    reading = fit(encode, "linear", data=rows, images=100)
    assert unweave.evaluate(reading, metrics="mig")["mig"] > 0.5


class Decoder(nn.Module):
    """Codes -> flat images whose brightness is the first code; the first weights favour one direction."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 2)
        with torch.no_grad():
            self.first.weight.copy_(torch.tensor([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.first(codes)[:, :1, None, None]).expand(-1, 1, 32, 32)


def test_the_explorer_decodes_along_directions() -> None:
    decoder = Decoder()
    reading = fit(encode, "sefa", data=TINY, images=50, decode=decoder)
    assert reading.directions.directions == pytest.approx(np.eye(3)[[1, 0]])
    model = OwnParts(reading, name=reading.name).on(TINY)
    images = TINY.sample_images(4, 0)
    codes = model.posterior(images).mean
    assert codes == pytest.approx(reading.directions.codes(encode(images.astype(np.float32) / 255)), abs=1e-4)
    moved = codes.astype(np.float32) + np.array([[1.0, 0]], np.float32)
    assert (model.decode(moved)[:, 0, 0, 0] >= model.decode(codes.astype(np.float32))[:, 0, 0, 0]).all()
    assert model.has_decoder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> unweave.Run:
    monkeypatch.setattr(unweave.Run, "data", TINY)
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3, "architecture": "mlp", "device": "cpu"}
    return unweave.train(unweave.methods.VAE(), TINY, out=tmp_path / "runs", **settings)


def test_commands_write_and_take_directions(run: unweave.Run, tmp_path: Path) -> None:
    target, small = tmp_path / "found" / "sefa.safetensors", ("--metrics", "mig", "--points", 60, 30)
    done = run_here("directions", run.path, "--by", "sefa", "-k", 2, "--images", 60, "-o", target)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "share of the squared weights" in done.stdout
    assert f"unweave evaluate {target}" in done.stdout
    weights = run.modules().decoder.state_dict()
    first = next(value for name, value in weights.items() if name.endswith("weight")).numpy()
    top = np.linalg.svd(first)[2][0]
    assert abs(load(target).directions[0] @ top) == pytest.approx(1, abs=1e-5)
    done = run_here("evaluate", target, *small)
    assert done.returncode == 0, done.stderr
    assert "read:sefa2" in done.stdout
    shown = subject_named(Named((target,)))
    view = shown.view(shown.describe()["run"])
    assert view.decode(np.zeros((1, 2), np.float32)).shape == (1, 1, 32, 32)
    moved = open_encoder(target)
    assert moved.decode is not None
    assert moved.decode(np.zeros((1, 2))) == pytest.approx(
        run.decode(load(target).mean[None].astype(np.float32)), abs=1e-6
    )
    run.path.rename(tmp_path / "elsewhere")
    done = run_here("evaluate", target, *small)
    assert done.returncode == 2
    assert "is not at" in done.stderr
    assert run_here("directions", tmp_path / "nothing").returncode == 2
    assert "must end in .safetensors" in run_here("directions", tmp_path, "-o", tmp_path / "a.npz").stderr
