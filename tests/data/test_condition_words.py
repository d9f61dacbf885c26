"""The words of conditions: names of factors, labels of values, and presets after a path."""

from pathlib import Path

import numpy as np
import pytest

from training.tiny import TINY
from unweave.data import open_data
from unweave.data.conditions.parser import parse
from unweave.data.grid import Factor
from unweave.data.opening import is_place, open_seen_from
from unweave.errors import UnweaveError


def canonical(text: str, factors: tuple[Factor, ...]) -> str:
    return parse(text, factors).text(factors)


def test_names_and_labels_may_be_any_text() -> None:
    factors = (
        Factor("hair colour", 3, "categorical", ("dark red", "red", "red (dyed)")),
        Factor("hair", 2),
        Factor("3d", 3, "categorical", ("3", "18-24", "25+")),
        Factor("size (cm)", 4),
    )
    for written, expected in (
        ("hold( hair colour = dark red )", "hold(hair colour=0)"),
        ("hold(hair colour=red (dyed)|red,hair=1)", "hold(hair colour=1..2,hair=1)"),
        ("hold(hair colour=dark red..red)", "hold(hair colour=0..1)"),
        ("hold(3d=18-24)", "hold(3d=1)"),
        ("hold(3d!=25+)", "hold(3d=0..1)"),
        ("size (cm)~-hair=0.2", "hair~-size (cm)=0.2"),
        ("only(size (cm)>=2)", "only(size (cm)=2..3)"),
        ("schott_extrapolation", "hold(size (cm)=2..3)"),
    ):
        assert canonical(written, factors) == expected
        assert canonical(expected, factors) == expected
    for text, message in (
        (
            "hold(3d=3)",
            r'a value of 3d, 0 to 2 \(the positions of 3, 18-24, 25\+\) or one of 18-24, 25\+, got "3',
        ),
        ("hold(hairs=1)", 'there is no factor "hairs"'),
        ("hold(hair colour=blue)", "expected a value of hair colour, 0 to 2 or one of dark red"),
    ):
        with pytest.raises(UnweaveError, match=message):
            canonical(text, factors)


def test_whole_numbers_are_positions_also_where_they_are_labels() -> None:
    """Otherwise "tilt=-10" is the first value by its label, and "tilt=0" the same one by its position."""
    factors = (
        Factor("tilt", 3, labels=("-10", "0", "10")),
        Factor("size", 3, labels=("0.5", "1", "2")),
        Factor("share", 2, labels=("0.25", "0.75")),
        Factor("year", 8, labels=tuple(str(1990 + i) for i in range(8))),
    )
    for written, expected in (
        ("hold(tilt=0)", "hold(tilt=0)"),
        ("hold(size=1..2)", "hold(size=1..2)"),
        ("hold(share=0.75)", "hold(share=1)"),  # it cannot be a position
    ):
        assert canonical(written, factors) == expected
    for text, message in (
        ("hold(tilt=-10)", r'a value of tilt, 0 to 2 \(the positions of -10, 0, 10\), got "-10\)"'),
        ("hold(tilt=10)", r'a value of tilt, 0 to 2 \(the positions of -10, 0, 10\), got "10\)"'),
        ("hold(size=0.5)", r'a value of size, 0 to 2 \(the positions of 0\.5, 1, 2\), got "0\.5\)"'),
        ("hold(year>=1995)", r"0 to 7 \(the positions of 1990, .*, 1995, \.\.\.\), got"),
    ):
        with pytest.raises(UnweaveError, match=message):
            canonical(text, factors)


def test_a_preset_after_a_file_in_this_folder_is_no_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", images=TINY.observe(factors), factors=factors)
    for text, name in (("schott_extrapolation", "mine:hold("), ("noise", "mine:noise")):
        assert open_data(f"mine.npz:{text}").name.startswith(name)
        assert is_place(f"mine.npz:{text}")
        assert open_seen_from(tmp_path, f"mine.npz:{text}").name.startswith(name)
    with pytest.raises(UnweaveError, match=r"there is no folder or file other\.npz:schott_random"):
        open_data("other.npz:schott_random")
    with pytest.raises(UnweaveError, match="cannot import the data set nosuch:Data"):
        open_data("nosuch:Data")
