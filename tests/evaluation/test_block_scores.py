"""Block scores of runs: the factors that content should hold, and judges of decoded images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unweave
from training.tiny import TINY
from unweave.data import load
from unweave.data.supervision import only
from unweave.errors import UnweaveError
from unweave.evaluation import judges
from unweave.methods import (
    GVAE,
    LORD,
    M2,
    MLVAE,
    VAE,
    AAEClusters,
    AAELabels,
    AdversarialSplit,
    DrNet,
)
from unweave.methods.method import Method
from unweave.metrics import metric_named
from unweave.runs.spec import RunSpec
from unweave.runs.views import content_factors

FACTORS = unweave.Stream.of(0).integers(900, [2, 3])
BLOCKS = {"content": [0], "style": [1]}
STEPS = 100  # of a judge


def test_blocks_and_their_factors_are_named() -> None:
    named = {"shape": FACTORS[:, 0], "size": FACTORS[:, 1]}
    quick = replace(metric_named("block_separation"), options={"updates": 100})
    scores = unweave.evaluate(
        FACTORS * 0.5, named, metrics=[quick], blocks=BLOCKS, block_factors={"content": ["shape"]}
    )
    assert scores["block_separation"] == pytest.approx(1, abs=0.02)
    assert scores["block_separation.content.shape.accuracy"] == 1.0
    assert scores["block_separation.style.shape.accuracy"] < 0.6
    assert scores.score("block_separation").protocol == (
        "block_separation[mlp128-128,adam2000,n600+300,factors:shape|size,mean]"
    )
    for wrong, message in (
        ({"pose": ["shape"]}, 'there is no block "pose". Known: content, style.'),
        ({"content": ["shap"]}, 'there is no factor "shap". Did you mean "shape"?'),
        (
            {"content": "shape"},
            "block_factors must name the factors of each block, such as",
        ),
        (
            {"content": ["shape"], "style": ["shape", "size"]},
            "block_factors must name different factors of all blocks, or of all blocks but one, such as",
        ),
    ):
        with pytest.raises(UnweaveError) as caught:
            unweave.evaluate(FACTORS, named, metrics="mig", blocks=BLOCKS, block_factors=wrong)
        assert str(caught.value).startswith(message)


def test_protocols_state_the_factors_of_blocks() -> None:
    codes, factors = np.tile(FACTORS, 2) * 0.5, np.tile(FACTORS, 2)
    blocks = {"a": [0], "b": [1, 2, 3]}
    quick = replace(metric_named("block_separation"), options={"updates": 1})

    def protocol(blocks: dict[str, list[int]], held: dict[str, list[str]]) -> str:
        scores = unweave.evaluate(codes, factors, metrics=[quick], blocks=blocks, block_factors=held)
        return scores.score("block_separation").protocol

    one = protocol(blocks, {"a": ["v0"]})
    assert one == "block_separation[mlp128-128,adam2000,n600+300,factors:v0|v1+v2+v3,mean]"
    assert protocol(blocks, {"a": ["v1", "v0"]}) != one
    # The same factors belong together, whatever the blocks are called.
    assert protocol({"style": [1, 2, 3], "content": [0]}, {"style": ["v3", "v2", "v1"]}) == one
    assert unweave.evaluate(codes, factors, metrics="mig", blocks=blocks, block_factors={"a": ["v0"]}).score(
        "mig"
    ).protocol == ("mig[bins20,n900,mean]")


def test_what_is_missing_is_said() -> None:
    for metric, blocks, message in (
        ("block_mig", None, "block_mig cannot be measured here: it needs blocks of codes: give blocks="),
        ("block_separation", BLOCKS, "it needs the factors that each block should hold: give block_factors="),
        ("swap_consistency", BLOCKS, "it needs a trained run of a data set with a grid of factors"),
    ):
        with pytest.raises(UnweaveError, match=message):
            unweave.evaluate(FACTORS, FACTORS, metrics=metric, blocks=blocks)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (GVAE(shared="face"), ("face",)),
        (MLVAE(shared="character,size"), ("character", "size")),
        (LORD(class_factors="character"), ("character",)),
        (DrNet(), ("character", "face")),  # categorical factors do not move
        (AdversarialSplit(class_factors="face"), ("face",)),
        (M2(factors="character"), ("character",)),
        (AAELabels(factor="character"), ("character",)),
        (AAEClusters(), ()),
        (VAE(), ()),
    ],
    ids=lambda value: value.name if isinstance(value, Method) else "",
)
def test_the_factors_that_content_should_hold(method: Method, expected: tuple[str, ...]) -> None:
    assert content_factors(RunSpec(method, "glyphs"), load("glyphs")) == expected


def test_a_judge_reads_images_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "BATCH", 16)
    monkeypatch.setattr(judges, "TESTED", 300)
    judge = judges.judge_of(TINY, steps=STEPS)
    assert (judge.accuracy > 0.8).all()
    factors = TINY.sample_factors(200, seed=1)
    images = TINY.observe(factors)
    assert (judge.read(images) == factors).mean() > 0.8
    np.testing.assert_array_equal(judge.read(images), judge.read(images / np.float32(255)))

    def refuse(*_: object) -> None:
        raise AssertionError("the judge is in the cache")

    monkeypatch.setattr(judges, "_train", refuse)
    again = judges.judge_of(only(TINY, [{"size": 0}]), steps=STEPS)
    np.testing.assert_array_equal(again.accuracy, judge.accuracy)
    np.testing.assert_array_equal(again.read(images), judge.read(images))


def test_swaps_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "STEPS", STEPS)
    monkeypatch.setattr(judges, "TESTED", 300)
    monkeypatch.setattr(judges, "BATCH", 16)
    method = GVAE(shared="size")
    run = unweave.train(method, TINY, out=tmp_path, steps=3, batch=4, latents=4, device="cpu")
    scores = unweave.evaluate(run, metrics="swap_consistency", points=(100, 50))
    assert 0 <= scores["swap_consistency"] <= scores["swap_consistency.reconstructed"] + 0.2 <= 1.2
    assert "For scores of blocks, content should hold size and style should hold x and y." in scores.notes
    names = {name.split(".")[1] for name in scores if name.endswith(".accuracy")}
    assert names == {"swapped", "reconstructed", "judge"}
    plain = unweave.train(VAE(), TINY, out=tmp_path, steps=3, batch=4, latents=4, device="cpu")
    with pytest.raises(UnweaveError, match="swap_consistency cannot be measured here: it needs blocks of"):
        unweave.evaluate(plain, metrics="swap_consistency", points=(100, 50))
