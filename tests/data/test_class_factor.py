"""The class factor of a data set: its first categorical factor."""

import pytest

from methods.marks import MARKS
from unweave.data.catalogue import entry_of
from unweave.data.collection import Continuous
from unweave.data.grid import Factor
from unweave.data.supervision import Chosen, labelled
from unweave.data.supervision.choices import class_factor, resolve_class
from unweave.methods.sampling import Groups, Sequences
from unweave.streams import Stream
from unweave.training.factors import host_factors, label_columns


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("cars3d", "object"),
        ("shapes3d", "shape"),
        ("dsprites", "shape"),
        ("rooms", "shape"),
        ("smallnorb", "category"),
        ("glyphs", "character"),
    ],
)
def test_the_class_of_a_data_set(data: str, name: str) -> None:
    assert class_factor(entry_of(data).factors) == name


def test_other_data() -> None:
    assert class_factor([Factor("x", 4), Factor("y", 5)]) == "x", "none is categorical"
    assert class_factor([Factor("x", 4), Factor("one", 1, "categorical")]) == "x", "a single class"
    assert class_factor([Factor("kind", 4, "categorical"), Factor("class", 5)]) == "class"
    assert class_factor([Continuous("width", 0, 1), Factor("kind", 4, "categorical")]) == "kind"
    assert resolve_class(("x", "class"), [Factor("x", 4), Factor("k", 2, "categorical")]) == ("x", "k")


def test_labels_groups_and_sequences_know_the_word() -> None:
    assert labelled(MARKS, 5, 0, Chosen("class")).observed == (2,)
    assert labelled(MARKS, 5, 0, Chosen("y,class")).observed == (1, 2)
    grouped = Groups(3, ("class",), chosen="first", labels="shared")
    assert label_columns(MARKS, grouped) == [2]
    factors = host_factors(MARKS, 20, Stream.of(0), grouped).reshape(20, 3, 3)
    assert (factors[:, 1:, 2] == factors[:, :1, 2]).all()
    assert (factors[:, 1, :2] != factors[:, 0, :2]).any()
    frames = host_factors(MARKS, 20, Stream.of(0), Sequences(4, ("class", "x"))).reshape(20, 4, 3)
    assert (frames[:, 1:, [0, 2]] == frames[:, :1, [0, 2]]).all()
