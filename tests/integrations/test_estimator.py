"""The transformer of scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from sklearn.utils.estimator_checks import check_estimator  # type: ignore[import-untyped]

from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.integrations import DisentanglingTransformer
from unweave.methods import VAE

SMALL = f"{Path(__file__).with_name('small_architecture.py')}:SMALL"
QUICK = DisentanglingTransformer(
    VAE(), latents=2, steps=1, batch=8, architecture=SMALL, device="cpu", random_state=0
)


@pytest.mark.filterwarnings("ignore:Skipping check")  # of the array API, which SciPy has switched off
def test_the_checks_of_scikit_learn_pass() -> None:
    failures = [
        f"{check['check_name']}: {check['exception']!r}"
        for check in check_estimator(clone(QUICK), on_fail=None)
        if check["status"] not in ("passed", "skipped")
    ]
    assert failures == []


def test_codes_and_their_inverse() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 6))
    pipeline = make_pipeline(StandardScaler(), clone(QUICK))
    codes = pipeline.fit_transform(rows)
    assert codes.shape == (30, 2)
    assert list(pipeline.get_feature_names_out()) == [
        "disentanglingtransformer0",
        "disentanglingtransformer1",
    ]
    fitted = pipeline[-1]
    decoded = fitted.inverse_transform(codes)
    assert decoded.shape == rows.shape
    assert fitted.minimum_ <= decoded.min() <= decoded.max() <= fitted.maximum_
    with pytest.raises(UnweaveError, match=r"codes must be \(n, 2\); got \(30, 6\)"):
        fitted.inverse_transform(rows)


def test_images_by_their_shape() -> None:
    images = TINY.sample_images(20, 0)
    of_images = clone(QUICK).fit_transform(images)
    rows = images.reshape(20, -1)
    of_rows = clone(QUICK).set_params(image_shape=(1, 32, 32)).fit_transform(rows)
    assert np.array_equal(of_images, of_rows)
    with pytest.raises(
        UnweaveError, match=r"image_shape must be \(c, h, w\) of 1024 features; got \(1, 8, 8\)"
    ):
        clone(QUICK).set_params(image_shape=(1, 8, 8)).fit(rows)


def test_diverged_training_is_an_error() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 6))
    with pytest.raises(UnweaveError, match=r"training diverged after \d+ steps. Use a lower learning_rate"):
        clone(QUICK).set_params(steps=300, learning_rate=1e30).fit(rows)


def test_a_code_is_learned() -> None:
    """One factor moves all columns of a row: its place is in the codes of a VAE."""
    factor = np.random.default_rng(0).uniform(-1, 1, 400)
    rows = 1 / (1 + np.exp(-4 * np.outer(factor, [1, -1, 1, -1, 1, -1])))
    settings = {"steps": 300, "batch": 64, "latents": 1, "learning_rate": 1e-2}
    codes = clone(QUICK).set_params(method="ae", **settings).fit_transform(rows)
    assert abs(np.corrcoef(codes[:, 0], factor)[0, 1]) > 0.9
