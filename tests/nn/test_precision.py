"""Settings of torch that decide on the precision of products, and that they are restored."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from unweave.errors import UnweaveError
from unweave.nn.layers import precision, set_precision
from unweave.nn.layers.precision import Precision, precision_context


def tf32_settings() -> list[object]:
    return [precision._setting(owner, name) for owner, name in precision._tf32_settings()]


def tf32_inside(chosen: Precision) -> tuple[bool, bool]:
    with precision_context(chosen):
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(("chosen", "allowed"), [("float32", False), ("tf32", True), ("bf16", False)])
@pytest.mark.parametrize("before", ["float32", "tf32"])
def test_precision_context_allows_tf32_only_inside(
    before: Precision, chosen: Precision, allowed: bool
) -> None:
    at_first = tf32_settings()
    with precision_context(before):
        outside = tf32_settings()
        assert tf32_inside(chosen) == (allowed, allowed)
        assert tf32_settings() == outside
    assert tf32_settings() == at_first


def test_precision_context_puts_settings_back_after_an_error() -> None:
    at_first = tf32_settings()
    with pytest.raises(KeyError), precision_context("tf32"):
        raise KeyError
    assert tf32_settings() == at_first


@pytest.mark.skipif(
    not hasattr(torch.backends.cudnn, "conv"), reason="torch has the new settings from 2.9 on"
)
@pytest.mark.parametrize("setting", ["ieee", "tf32"])
def test_precision_context_respects_the_new_settings(setting: str) -> None:
    everything_before = tf32_settings()
    with precision_context("float32"):
        for owner, name in precision._tf32_settings()[2:]:
            setattr(owner, name, setting)
        before = tf32_settings()
        assert tf32_inside("tf32") == (True, True)
        assert tf32_settings() == before
        assert tf32_inside("float32") == (False, False)
        assert tf32_settings() == before
    assert tf32_settings() == everything_before


@pytest.mark.parametrize(
    "use", [lambda word: set_precision(nn.Identity(), word), lambda word: precision_context(word).__enter__()]
)
def test_unknown_precision(use: Callable[[str], None]) -> None:
    with pytest.raises(UnweaveError, match=r'Unknown precision "float16"\. Did you mean "float32"'):
        use("float16")
