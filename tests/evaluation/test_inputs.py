"""Codes, factors and encoders as people have them: data frames, words, tensors, functions for either."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

import unweave
from metrics.grids import drawn, noise
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation import Score, Scores

FACTORS = drawn((4, 5), 300)
CODES = FACTORS + 0.4 * noise(300, 2)
WORDS = np.array(["box", "cone", "disc", "star"])
FRAME = pd.DataFrame({"shape": WORDS[FACTORS[:, 0]], "x": FACTORS[:, 1]})
METRICS = "mig, sap, dci_lasso, factor_vae_score"
PLAIN = dict(unweave.evaluate(CODES, FACTORS, metrics=METRICS))


@pytest.mark.parametrize(
    "factors",
    [
        FRAME,
        FRAME.astype({"shape": "category", "x": "Int64"}),
        FRAME.astype({"shape": "string", "x": "float32"}),
        FRAME.astype({"shape": pd.CategoricalDtype(list(WORDS), ordered=True)}),
        FRAME.to_numpy(),
        FRAME.to_numpy().tolist(),
        {"shape": FRAME["shape"], "x": FRAME["x"].tolist()},
        FACTORS.astype(str),
        torch.tensor(FACTORS),
        torch.tensor(FACTORS, dtype=torch.bfloat16),
    ],
    ids=["frame", "category", "string", "ordered", "objects", "lists", "dict", "words", "tensor", "bfloat16"],
)
def test_factors_of_any_kind_have_the_scores_of_numbers(factors: Any) -> None:
    assert dict(unweave.evaluate(CODES, factors, metrics=METRICS)) == PLAIN


def test_ordered_categories_keep_their_order() -> None:
    sizes = pd.CategoricalDtype(["small", "large", "huge", "vast"], ordered=True)
    frame = FRAME.assign(shape=pd.Series(np.array(sizes.categories)[FACTORS[:, 0]], dtype=sizes))
    assert dict(unweave.evaluate(CODES, frame, metrics=METRICS)) == PLAIN


@pytest.mark.parametrize(
    "codes",
    [
        torch.tensor(CODES, requires_grad=True),
        pd.DataFrame(CODES),
        {"a": CODES[:, 0], "b": CODES[:, 1]},
        CODES.tolist(),
    ],
    ids=["tensor", "frame", "dict", "lists"],
)
def test_codes_of_any_kind_have_the_same_scores(codes: Any) -> None:
    assert dict(unweave.evaluate(codes, FACTORS, metrics=METRICS)) == PLAIN


def test_tensors_of_short_precision_are_codes_of_metrics_too() -> None:
    short = torch.tensor(CODES).bfloat16()
    assert unweave.metrics.mig(short, FACTORS) == unweave.metrics.mig(short.float().numpy(), FACTORS)
    assert dict(unweave.evaluate(short, FACTORS, metrics="mig"))


def with_shape(cell: Any) -> pd.DataFrame:
    """The frame with another first cell in the column of shapes."""
    cells: list[Any] = [cell, *FRAME["shape"][1:]]
    return FRAME.assign(shape=pd.Series(cells, dtype=object))


def test_names_of_columns_are_kept_in_scores_plots_and_errors() -> None:
    codes = pd.DataFrame(CODES, columns=["first", "second"])
    scores = unweave.evaluate(codes, FRAME, metrics="mig, dci")
    assert scores.factors == ("shape", "x")
    assert scores.codes == ("first", "second")
    assert scores.matrix("importance").loc["first", "shape"] == scores.matrices["importance"][0, 0]
    [axes, _] = scores.plot().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["shape", "x"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]
    assert Scores.from_dict(scores.to_dict()).codes == ("first", "second")
    old = {name: value for name, value in scores.to_dict().items() if name != "codes"}
    assert Scores.from_dict(old).code_names == ("z0", "z1")
    with pytest.raises(UnweaveError, match='factor "one" is 1 everywhere'):
        unweave.evaluate(codes, FRAME.assign(one=1), metrics="mig")
    assert unweave.evaluate(codes, FRAME["shape"], metrics="mig").factors == ("shape",)


def test_test_data_are_numbered_like_the_rest() -> None:
    test = (CODES[:90], FRAME[:90][["x", "shape"]])  # another order of the columns
    plain = unweave.evaluate(CODES, FACTORS, test=(CODES[:90], FACTORS[:90]), metrics="sap, dci_lasso")
    assert dict(unweave.evaluate(CODES, FRAME, test=test, metrics="sap, dci_lasso")) == dict(plain)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (with_shape(None), 'factor "shape" has no value in 1 of 300 rows'),
        (
            with_shape(3),
            'factor "shape" must hold either numbers or words; it',
        ),
        (with_shape(object()), 'factor "shape" must hold either numbers or words; it holds object, str'),
        (FRAME.sample(frac=1, random_state=0), "the same row labels in another order"),
        (pd.concat([FRAME, FRAME], axis=1), 'column names must be unique; "shape" occurs 2 times'),
        ({"a": [1, 2], "b": [1]}, r"the columns of factors must be of shape \(n,\), all of one length"),
        ({}, "factors must have at least one column; got none"),
        ("words", "factors must be an array"),
        (FACTORS[:, 0], r"factors must be \(n, k\); got \(300,\)"),
        (
            FRAME.assign(day=pd.date_range("2020", periods=300)),
            'factor "day" must hold numbers .* dates or times',
        ),
        ({"wait": pd.to_timedelta(range(300), "s")}, 'factor "wait" must hold numbers .* dates or times'),
        ({"x": [1.0, 2.0] + 298 * [np.nan]}, "known in 2 rows only, and 3 are needed; leave that column out"),
        ([[1], [1, 2]], "got rows of different lengths"),
    ],
)
def test_bad_factors_are_one_sentence(factors: Any, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        unweave.evaluate(pd.DataFrame(CODES), factors, metrics="mig")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": 3}, 'metrics are a text such as "mig, dci"'),
        ({"metrics": None}, "got None"),
        ({"points": 100}, "points are two whole numbers, how many to train and to test on"),
        ({"points": (1.5, 2)}, r"got \(1.5, 2\)"),
        ({"points": (0, 2)}, r"got \(0, 2\)"),
        ({"repeats": 1.5}, "repeats must be a whole number, 0 or more; got 1.5"),
        ({"jobs": 0}, "jobs must be a whole number, 1 or more, or None; got 0"),
        ({"seed": "a"}, "seed must be a whole number"),
        ({"data": "dsprites"}, "give either factors or data"),
        ({"test": CODES}, r"test must be a pair \(codes, factors\); got ndarray"),
        ({"test": (CODES, FACTORS[:, :1])}, "test must have 2 factors like the rest; got 1"),
        ({"test": (CODES[:, :1], FACTORS)}, "test must have 2 codes like the rest; got 1"),
        ({"log_var": CODES[:9]}, r"log_var must be \(300, 2\) like codes; got \(9, 2\)"),
    ],
)
def test_bad_options_are_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        unweave.evaluate(CODES, FACTORS, **options)


@pytest.mark.parametrize(
    ("subject", "options", "message"),
    [
        (CODES, {}, r"codes need their factors: evaluate\(codes, factors\)"),
        (
            [[1.0], [1.0, 2.0]],
            {"factors": FACTORS},
            r"codes must be an array \(n, d\); got rows of different len",
        ),
        (
            np.ma.masked_less(CODES, CODES.mean()),
            {"factors": FACTORS},
            "codes must be finite; .* values are NaN",
        ),
        (None, {"data": TINY}, "what is to be evaluated must be .* got NoneType"),
        (np.tanh, {"factors": FACTORS}, "factors belong to codes"),
        (np.tanh, {"data": np.zeros((9, 8, 8))}, "data must be the name of a data set, .* got ndarray"),
        (np.tanh, {"data": 3}, "got int"),
        (np.tanh, {"data": "dsprite"}, 'Did you mean "dsprites"'),
        (np.tanh, {"data": TINY, "test": (CODES, FACTORS)}, "log_var and test belong to codes"),
        ("runs/none", {}, "runs/none is not there"),
        (Path(__file__), {}, r"test_inputs\.py is another file"),
    ],
)
def test_bad_subjects_are_one_sentence(subject: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        unweave.evaluate(subject, **options)


def test_the_folder_of_a_run_stands_for_the_run(tmp_path: Path) -> None:
    run = unweave.train(unweave.methods.VAE(), TINY, out=tmp_path, steps=2, batch=4, latents=3, device="cpu")
    expected = dict(unweave.evaluate(run, metrics="mig", points=(60, 30)))
    for path in (run.path, str(run.path)):
        assert dict(unweave.evaluate(path, data=TINY, metrics="mig", points=(60, 30))) == expected


def numpy_only(images: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(images.reshape(len(images), -1)[:, ::300].astype(np.float32))


def torch_only(images: torch.Tensor) -> torch.Tensor:
    assert not torch.is_grad_enabled()
    return images.flatten(1)[:, ::300].clone().requires_grad_()


def test_functions_get_the_kind_of_array_that_they_take() -> None:
    options: dict[str, Any] = {"data": TINY, "metrics": "mig, factor_vae_score", "points": (60, 30)}
    expected = dict(unweave.evaluate(numpy_only, **options))
    assert dict(unweave.evaluate(torch_only, **options)) == pytest.approx(expected, abs=1e-6)
    kinds = []

    def counting(images: Any) -> Any:
        kinds.append(type(images).__name__)
        return images.permute(0, 1, 3, 2).flatten(1)[:, :3]

    source = unweave.evaluation.sources.GroundTruthSource(
        unweave.evaluation.encoders.encoder_of(counting), TINY
    )
    for seed in range(3):
        source.sample((5, 4), "mean", unweave.Stream.of(seed))
    assert kinds == ["ndarray", "Tensor", "Tensor", "Tensor"]  # decided once


def test_an_encoder_that_fails_is_one_sentence_with_its_own_error() -> None:
    def broken(images: Any) -> Any:
        raise RuntimeError(f"no model for {type(images).__name__}\nsecond line")

    with pytest.raises(UnweaveError) as raised:
        unweave.evaluate(broken, data=TINY)
    assert str(raised.value) == (
        "the encoder broken failed on images of shape (60, 1, 32, 32), float32 in [0, 1]. As a NumPy array: "
        "RuntimeError: no model for ndarray. As a torch tensor: RuntimeError: no model for Tensor."
    )
    with pytest.raises(UnweaveError, match=r"the encoder Linear failed on float32 tensors \(60, 1, 32, 32\)"):
        unweave.evaluate(torch.nn.Linear(3, 2), data=TINY)

    class Unfitted:
        def transform(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
            raise ValueError(f"not fitted for {rows.shape[1]} columns")

    with pytest.raises(
        UnweaveError, match=r"the encoder Unfitted failed on float64 rows .*: not fitted for 1024 columns\."
    ):
        unweave.evaluate(Unfitted(), data=TINY)


def test_scores_are_a_table_in_a_notebook() -> None:
    scores = Scores(
        "runs/<b>",
        "mean",
        (Score("mig", "mig[bins20,mean]", "mean", 0.25, 0.2, 0.3), Score("sap", "sap[x]", "mean", 0.5)),
        points=(40, 20),
        notes=("elbo was left out: <no> run.",),
    )
    html = scores._repr_html_()
    assert "<b>runs/&lt;b&gt;, mean codes, 40 + 20 points</b>" in html
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells == ["mig", "0.2500", "0.2000 to 0.3000", "mig[bins20,mean]", "sap", "0.5000", "", "sap[x]"]
    assert html.endswith("<div>elbo was left out: &lt;no&gt; run.</div>")
    once = unweave.evaluate(CODES, FACTORS, metrics="mig")._repr_html_()
    assert "repeats" not in once
