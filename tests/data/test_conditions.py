"""Names of data with conditions: what they mean, how they are written, and what is refused."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from training.tiny import TINY
from unweave.data import abilities, conditioned, load, open_data
from unweave.data.catalogue import canonical_name, entry_of
from unweave.data.conditions.parser import parse
from unweave.data.conditions.presets import PRESETS
from unweave.data.grid import Factor, GroundTruth
from unweave.data.opening import is_place, open_reference, open_seen_from, reopen
from unweave.data.own.abilities import INTERVENTIONS, TRAINING
from unweave.data.own.reference import Reference
from unweave.data.supervision.restrict import full_grid, held_out_part, varied_columns
from unweave.errors import UnweaveError
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec, spec_of

FACTORS = (
    Factor("shape", 3, "categorical", ("square", "ellipse", "heart")),
    Factor("scale", 6),
    Factor("x", 8),
    Factor("y", 8),
)
SPRITES = entry_of("dsprites").grid_factors


def canonical(text: str, factors: tuple[Factor, ...] = FACTORS) -> str:
    return parse(text, factors).text(factors)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("hold( x>=4, shape=heart )", "hold(shape=2,x=4..7)"),
        ("hold(x>3,x<=5,x!=4)", "hold(x=5)"),
        ("hold(x=1):hold(x=3|2)", "hold(x=1..3)"),  # of one factor, hold-outs add up
        ("hold(x=1,y=1):hold(x=0..3)", "hold(x=0..3)"),  # the first is part of the second
        ("only(x<4):only(y=0|2):only(x>1)", "only(x=2..3,y=0|2)"),  # all hold at once
        ("only(x>=0)", ""),
        ("y~x=0.20", "x~y=0.2"),
        ("y~-x=1e-1", "x~-y=0.1"),
        ("shape~*=0.2", "shape~scale=0.2:shape~x=0.2:shape~y=0.2"),
        ("weigh(x<2)=0.5:weigh(x=0|1)=0.5", "weigh(x=0..1)=0.25"),
        ("weigh(x=0,y>=0)=0.5:weigh(y>=0)=0.1", "weigh(x=0)=0.5"),  # a weight of everything changes nothing
        ("random(0.30)", "random(0.3)"),
        ("random(0.3,7):hold(x=0):noise", "noise:hold(x=0):random(0.3,7)"),
    ],
)
def test_spellings_that_mean_the_same_have_one_name(written: str, expected: str) -> None:
    assert canonical(written) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"at character 1: expected a condition, .*, got the end\. Write for example hold\(shape=0\)"),
        ("hold(shape=1", r'at character 13: expected "," or "\)", got the end'),
        (
            "hold(shape=3)",
            r'at character 12: expected a value of shape, 0 to 2 or one of square, .*got "3\)"',
        ),
        ("hold(shap=1)", r'at character 6: there is no factor "shap"\. Did you mean "shape"\? Write'),
        ("hold(x~1)", r'at character 7: expected "<=" or .*, got "~1\)"'),
        ("hold(x=1.5)", "expected a whole number"),
        (f"hold(x={'9' * 5000})", "expected a whole number of at most 40 digits"),
        ("hold(x=5..2)", r"the range 5\.\.2 has no values"),
        ("hold(x<4,x>5)", "no value of x satisfies all tests"),
        ("hold(x>=0)", "leaves nothing to draw"),
        ("hold(x<4):hold(x>3)", "leaves nothing to draw"),
        ("only(x=0):only(x=1)", "exclude each other"),
        ("holt(x=1)", r'there is no condition "holt\(\.\.\.\)"\. Did you mean "hold"\?'),
        ("extrapolate", r'there is no condition or split "extrapolate"'),
        ("x~x=0.2", "two different factors"),
        ("x~y=0", "sigma must be greater than 0"),
        ("x~y=1e999", "at character 5: sigma must be finite"),  # the name could not be read again
        ("x~y=0.2:y~x=0.3", "x and y are correlated twice. Keep one sigma for each pair of factors"),
        ("hold x<4", r'at character 6: expected "\(" after hold, got "x<4"'),
        ("weigh(x=0)=1.5", r"the weight, a number between 0 and 1, got \"1\.5\""),
        ("random(2)", "the share to hold out, a number between 0 and 1"),
        ("random(0.5,x)", "expected the seed, a whole number"),
        ("colour:noise", "painted once"),
        ("hold(x=1)hold(y=1)", r'at character 10: expected ":"'),
        ("schott_random=0.2", "has no sigma"),
        ("ojha_imbalance", "needs a class of 10 values; shape has 3"),
        ("montero_range", r"at character 1: montero_range is defined for data with the factors \(shape"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        canonical(text)


def test_the_order_of_weights_does_not_change_their_product() -> None:
    weights = [f"weigh(x=0)={share}" for share in (0.1, 0.3, 0.7)]  # 0.1 * 0.3 * 0.7 != 0.7 * 0.3 * 0.1
    assert len({canonical(":".join(order)) for order in permutations(weights)}) == 1


def boxes() -> st.SearchStrategy[str]:
    """Random tests of one or two factors."""

    def tests(name: str, size: int) -> st.SearchStrategy[str]:
        value = st.integers(0, size - 1)
        inner = st.integers(1, size - 2) if size > 2 else st.just(1)
        listed = st.lists(value, min_size=1, max_size=3).map(lambda v: f"{name}={'|'.join(map(str, v))}")
        return listed | inner.map(lambda v: f"{name}<{v}") | inner.map(lambda v: f"{name}>={v}")

    both = st.tuples(tests("x", 8), tests("y", 8)).map(",".join)
    return tests("scale", 6) | both


def clauses() -> st.SearchStrategy[str]:
    return (
        boxes().map(lambda box: f"hold({box})")
        | boxes().map(lambda box: f"weigh({box})=0.25")
        | st.tuples(st.sampled_from(["0.5", "0.125"]), st.integers(0, 3)).map(
            lambda p: f"random({p[0]},{p[1]})"
        )
        | st.sampled_from(["x~y=0.2", "shape~-scale=0.7", "colour"])
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(clauses(), min_size=1, max_size=4, unique_by=lambda text: text.partition("=")[0]), st.randoms()
)
def test_the_canonical_name_reads_back_as_itself_in_any_order(parts: list[str], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        once = canonical(":".join(parts))
    except UnweaveError:  # all values of a factor may be held out
        reject()
    assert canonical(once) == once
    assert canonical(":".join(shuffled)) == once


@settings(max_examples=25, deadline=None)
@given(st.lists(boxes(), min_size=1, max_size=3))
def test_the_canonical_name_holds_out_the_same_combinations(parts: list[str]) -> None:
    one_by_one = GRID
    try:
        at_once = conditioned(GRID, ":".join(f"hold({part})" for part in parts))
        for part in parts:
            one_by_one = conditioned(one_by_one, f"hold({part})")
    except UnweaveError:  # all combinations may be held out
        reject()
    assert np.array_equal(support(at_once), support(one_by_one))


def support(truth: GroundTruth) -> NDArray[np.bool_]:
    """Which combinations may be drawn, in the order of the grid."""
    assert truth.weight is not None
    return np.asarray(truth.weight(truth.factors_at(np.arange(len(truth)))) > 0)


GRID = GroundTruth(
    name="toy",
    factors=FACTORS,
    shape=TINY.shape,
    render=lambda factors, _stream: np.zeros((len(factors), *TINY.shape), np.uint8),
    card=TINY.card,
    source="made up",
)


def test_weights_and_correlations_give_the_probabilities_they_state() -> None:
    weighted = conditioned(GRID, "weigh(shape=0)=0.1")
    drawn = weighted.sample_factors(6000, 0)[:, 0]
    assert abs((drawn == 0).mean() - 0.1 / 2.1) < 0.015
    close, far = (conditioned(GRID, f"x~y={sigma}").sample_factors(2000, 0) for sigma in (0.1, 0.7))
    assert np.corrcoef(close[:, 2], close[:, 3])[0, 1] > 0.9 > np.corrcoef(far[:, 2], far[:, 3])[0, 1]
    equal = conditioned(GRID, "x~y=1e-300").sample_factors(50, 0)  # squares that overflow
    assert (equal[:, 2] == equal[:, 3]).all()


def test_a_random_share_is_held_out_the_same_way_each_time() -> None:
    shares = [support(conditioned(GRID, text)) for text in ("random(0.3)", "random(0.3,0)", "random(0.3,1)")]
    assert abs(1 - shares[0].mean() - 0.3) < 0.05
    assert np.array_equal(shares[0], shares[1])
    assert not np.array_equal(shares[0], shares[2])


def test_training_data_and_what_is_held_out_share_no_combination_and_make_up_the_grid() -> None:
    for text in ("hold(shape=2,x>=4)", "only(x<4):random(0.5):x~y=0.3", "schott_composition"):
        truth = conditioned(GRID, text)
        held = held_out_part(truth)
        assert np.array_equal(support(held), ~support(truth))
        drawn = GRID.index(held.sample_factors(500, 0))
        assert not support(truth)[drawn].any()
        fixed = held.sample_factors(50, 0, fixed={"x": 5})
        assert (fixed[:, 2] == 5).all()
        assert support(held)[GRID.index(fixed)].all()
        assert full_grid(truth) is GRID
        assert full_grid(held) is GRID
    assert varied_columns(conditioned(GRID, "only(scale=3)")).tolist() == [0, 2, 3]
    with pytest.raises(UnweaveError, match=r"no combination of toy:x~y=0\.2 was held out"):
        held_out_part(conditioned(GRID, "x~y=0.2"))


def latent_values() -> dict[str, NDArray[np.float64]]:
    """The values of dSprites, as its authors list them."""
    every = [factor.size for factor in SPRITES]
    grid = np.stack(np.unravel_index(np.arange(np.prod(every)), every), axis=1)
    steps = grid.astype(np.float64)
    return {
        "shape": steps[:, 0] + 1,
        "scale": 0.5 + steps[:, 1] / 10,
        "orientation": steps[:, 2] * 2 * np.pi / 39,
        "x": steps[:, 3] / 31,
        "y": steps[:, 4] / 31,
    }


def test_the_splits_of_montero_are_those_of_the_authors() -> None:
    """The filters on latent values in github.com/mmrl/disent-and-gen, scripts/configs/datasplits.py."""
    v, tiny = latent_values(), 1e-9  # stored values differ from the bounds by rounding
    expected = {
        "montero_extrapolation": v["x"] > 0.5,
        "montero_range": (v["shape"] == 1) & (v["x"] > 0.5),
        "montero_element": (v["shape"] == 2)
        & (v["scale"] > 0.6 + tiny)
        & (v["orientation"] > 2 * np.pi / 3 + tiny)
        & (v["orientation"] < 4 * np.pi / 3 - tiny)
        & (v["x"] > 0.66)
        & (v["y"] > 0.66),
    }
    for name, held in expected.items():
        assert np.array_equal(~support(load(f"dsprites:{name}")), held)


SCHOTT = {
    "dsprites": {
        "interpolation": "hold(scale=1|4):hold(orientation=2|7|12|17|22|27|32|37):"
        "hold(x=2|7|11|15|20|24|29):hold(y=2|7|11|15|20|24|29)",
        "extrapolation": "hold(scale=4..5):hold(orientation=32..39):hold(x=25..31):hold(y=25..31)",
        "composition": "hold(orientation=4..39,x=3..31,y=3..31)",
        "trained": (240_000, 240_000, 192_312),
    },
    "shapes3d": {
        "interpolation": "hold(floor_hue=2|7):hold(wall_hue=2|7):hold(object_hue=2|7):hold(scale=2|5):"
        "hold(azimuth=2|7|12)",
        "extrapolation": "hold(floor_hue=8..9):hold(wall_hue=8..9):hold(object_hue=8..9):hold(scale=6..7):"
        "hold(azimuth=12..14)",
        "composition": "hold(floor_hue=1..9,wall_hue=1..9,object_hue=1..9,azimuth=1..14)",
        "trained": (147_456, 147_456, 153_408),
    },
    "mpi3d_real": {
        "interpolation": "hold(object_colour=3):hold(camera_height=1):hold(background_colour=1):"
        "hold(horizontal_axis=5|15|24|34):hold(vertical_axis=5|15|24|34)",
        "extrapolation": "hold(object_colour=5):hold(camera_height=2):hold(background_colour=2):"
        "hold(horizontal_axis=36..39):hold(vertical_axis=36..39)",
        "composition": "hold(horizontal_axis=6..39,vertical_axis=6..39)",
        "trained": (311_040, 311_040, 287_712),
    },
}


@pytest.mark.parametrize("data", SCHOTT)
def test_the_splits_of_schott_are_those_of_the_supplementary_code(data: str) -> None:
    """Held values and numbers of training images, from a run of the rule of openreview 9RUHPlladgh."""
    factors = entry_of(data).grid_factors
    for name, expected in zip(
        ("interpolation", "extrapolation", "composition"), SCHOTT[data]["trained"], strict=True
    ):
        condition = parse(f"schott_{name}", factors)
        assert condition.text(factors) == SCHOTT[data][name]
        sizes = [factor.size for factor in factors]
        grid = np.indices(sizes).reshape(len(sizes), -1)
        boxes = [[np.isin(grid[j], values) for j, values in box] for box in condition.held]
        held = np.any([np.all(box, axis=0) for box in boxes], axis=0)
        assert (~held).sum() == expected
    assert abs(support(load("dsprites:schott_random")).mean() - 0.3) < 0.01


def test_the_splits_of_schott_for_other_data_test_what_their_names_say() -> None:
    sizes = np.array([factor.size for factor in GRID.factors])
    ordinal = np.array([factor.kind == "ordinal" for factor in GRID.factors])
    for name in ("composition", "interpolation", "extrapolation"):
        truth = conditioned(GRID, f"schott_{name}")
        trained = truth.factors_at(np.flatnonzero(support(truth)))
        high = trained.max(axis=0)
        seen = np.array([len(np.unique(column)) for column in trained.T])
        assert (trained.min(axis=0) == 0).all()
        if name == "composition":  # all values occur, not all combinations
            assert (seen == sizes).all()
        if name == "interpolation":  # unseen values lie between seen ones
            assert (high == sizes - 1).all()
            assert ((seen < sizes) == ordinal).all()
        if name == "extrapolation":  # unseen values lie beyond seen ones
            assert ((high < sizes - 1) == ordinal).all()
            assert (seen == high + 1).all()
        assert 0.2 < support(truth).mean() < 0.4


def test_the_correlations_of_roth_have_their_default_strengths() -> None:
    assert canonical("roth_double_1", SPRITES) == "shape~x=0.1:scale~y=0.1"
    assert canonical("roth_double_1=0.04", SPRITES) == "shape~x=0.04:scale~y=0.04"
    assert canonical("roth_confounder_2", SPRITES).count("=0.2") == 4
    for preset in PRESETS:  # each is defined for one of these at least
        assert any(
            _readable(preset, entry_of(name).grid_factors)
            for name in ("dsprites", "shapes3d", "mpi3d_toy", "cars3d", "glyphs")
        )


def test_the_pairs_of_traeuble_are_those_of_the_authors() -> None:
    """`corr_indices` in github.com/ftraeuble/disentanglement_lib; those of dSprites count its colour."""
    pairs = {
        "traeuble_a": ("shapes3d", [3, 5]),
        "traeuble_b": ("dsprites", [3 - 1, 4 - 1]),
        "traeuble_c": ("mpi3d_real", [5, 6]),
        "traeuble_d": ("shapes3d", [2, 3]),
        "traeuble_e": ("shapes3d", [2, 5]),
    }
    for preset, (name, columns) in pairs.items():
        factors = entry_of(name).grid_factors
        first, second = (factors[column].name for column in columns)
        assert canonical(preset, factors) == f"{first}~{second}=0.2"
        assert canonical(f"{preset}=0.7", factors) == f"{first}~{second}=0.7"
    with pytest.raises(
        UnweaveError, match=r'"traeuble_b=0" at character 12: sigma must be greater than 0\. Write'
    ):
        canonical("traeuble_b=0", SPRITES)


def _readable(text: str, factors: tuple[Factor, ...]) -> bool:
    try:
        return bool(canonical(text, factors))
    except UnweaveError as error:
        return "is defined for" not in str(error)


def test_names_are_the_same_everywhere() -> None:
    name = "dsprites:hold(shape=2,x=16..31)"
    spelled = "dsprites:hold(x>=16, shape=heart)"
    assert load(spelled).name == open_data(spelled).name == canonical_name(spelled) == name
    first, second = (spec_of(BetaVAE(), data=data) for data in (name, spelled))
    assert first.id == second.id
    assert RunSpec.from_dict(first.to_dict()) == second
    assert spec_of(BetaVAE(), data="dsprites").id != first.id
    assert entry_of("dsprites:noise:hold(shape=0)").channels == 3
    assert load("dsprites:noise:hold(shape=0)").shape == (3, 64, 64)
    assert not is_place(spelled)
    record = {"data_source": load(name).source, "data_drawn": load(name).drawn}
    assert reopen(name, record).name == name
    for open_named in (open_data, load):
        for text in ("dsprits:hold(x=0)", "dsprits:x~y=0.2"):  # not a file with the suffix .2
            with pytest.raises(UnweaveError, match=r'no data set "dsprits:.*Did you mean "dsprites"'):
                open_named(text)
    with pytest.raises(UnweaveError, match=r"no folder or file dsprits.npz:hold\(x=0\)"):
        open_data("dsprits.npz:hold(x=0)")


def test_conditions_on_own_data(tmp_path: Path) -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    names = np.array([factor.name for factor in TINY.factors])
    path = tmp_path / "mine.npz"
    np.savez(path, images=TINY.observe(factors), factors=factors, factor_names=names)
    plain = open_data(path)
    assert isinstance(plain, GroundTruth)
    first = plain.factors[0].name
    data = open_data(f"{path}:hold({first}>=1)")
    assert isinstance(data, GroundTruth)
    assert data.name.startswith(f"mine:hold({first}=1")
    assert data.reference is not None
    again = open_reference(Reference.from_dict(data.reference.to_dict()))
    assert (again.name, again.drawn, again.source) == (data.name, data.drawn, data.source)
    seen = open_seen_from(tmp_path, f"mine.npz:hold({first}>=1)")
    assert seen.name == data.name
    assert is_place(f"mine.npz:hold({first}>=1)", tmp_path)
    np.savez(tmp_path / "images.npz", images=TINY.observe(factors[:5]))
    with pytest.raises(UnweaveError, match="a condition needs a full grid of factors"):
        open_data(f"{tmp_path / 'images.npz'}:hold(x=0)")


def test_what_can_be_done_with_restricted_data_is_stated() -> None:
    able = {what: (possible, why) for what, possible, why in abilities(conditioned(GRID, "hold(x=0)"))}
    assert "are drawn uniformly; without x 0" in able[TRAINING][1]
    assert not able[INTERVENTIONS][0]
    assert "--on all" in able[INTERVENTIONS][1]
    assert {a.what: a.possible for a in abilities(GRID)}[INTERVENTIONS]
