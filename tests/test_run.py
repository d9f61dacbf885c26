"""A trained run in Python: unweave.train and unweave.load, arrays in and arrays out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unweave
from training.tiny import TINY
from unweave.data import from_arrays
from unweave.data.supervision import hold_out
from unweave.display.pictures import labelled_sheet
from unweave.errors import UnweaveError
from unweave.methods import AE, MLVAE, VAE, BetaVAE
from unweave.runs.gallery import draw_missing_pictures, draw_pictures
from unweave.runs.run import CHUNK, Run, folder_name
from unweave.runs.spec import RunSpec
from unweave.runs.store import write_tensors
from unweave.runs.views import CONTENTS, SHOWN, swaps, traversals

FACTORS = TINY.sample_factors(6, 0)
IMAGES = TINY.observe(FACTORS)


def train(folder: Path, data: Any = TINY, **settings: Any) -> Run:
    chosen = {"steps": 3, "batch": 4, "latents": 4, "learning_rate": 1e-3} | settings
    return unweave.train(chosen.pop("method", BetaVAE(4.0)), data, out=folder, device="cpu", **chosen)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The codes that runs are asked to decode from now on."""
    found: list[Any] = []
    real = Run.decode

    def noted(self: Run, codes: Any) -> Any:
        found.append(codes)
        return real(self, codes)

    monkeypatch.setattr(Run, "decode", noted)
    return found


def test_a_run_knows_itself(run: Run) -> None:
    assert run.path.name == folder_name(run.spec)
    assert run.spec == RunSpec(BetaVAE(4.0), "tiny", steps=3, batch=4, latents=4, learning_rate=1e-3)
    assert run.shape == (1, 32, 32)
    assert run.data is TINY
    assert run.result["outcome"] == "finished"
    assert "BetaVAE(beta=4.0), data='tiny', seed=0, finished" in repr(run)
    assert list(run.log["step"]) == [3]
    assert {"reconstruction", "kl", "elbo"} < set(run.log.columns)
    assert run.log["kl"].dtype == np.float64
    assert "# beta_vae on tiny" in (run.path / "card.md").read_text()


def test_numpy_in_numpy_out(run: Run) -> None:
    codes = run.encode(IMAGES)
    assert isinstance(codes, np.ndarray)
    assert (codes.shape, codes.dtype.name) == ((6, 4), "float32")
    images = run.decode(codes)
    assert isinstance(images, np.ndarray)
    assert (images.shape, images.dtype.name) == ((6, 1, 32, 32), "float32")
    assert 0 < images.min() < images.max() < 1
    logits = run.logits(codes)
    assert isinstance(logits, np.ndarray)
    assert 1 / (1 + np.exp(-logits)) == pytest.approx(images, abs=1e-6)
    assert np.array_equal(run.reconstruct(IMAGES), images)


def test_torch_in_torch_out(run: Run) -> None:
    images = torch.from_numpy(IMAGES)
    codes = run.encode(images)
    assert isinstance(codes, torch.Tensor)
    assert not codes.requires_grad
    assert np.array_equal(codes.numpy(), run.encode(IMAGES))
    for result in (run.decode(codes), run.logits(codes), run.reconstruct(images)):
        assert isinstance(result, torch.Tensor)
        assert result.shape == (6, 1, 32, 32)
    assert np.array_equal(run.decode(codes).numpy(), run.decode(codes.numpy()))


def test_posteriors_are_gaussians_of_tensors(run: Run) -> None:
    posterior = run.posterior(IMAGES)
    assert posterior.mean.shape == posterior.log_var.shape == (6, 4)
    assert np.array_equal(posterior.mean.numpy(), run.encode(IMAGES))
    assert posterior.kl().shape == (6,)


def test_all_ways_to_write_the_same_images(run: Run) -> None:
    expected = run.encode(IMAGES)
    read_only = IMAGES.copy()
    read_only.flags.writeable = False
    same: list[Any] = [IMAGES / 255, (IMAGES / 255).astype(np.float16), IMAGES > 0, read_only]
    same += [np.asfortranarray(IMAGES), IMAGES[::-1][::-1], (IMAGES / 255).tolist()]
    for images in same:
        assert np.array_equal(run.encode(images), expected)
    assert np.array_equal(run.encode(IMAGES[::-1]), expected[::-1])


def test_batches_of_none_and_of_many(run: Run) -> None:
    assert run.encode(IMAGES[:0]).shape == (0, 4)
    assert run.posterior(IMAGES[:0]).mean.shape == (0, 4)
    assert run.decode(np.zeros((0, 4))).shape == (0, 1, 32, 32)
    assert run.reconstruct(IMAGES[:0]).shape == (0, 1, 32, 32)
    assert run.sample(0).shape == (0, 1, 32, 32)
    many = np.repeat(IMAGES[:2], CHUNK["cpu"] // 2 + 1, axis=0)
    codes = run.encode(many)
    assert codes.shape == (CHUNK["cpu"] + 2, 4)
    assert codes[[0, -1]] == pytest.approx(run.encode(IMAGES[:2]), abs=1e-5)
    assert run.decode(codes)[-1] == pytest.approx(run.decode(codes[-1:])[0], abs=1e-5)


def test_samples_follow_their_seed(run: Run) -> None:
    assert run.sample(5)[:2] == pytest.approx(run.sample(2, seed=0), abs=1e-6)
    assert not np.array_equal(run.sample(2), run.sample(2, seed=1))


def test_bad_images_and_codes_are_refused(run: Run) -> None:
    with pytest.raises(UnweaveError, match=r"images must be \(n, 1, 32, 32\); got \(6, 32, 32, 1\)"):
        run.encode(np.moveaxis(IMAGES, 1, 3))
    with pytest.raises(UnweaveError, match=r"images must be \(n, 1, 32, 32\); got \(1, 32, 32\)"):
        run.reconstruct(torch.from_numpy(IMAGES[0]))
    with pytest.raises(UnweaveError, match=r"uint8, or numbers in \[0, 1\]; these reach from 0 to 255"):
        run.encode(IMAGES.astype(np.float32))
    with pytest.raises(UnweaveError, match=r"these reach from -1 to 1"):
        run.posterior(IMAGES / 127.5 - 1)
    with pytest.raises(UnweaveError, match=r"numbers in \[0, 1\]; these reach from nan"):
        run.encode(np.full((1, 1, 32, 32), np.nan))
    with pytest.raises(UnweaveError, match="images must be an array of numbers; got <U"):
        run.encode(np.array(["images"]))
    with pytest.raises(UnweaveError, match=r"codes must be \(n, 4\); got \(2, 5\)"):
        run.decode(np.zeros((2, 5)))
    with pytest.raises(UnweaveError, match=r"codes must be \(n, 4\); got \(4,\)"):
        run.logits(torch.zeros(4))


def test_a_loaded_run_is_the_same(run: Run) -> None:
    loaded = unweave.load(str(run.path))
    assert loaded.spec == run.spec
    assert np.array_equal(loaded.encode(IMAGES), run.encode(IMAGES))
    assert loaded.log.equals(run.log)


def test_data_that_was_an_object_cannot_be_loaded_by_its_name(run: Run) -> None:
    with pytest.raises(UnweaveError, match=r'given as an object, "tiny" \(made up\), which cannot be opened'):
        _ = unweave.load(run.path).data


def test_named_data_are_opened_again(tmp_path: Path) -> None:
    run = train(tmp_path, "dsprites", batch=2)
    loaded = unweave.load(run.path)
    truth = loaded.data
    assert isinstance(truth, unweave.data.GroundTruth)
    assert truth.source == unweave.data.load("dsprites").source
    images = truth.observe(truth.sample_factors(3, 0))
    assert np.array_equal(loaded.reconstruct(images), run.reconstruct(images))


def test_altered_data_are_not_taken_for_the_data_of_their_name(tmp_path: Path) -> None:
    held_out = hold_out(unweave.data.load("dsprites"), [{"shape": 0}])
    run = train(tmp_path, replace(held_out, name="dsprites"), batch=2)
    with pytest.raises(UnweaveError, match=r"trained on another dsprites .*; drawn uniformly\)\. Recreate"):
        _ = unweave.load(run.path).data
    with pytest.raises(UnweaveError, match='other data of the name "dsprites": data_drawn was'):
        train(tmp_path, "dsprites", batch=2)


def test_own_images_without_factors(tmp_path: Path) -> None:
    own = from_arrays(TINY.observe(TINY.factors_at(np.arange(60))), name="mine")
    run = train(tmp_path, own)
    assert run.encode(IMAGES).shape == (6, 4)
    pictures = draw_pictures(run)
    assert [path.name for path in pictures] == ["reconstructions.png", "traversals.gif", "traversals.png"]
    with pytest.raises(UnweaveError, match='other data of the name "mine": data_source was arrays'):
        train(tmp_path, from_arrays(255 - TINY.observe(TINY.factors_at(np.arange(60))), name="mine"))


def test_pictures_are_drawn_once(run: Run) -> None:
    draw_missing_pictures(run)
    gif = run.path / "pictures" / "traversals.gif"
    gif.write_text("mine")
    draw_missing_pictures(run)
    assert gif.read_text() == "mine"


def test_codes_without_a_prior_are_moved_over_the_range_that_images_have(
    tmp_path: Path, asked: list[Any]
) -> None:
    run = train(tmp_path, method=AE())
    codes = run.encode(IMAGES)
    rows = traversals(run, IMAGES)
    order = [int(label.split()[0].removeprefix("z")) for label, _ in rows]
    assert order == np.argsort(-codes.std(axis=0)).tolist()
    for (label, _), dimension, moved in zip(rows, order, asked, strict=True):
        assert label == f"z{dimension}\ndeviation {codes[:, dimension].std():.2f}"
        ends = np.quantile(codes[:, dimension], [0.025, 0.975])
        assert moved[[0, -1], dimension] == pytest.approx(ends, abs=1e-6)
        others = [other for other in range(4) if other != dimension]
        assert moved[:, others] == pytest.approx(np.tile(codes[0, others], (SHOWN, 1)), abs=1e-6)


def test_content_and_style_are_swapped(tmp_path: Path, asked: list[Any]) -> None:
    run = train(tmp_path, method=MLVAE(content=1))
    images = TINY.observe(TINY.factors_at(np.arange(60)))[:: 60 // (CONTENTS + SHOWN)]
    sheet = labelled_sheet("swaps", swaps(run, images))
    codes = run.encode(images)
    [pairs] = asked
    for row, found in enumerate(np.split(pairs, CONTENTS)):
        assert len(found) == SHOWN - 1
        assert found[:, 0] == pytest.approx(np.full(SHOWN - 1, codes[row, 0]), abs=1e-6)
        assert found[:, 1:] == pytest.approx(codes[CONTENTS : CONTENTS + SHOWN - 1, 1:], abs=1e-6)
    # The first row and column show the images that give style and content, twice as large, 4 pixels apart.
    tiles = np.asarray(sheet)[44:, 190:, 0]
    for row, column, image in (
        (1, 0, 0),
        (CONTENTS, 0, CONTENTS - 1),
        (0, 1, CONTENTS),
        (0, 3, CONTENTS + 2),
    ):
        shown = tiles[row * 68 : row * 68 + 64 : 2, column * 68 : column * 68 + 64 : 2]
        assert np.array_equal(shown, images[image, 0])
    assert "swaps.png" in [path.name for path in draw_pictures(run)]
    whole = train(tmp_path, method=MLVAE(content=4))
    assert "swaps.png" not in [path.name for path in draw_pictures(whole)]


def test_names_of_data_make_no_folders(tmp_path: Path) -> None:
    run = train(tmp_path, replace(TINY, name="../a b/c"))
    assert run.path.parent == tmp_path
    assert run.path.name.startswith("beta_vae-..-a-b-c-seed0-")


def test_the_second_call_opens_the_run(tmp_path: Path) -> None:
    first, second = train(tmp_path), train(tmp_path)
    assert first.path == second.path
    assert len(list(tmp_path.iterdir())) == 1
    assert first.path.stat().st_mtime_ns == second.path.stat().st_mtime_ns


def test_a_diverged_run_says_so(tmp_path: Path) -> None:
    run = train(tmp_path, method=BetaVAE(1e38), learning_rate=1e20, steps=4)
    assert run.result["outcome"] == "diverged"
    assert "diverged" in repr(run)
    assert run.log["kl"].isna().any()
    assert "NaN" not in (run.path / "log.jsonl").read_text()


def test_folders_that_cannot_be_loaded(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"nowhere is not the folder of a run: it has no spec.json"):
        unweave.load(tmp_path / "nowhere")
    unfinished = train(tmp_path)
    (unfinished.path / "weights.safetensors").unlink()
    with pytest.raises(UnweaveError, match=r"has no trained weights: its training has not finished"):
        unweave.load(unfinished.path)
    weights = run.folder.weights()
    name = max((name for name in weights if name.startswith("decoder.")), key=lambda n: weights[n].numel())
    for changed in (weights | {name: weights[name][..., :1]}, {k: weights[k] for k in weights if k != name}):
        write_tensors(unfinished.path / "weights.safetensors", changed)
        with pytest.raises(
            UnweaveError, match=r"does not fit the run's networks, first at .* Delete this file"
        ):
            unweave.load(unfinished.path)
    (unfinished.path / "weights.safetensors").unlink()
    again = train(tmp_path)
    assert again.result["outcome"] == "finished"


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r'a run has no setting "stepz"\. Did you mean "steps"\?'):
        train(tmp_path, stepz=3)
    with pytest.raises(UnweaveError, match=r'there is no data set "dsprits"\. Did you mean'):
        train(tmp_path, "dsprits")
    with pytest.raises(UnweaveError, match='there is no device "gpu"'):
        unweave.train(VAE(), TINY, out=tmp_path, device="gpu", steps=1)
    assert list(tmp_path.iterdir()) == []
