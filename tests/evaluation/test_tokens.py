"""Codes of tokens (n, k, d): each token is a block of numbers, and scores of single numbers are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from command_line import run_here
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import source_of
from unweave.metrics import metric_named
from unweave.streams import Stream

FACTORS = Stream.of(0).integers(600, [3, 4])
POINTS = (400, 200)
# Token 0 has the first factor and token 1 the second, each spread over its three numbers.
TOKENS = np.stack(
    [
        FACTORS[:, [j]] * np.array([[1.0, -1.0, 0.5]]) + 0.1 * Stream.of(j + 1).normal(600, 3)
        for j in range(2)
    ],
    axis=1,
)
MIXED = TOKENS + TOKENS[:, ::-1]  # both tokens have both factors


QUICK = replace(metric_named("block_mig"), options={"updates": 100})


def test_tokens_are_blocks() -> None:
    scores, mixed = (
        unweave.evaluate(codes, FACTORS, metrics=[QUICK], points=POINTS) for codes in (TOKENS, MIXED)
    )
    assert scores["block_mig"] > 0.9
    assert mixed["block_mig"] < 0.2
    flat, stated = TOKENS.reshape(600, 6), {"a": [0, 1, 2], "b": [3, 4, 5]}
    same = unweave.evaluate(flat, FACTORS, metrics=[QUICK], points=POINTS, blocks=stated)
    assert scores["block_mig"] == same["block_mig"]
    assert scores.code_names == ("token0.0", "token0.1", "token0.2", "token1.0", "token1.1", "token1.2")


def test_blocks_name_tokens_and_test_data_have_tokens_too() -> None:
    three = np.concatenate([TOKENS, TOKENS[:, :1]], axis=1)
    source = source_of(
        three[:400],
        Effort(),
        factors=FACTORS[:400],
        test=(three[400:], FACTORS[400:]),
        blocks={"first": [0, 2], "second": [1]},
    )
    assert source.blocks == {"first": (0, 1, 2, 6, 7, 8), "second": (3, 4, 5)}
    assert source.sample((100, 50), "mean", Stream.of(0)).test_codes.shape == (50, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics": "mig"},
            "mig cannot be measured here: it measures single numbers, and these codes are 2",
        ),
        ({"blocks": {"a": [0], "b": [2]}}, 'must name tokens from 0 to 1; block "b" has 2.'),
        ({"blocks": {"a": [0, 1], "b": [1]}}, "must name different tokens; got {'a': (0, 1), 'b': (1,)}."),
        (
            {"log_var": np.zeros((600, 6))},
            "log_var must have the shape (n, 2, 3), like the codes; got (600, 6).",
        ),
        ({"test": (TOKENS[:9, :1], FACTORS[:9])}, "test codes must have the shape (n, 2, 3)"),
    ],
)
def test_what_does_not_fit_tokens_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError) as caught:
        unweave.evaluate(TOKENS, FACTORS, points=POINTS, **options)
    assert message in str(caught.value)


def test_a_suite_without_scores_of_blocks_gives_those_of_blocks() -> None:
    """So that `evaluate(tokens, factors)` measures something, with a note on what was left out."""
    scores = unweave.evaluate(TOKENS, FACTORS, points=(100, 50))
    assert scores["block_mig"] > 0.7
    assert dict(scores) == dict(unweave.evaluate(TOKENS, FACTORS, metrics="blocks", points=(100, 50)))
    [note] = [note for note in scores.notes if "were left out" in note]
    assert note.startswith("beta_vae_score, factor_vae_score, mig, dci, sap, modularity and explicitness")
    assert "or evaluate(codes.reshape(len(codes), -1), factors) to measure each number" in note


def test_an_encoder_of_tokens_says_what_to_do() -> None:
    def encode(images: Any) -> Any:
        return np.zeros((len(images), 2, 3))

    with pytest.raises(UnweaveError, match="pass codes of tokens"):
        unweave.evaluate(encode, data=TINY, metrics="mig", points=(20, 10))


def test_the_command_reads_tokens(tmp_path: Path) -> None:
    np.savez(tmp_path / "tokens.npz", codes=TOKENS, factors=FACTORS)
    done = run_here("evaluate", tmp_path / "tokens.npz", "--metrics", "mig")
    assert done.returncode == 2
    assert "these codes are 2 tokens of 3 numbers" in done.stderr
