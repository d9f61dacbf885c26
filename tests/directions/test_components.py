"""Directions by the distribution of codes: against NumPy's SVD, analytic cases, and known sources."""

import numpy as np
import pytest

import unweave
from directions.mixed import FACTORS, ROTATED, SOURCES, UNEQUAL, Floats, rotation
from unweave.directions import components, ganspace, ica, pca
from unweave.errors import UnweaveError
from unweave.streams import Stream


def scores(codes: Floats) -> tuple[float, float]:
    """MIG and DCI disentanglement."""
    measured = unweave.evaluate(codes, FACTORS, metrics="mig, dci", points=(900, 450))
    return measured["mig"], measured["dci.disentanglement"]


def test_principal_components_are_those_of_the_svd() -> None:
    codes = Stream.of(3).normal(200, 5) @ Stream.of(4).normal(5, 5) + 7
    found = pca(codes, 3)
    _, values, vectors = np.linalg.svd(codes - codes.mean(axis=0))
    assert np.abs(found.directions @ vectors[:3].T) == pytest.approx(np.eye(3), abs=1e-9)
    assert found.explained == pytest.approx((values**2 / (values**2).sum())[:3])
    assert found.mean == pytest.approx(codes.mean(axis=0))
    assert found.codes(codes).var(axis=0) == pytest.approx(values[:3] ** 2 / 200)


def test_principal_components_of_a_known_covariance() -> None:
    # Four points at 3 and -3 on one axis, 1 and -1 on the other, turned by 30 degrees.
    turn = np.array([[np.cos(np.pi / 6), np.sin(np.pi / 6)], [-np.sin(np.pi / 6), np.cos(np.pi / 6)]])
    found = pca(np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]]) @ turn)
    assert found.directions == pytest.approx(turn)
    assert found.explained == pytest.approx([0.9, 0.1])
    assert found.word == "read:pca2-n4"


def test_wide_codes_are_decomposed_at_random_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Stream.of(3).normal(60, 40) * 0.8 ** np.arange(40)
    exact = pca(codes, 3)
    monkeypatch.setattr(components, "WIDE", 30)
    found = pca(codes, 3, seed=5)
    assert found.explained == pytest.approx(exact.explained, rel=1e-6)
    assert found.directions == pytest.approx(exact.directions, abs=1e-4)
    assert found.word == "read:pca3-n60-seed5"


def test_independent_components_undo_a_rotation() -> None:
    found = ica(ROTATED, seed=2)
    recovered = found.codes(ROTATED)
    correlations = np.abs(np.corrcoef(recovered.T, SOURCES.T)[:3, 3:])
    assert np.sort(correlations, axis=0)[-1] == pytest.approx(np.ones(3), abs=0.01)
    assert recovered.var(axis=0) == pytest.approx(np.ones(3))
    assert found.explained.sum() == pytest.approx(1)
    assert found.fitted.remark == ""
    assert (found.directions == ica(ROTATED, seed=2).directions).all()
    (mig_before, dci_before), (mig_after, dci_after) = scores(ROTATED), scores(recovered)
    assert dci_before < 0.6
    assert dci_after > 0.95
    assert mig_after > mig_before + 0.3


def test_principal_components_undo_a_rotation_if_variances_differ() -> None:
    before, after = scores(UNEQUAL), scores(np.asarray(pca(UNEQUAL).codes(UNEQUAL)))
    assert before[1] < 0.6
    assert after[1] > 0.95
    assert after[0] > before[0] + 0.3


def test_a_fit_that_did_not_converge_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "ROUNDS", 1)
    found = ica(Stream.of(0).normal(300, 3))
    assert "did not converge" in found.fitted.remark
    assert found.note.endswith("have no independent components.")


def test_directions_of_latents_follow_the_components_of_activations() -> None:
    latents = Stream.of(5).normal(4000, 3)
    turn = rotation(3)
    # The layer stretches the rows of `turn`, and embeds them in ten dimensions without changing lengths.
    activations = latents @ turn.T * [4.0, 2.0, 1.0] @ rotation(10, 2)[:3]
    found = ganspace(activations, latents)
    assert np.abs(found.directions @ turn.T) == pytest.approx(np.eye(3), abs=0.06)
    assert np.linalg.norm(found.directions, axis=1) == pytest.approx(np.ones(3))
    assert found.explained == pytest.approx([16 / 21, 4 / 21, 1 / 21], abs=0.02)
    # The authors solve the same regression with the uncentred latents.
    centred = activations - activations.mean(axis=0)
    vectors = np.linalg.svd(centred, full_matrices=False)[2][:3]
    theirs = np.linalg.lstsq(centred @ vectors.T, latents)[0]
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert np.abs((found.directions * theirs).sum(axis=1)) == pytest.approx(np.ones(3), abs=1e-9)


@pytest.mark.parametrize("width", [12, components.WIDE + 1])
def test_activations_may_vary_in_more_directions_than_latents_have(width: int) -> None:
    """As those of every layer behind a nonlinear one; without `k` there are as many directions as latents."""
    latents = Stream.of(5).normal(400, 3)
    activations = np.tanh(latents @ Stream.of(6).normal(3, width))
    found = ganspace(activations, latents)
    assert found.directions.shape == (3, 3)
    few = ganspace(activations, latents, 2)
    assert np.abs((few.directions * found.directions[:2]).sum(axis=1)) == pytest.approx([1, 1], abs=1e-6)


def test_a_flat_direction_is_left_out_or_refused() -> None:
    flat = SOURCES @ np.array([[1.0, 0, 1], [0, 1, 1], [0, 0, 0]])
    assert len(pca(flat)) == len(ica(flat)) == 2
    with pytest.raises(UnweaveError, match=r"codes vary in 2 directions only; got k = 3\. Ask for at most 2"):
        pca(flat, 3)


@pytest.mark.parametrize(
    ("codes", "k", "message"),
    [
        (ROTATED, 4, "k must be a whole number from 1 to 3, because codes are (1500, 3); got 4."),
        (ROTATED, 0, "k must be a whole number from 1 to 3"),
        (ROTATED[:3], 3, "k must be a whole number from 1 to 2"),
        (np.ones((5, 2)), None, "codes must differ from each other; all rows are the same."),
        (np.full((5, 2), np.nan), None, "codes must be finite"),
        (np.ones(5), None, "codes must be (n, d); got (5,)."),
    ],
)
def test_what_has_no_directions_is_refused(codes: Floats, k: int | None, message: str) -> None:
    for method in (pca, ica):
        with pytest.raises(UnweaveError) as caught:
            method(codes, k)
        assert str(caught.value).startswith(message)


def test_activations_and_latents_must_belong_together() -> None:
    with pytest.raises(UnweaveError, match=r"latents must have 1500 rows like activations; got 4\."):
        ganspace(ROTATED, ROTATED[:4])
    with pytest.raises(UnweaveError, match="k must be a whole number from 1 to 2, because latents have 2"):
        ganspace(ROTATED, ROTATED[:, :2], 3)
    with pytest.raises(UnweaveError, match="activations do not depend linearly on latents"):
        ganspace(ROTATED, np.concatenate([ROTATED, ROTATED], axis=1) * 0)
