"""Sparse autoencoders: the network, its training, and the trained model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from unweave import UnweaveError
from unweave.metrics import mcc
from unweave.sparse import SparseSpec, load, train
from unweave.sparse.network import PopulationSAE, sparsified
from unweave.sparse.spec import Kind
from unweave.sparse.training import _Training, geometric_median

Floats = NDArray[np.float64]


def planted(n: int = 2000, atoms: int = 12, active: int = 2) -> tuple[Floats, Floats]:
    """Codes that are sums of a few directions of an orthonormal dictionary, and the coefficients."""
    generator = np.random.default_rng(0)
    dictionary = np.linalg.qr(generator.normal(size=(atoms, atoms)))[0]
    order = generator.random((n, atoms)).argsort(axis=1)
    coefficients = generator.uniform(0.5, 1.5, (n, atoms)) * (order < active)
    return coefficients @ dictionary + 3.0, coefficients


@pytest.mark.parametrize("kind", ["topk", "batch_topk", "relu"])
def test_a_planted_dictionary_is_recovered(kind: Kind) -> None:
    codes, coefficients = planted()
    strength = {"l1": 0.1} if kind == "relu" else {"k": 2}
    spec = SparseSpec(12, kind=kind, steps=500, batch=128, learning_rate=1e-2, auxiliary=0.0, **strength)
    # Some seeds end in local optima, which their error tells without knowing the dictionary.
    seeds = train(codes, [replace(spec, seed=seed) for seed in range(4)], device="cpu")
    model = min(seeds, key=lambda model: model.unexplained(codes))
    features = model.encode(codes)
    assert mcc(features, coefficients).score > 0.99
    assert model.unexplained(codes) < 0.02
    assert (features > 0).sum(axis=1).mean() == pytest.approx(2, abs=0.1)
    np.testing.assert_allclose(np.linalg.norm(model.directions, axis=1), 1, rtol=1e-5)
    assert features.min() == 0
    # In the units of the codes: feature times direction, and nothing else, is what is added.
    bias = model.network.bias.numpy()
    np.testing.assert_allclose(model.decode(features), features @ model.directions + bias, atol=1e-4)
    error = np.square(model.decode(features) - codes).sum() / np.square(codes - codes.mean(axis=0)).sum()
    assert model.unexplained(codes) == pytest.approx(error, rel=1e-3)


def test_only_the_largest_activations_stay() -> None:
    before = torch.tensor([[[3.0, -1.0, 2.0, 1.0], [-1.0, -2.0, -3.0, 5.0]]]).repeat(2, 1, 1)
    topk = sparsified(before, "topk", torch.tensor([1, 3]), 3)
    assert topk[0].tolist() == [[3, 0, 0, 0], [0, 0, 0, 5]]
    assert topk[1].tolist() == [[3, 0, 2, 1], [0, 0, 0, 5]]
    batch = sparsified(before, "batch_topk", torch.tensor([1, 2]), 2)
    assert batch[0].tolist() == [[3, 0, 0, 0], [0, 0, 0, 5]]
    assert batch[1].tolist() == [[3, 0, 2, 1], [0, 0, 0, 5]]
    assert torch.equal(sparsified(before, "relu", torch.tensor([4, 4]), 4), before.clamp(min=0))


def test_a_model_is_the_same_alone_and_in_a_population() -> None:
    codes, _ = planted(300)
    one = SparseSpec(20, k=3, steps=60, batch=32, dead_after=200)
    specs = [
        replace(one, seed=4, k=2, learning_rate=5e-3),
        one,
        replace(one, features=9),
        replace(one, kind="batch_topk"),
        replace(one, kind="relu", k=None, l1=0.05),
        replace(one, kind="relu", k=None, l1=0.2, auxiliary=0.0),
    ]
    together = train(codes, specs, device="cpu")
    for spec, model in zip(specs, together, strict=True):
        assert model.spec == spec
        alone = train(codes, spec, device="cpu")
        np.testing.assert_allclose(model.directions, alone.directions, atol=2e-4)
        np.testing.assert_allclose(model.encode(codes), alone.encode(codes), atol=2e-3)
        assert model.log[-1] == pytest.approx(alone.log[-1], rel=1e-3, abs=1e-3)


def test_the_loss_and_its_gradient_are_those_of_the_formula() -> None:
    """One step of a model of one feature, worked out by hand."""
    spec = SparseSpec(1, kind="relu", l1=0.5, batch=4, auxiliary=0.0)
    training = _Training([spec], torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    network = training.network
    with torch.no_grad():
        network.encoder.copy_(torch.tensor([[[0.5], [0.0]]]))
        network.decoder.copy_(torch.tensor([[[0.6, 0.8]]]))
        network.bias.zero_()
        network.shift.fill_(0.1)
    terms = training.losses(torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]]))
    # The features are 0.6 and 0, so the errors are (1 - 0.36, -0.48) and (-1, 0).
    assert terms["reconstruction"].item() == pytest.approx((0.64**2 + 0.48**2 + 1) / 2)
    assert terms["l1"].item() == pytest.approx(0.3)
    loss = terms["reconstruction"] + spec.l1 * terms["l1"]
    gradient = torch.autograd.grad(loss.sum(), [network.shift, network.decoder])
    # By the first feature: (-2 error . direction + l1) / 2, where error . direction is 0.
    assert gradient[0].item() == pytest.approx(0.25, abs=1e-6)
    np.testing.assert_allclose(gradient[1][0, 0], [-0.6 * 0.64, 0.6 * 0.48], atol=1e-6)


def test_updates_keep_directions_at_unit_norm() -> None:
    codes, _ = planted(200)
    training = _Training([SparseSpec(8, k=2, batch=16)], torch.from_numpy(codes).float())
    for _ in range(5):
        training.update(1.0)
    norms = training.network.decoder.norm(dim=-1)
    assert torch.allclose(norms, torch.ones_like(norms), atol=1e-6)


def test_the_initial_reconstruction_has_the_norm_of_its_input() -> None:
    network = PopulationSAE([SparseSpec(64, k=8), SparseSpec(64, k=2, seed=1)], 10)
    drawn = torch.randn(2, 500, 10, generator=torch.Generator().manual_seed(0))
    inputs = torch.nn.functional.normalize(drawn, dim=-1)
    sizes = network.decode(network.encode(inputs).features).norm(dim=-1).mean(dim=1)
    assert sizes.tolist() == pytest.approx([1, 1], abs=0.05)


def test_the_auxiliary_loss_lets_dead_features_explain_the_error() -> None:
    """Feature 1 is dead: it would fire with 0.5, and point along the error (0, 1) of feature 0."""
    training = _Training([SparseSpec(3, k=1, dead_after=10)], torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
    network = training.network
    with torch.no_grad():
        network.encoder.copy_(torch.tensor([[[1.0, 0.0, 0.9], [0.0, 0.5, 0.0]]]))
        network.decoder.copy_(torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]))
        network.bias.zero_()
    x = torch.tensor([[[1.0, 1.0]]])
    assert training.losses(x)["auxiliary"].item() == 0
    training.silent[0, 1] = 10
    auxiliary = training.losses(x)["auxiliary"]
    assert auxiliary.item() == pytest.approx(0.5**2)
    (gradient,) = torch.autograd.grad(auxiliary.sum(), [network.encoder])
    # d (1 - f)^2 / df = -1 for the second dimension of the code; features that are alive are left alone.
    np.testing.assert_allclose(gradient[0], [[0, -1, 0], [0, -1, 0]], atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_gives_the_same_model() -> None:
    codes, _ = planted(300)
    specs = [SparseSpec(16, k=2, steps=20, batch=32), SparseSpec(16, kind="relu", l1=0.1, steps=20, batch=32)]
    for first, second in zip(
        train(codes, specs, device="cpu"), train(codes, specs, device="cuda"), strict=True
    ):
        np.testing.assert_allclose(first.directions, second.directions, atol=2e-3)


def test_codes_in_other_units_give_features_in_other_units() -> None:
    codes, _ = planted(300)
    spec = SparseSpec(16, k=2, steps=40, batch=32)
    first, second = (train(x, spec, device="cpu") for x in (codes, 50 * codes - 7))
    np.testing.assert_allclose(second.encode(50 * codes - 7), 50 * first.encode(codes), atol=0.1)
    assert second.unexplained(50 * codes - 7) == pytest.approx(first.unexplained(codes), rel=1e-2)


def test_features_can_be_sparse_arrays() -> None:
    codes, _ = planted(100)
    model = train(codes, SparseSpec(16, k=2, steps=0), device="cpu")
    dense, sparse = model.encode(codes), model.encode(codes, sparse=True)
    assert isinstance(sparse, csr_array)
    assert sparse.nnz == 200
    np.testing.assert_array_equal(sparse.toarray(), dense)
    np.testing.assert_array_equal(model.decode(sparse), model.decode(dense))


def test_one_code_is_encoded_like_many_and_none_like_one() -> None:
    codes, _ = planted(20)
    model = train(codes, SparseSpec(16, k=2, steps=0), device="cpu")
    for rows in (1, 0):
        np.testing.assert_allclose(model.encode(codes[:rows]), model.encode(codes)[:rows], rtol=1e-5)
        assert model.encode(codes[:rows], sparse=True).shape == (rows, 16)


def test_batches_in_which_no_feature_fires_set_no_threshold() -> None:
    """In batches of one code, both of two features are often negative."""
    codes, _ = planted(200)
    spec = SparseSpec(2, k=1, kind="batch_topk", steps=1, batch=1)
    model = train(codes, spec, device="cpu")
    assert 0 < float(model.network.threshold) < np.inf
    fires = (model.encode(codes) > 0).any(axis=1)
    assert 0 < fires.mean() < 1


def test_a_model_can_be_saved(tmp_path: Path) -> None:
    codes, _ = planted(100)
    model = train(codes, SparseSpec(16, k=2, kind="batch_topk", steps=3, batch=16), device="cpu")
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert (loaded.spec, loaded.log) == (model.spec, model.log)
    np.testing.assert_array_equal(loaded.encode(codes), model.encode(codes))
    (tmp_path / "other").write_text("text")
    for name in ("other", "missing"):
        with pytest.raises(UnweaveError, match=r"must be a file that SparseAutoencoder\.save wrote"):
            load(tmp_path / name)


def test_the_geometric_median_is_not_moved_by_outliers() -> None:
    """For an odd number of points on a line it is the median."""
    line = torch.tensor([[0.0, 0], [1, 0], [2, 0], [3, 0], [1000, 0]])
    assert geometric_median(line).tolist() == pytest.approx([2, 0], abs=0.05)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"features": 0, "k": 1}, "features must be a whole number >= 1; got 0."),
        ({"features": 4}, 'kind "topk" needs k, how many features are active; got none.'),
        ({"features": 4, "k": 5}, "k must be at most the 4 features; got k=5."),
        ({"features": 4, "k": 1, "l1": 0.1}, 'l1 belongs to kind "relu"; got l1=0.1 with kind "topk".'),
        ({"features": 4, "kind": "relu"}, 'kind "relu" needs l1 > 0 and no k; got l1=0, k=None.'),
        ({"features": 4, "kind": "top_k", "k": 1}, 'Did you mean "topk"?'),
        ({"features": 4, "k": 1, "learning_rate": float("nan")}, "learning_rate must be a number >= 0"),
        ({"features": 4, "k": 1, "auxiliary": "x"}, "auxiliary must be a number >= 0; got 'x'."),
        ({"features": 4, "k": 1, "seed": -1}, "seed must be a whole number >= 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UnweaveError) as error:
        SparseSpec(**settings)  # type: ignore[arg-type]
    assert sentence in str(error.value)


def test_bad_arrays_are_refused() -> None:
    spec = SparseSpec(4, k=1, steps=0)
    model = train(np.eye(3), spec, device="cpu")
    for call, sentence in (
        (lambda: train(np.ones((5, 2)), spec), "codes must differ from each other; all rows are the same."),
        (lambda: train(np.full((5, 2), np.nan), spec), "codes must be finite"),
        (lambda: train(np.eye(3), []), "train takes a SparseSpec, or a list of one or more"),
        (
            lambda: model.encode(np.eye(2)),
            "codes must be (n, 3) like those that were trained on; got (2, 2).",
        ),
        (lambda: model.encode(np.full((1, 3), np.inf)), "codes must be finite"),
        (lambda: model.decode(np.eye(2)), "features must be (n, 4); got (2, 2)."),
    ):
        with pytest.raises(UnweaveError) as error:
            call()
        assert sentence in str(error.value)
