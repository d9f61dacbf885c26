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
        ("hold(3d=3)", 'expected a value of 3d, 0 to 2 or one of 3, 18-24, 25\\+, got "3'),  # a position
        ("hold(hairs=1)", 'there is no factor "hairs"'),
        ("hold(hair colour=blue)", "expected a value of hair colour, 0 to 2 or one of dark red"),
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
