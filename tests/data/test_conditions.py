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
from unweave.data.grid import Factor, GroundTruth
from unweave.data.opening import is_place, open_reference, open_seen_from, reopen
from unweave.data.own.abilities import CODES, INTERVENTIONS, TRAINING
from unweave.data.own.reference import Reference
from unweave.data.supervision.restrict import full_grid, held_out_part
from unweave.errors import UnweaveError
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec, spec_of

FACTORS = (
    Factor("shape", 3, "categorical", ("square", "ellipse", "heart")),
    Factor("scale", 6),
    Factor("x", 8),
    Factor("y", 8),
)


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
        ("weigh(x=0)=1e-200:weigh(x=0)=1e-200", "weights of one combination multiply to 0"),
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


def test_a_correlation_that_leaves_nothing_is_refused() -> None:
    """x is 1 to 6 of 0 to 7, shape 0, 1 or 2 of 2: no x is near a shape, and all weights are 0 in float64."""
    text = "hold(x=0|7):shape~x=0.001"
    with pytest.raises(UnweaveError, match=r"no combination of factors is left .* or use a larger sigma"):
        conditioned(GRID, text)
    assert conditioned(GRID, text.replace("0.001", "0.01")).sample_factors(20, 0)[:, 2].max() < 7


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
    assert conditioned(GRID, "only(scale=3)").varied.tolist() == [True, False, True, True]
    with pytest.raises(UnweaveError, match=r"no combination of toy:x~y=0\.2 was held out"):
        held_out_part(conditioned(GRID, "x~y=0.2"))


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
    # 3 x 6 x 8 x 8 combinations, of which a shape is a third and x = 0 an eighth.
    for text, counted in (
        ("hold(x=0)", "1,008 of 1,152"),
        ("only(shape=0)", "384 of 1,152"),
        ("x~y=1", "1,152"),
    ):
        of_data = {what: why for what, _, why in abilities(conditioned(GRID, text))}
        assert of_data[TRAINING].startswith(f"{counted} combinations of factors are drawn uniformly; ")
        constant = text == "only(shape=0)"
        assert ("3 of 4 factors vary, all known. shape never varies" in of_data[CODES]) == constant
