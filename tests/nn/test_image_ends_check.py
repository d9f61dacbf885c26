"""The fused image layers are used only after they agreed with torch's own layers on this GPU."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nn.test_image_ends import COMPILER, case, kernels  # noqa: F401
from nn.triton_device import CUDA, DEVICE, poison  # noqa: F401

from unweave.nn.kernels import image_ends, image_ends_check  # isort: skip
from unweave.errors import UnweaveError

device = torch.device(DEVICE)
needs_kernels = pytest.mark.skipif(not CUDA and COMPILER is None, reason="neither a GPU nor g++ is here")


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process; with a case so small that the emulation is fast."""
    monkeypatch.setattr(image_ends_check, "_verdicts", {})
    monkeypatch.setattr(image_ends_check, "_warned", set())
    monkeypatch.setattr(image_ends, "fits", lambda *_: True)
    for name in ("RUNS", "IMAGES", "BLOCKS"):
        monkeypatch.setattr(image_ends_check, name, 1)


def use_kernels(monkeypatch: pytest.MonkeyPatch, run: Callable[..., None]) -> None:
    class Kernel:
        def run(self, blocks: tuple[int, int], *arguments: Tensor | int) -> None:
            run(blocks, *arguments)

    monkeypatch.setattr(image_ends, "_compiled", lambda *_: Kernel())


def are_used(likelihood: str | None = None) -> bool:
    image, edge, _, inner, _ = case(1)
    return image_ends_check.are_used(image, edge, inner, likelihood)


def fail(*_: Any) -> None:
    raise AssertionError("this is not called")


@needs_kernels
@pytest.mark.usefixtures("kernels")
def test_right_kernels_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_ends_check, "IMAGES", 2)  # one block for both
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert are_used()
        assert are_used("bernoulli")
    assert torch.equal(torch.get_rng_state(), state), "the case is drawn from a stream of its own"
    monkeypatch.setattr(image_ends_check, "_problem", fail)
    assert are_used()
    assert are_used("bernoulli"), "checked once"


@needs_kernels
@pytest.mark.usefixtures("kernels")
def test_wrong_numbers_are_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start = image_ends.start
    monkeypatch.setattr(image_ends, "start", lambda *arguments: 1.05 * start(*arguments))
    with pytest.warns(UserWarning, match="result of the first two layers differs from torch's by 5%") as seen:
        assert not are_used()
    assert "UNWEAVE_FUSED_LAYERS=0" in str(seen[0].message)
    use_kernels(monkeypatch, lambda *_: None)  # nothing is written: results stay NaN
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # there was one warning already
        assert not are_used()
        assert not are_used("bernoulli")
    assert not any(image_ends_check._verdicts.values())


ERRORS = [
    OSError("Could not find any NVRTC library"),
    RuntimeError("Kernel compilation failed:\nimage_start.cu(1): error"),
    AttributeError("'_CudaKernel' object has no attribute 'set_shared_memory_config'"),  # torch 2.9
    ImportError("No module named 'setuptools'"),  # needed by torch's compiler
    TypeError("Unsupported argument type"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_of_the_compiler_are_caught(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: Any) -> None:
        raise error

    monkeypatch.setattr(image_ends, "_compiled", compiled)
    first_line = str(error).splitlines()[0]
    with pytest.warns(UserWarning, match=first_line.replace("(", r"\(")) as seen:
        assert not are_used()
    assert len(seen) == 1
    assert "\n" not in str(seen[0].message)


def test_too_little_memory_is_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    use_kernels(monkeypatch, out_of_memory)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        are_used()
    assert image_ends_check._verdicts == {}


def test_nothing_is_checked_while_a_graph_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as recording:
        recording.setattr(image_ends_check, "_is_recording", lambda _: True)
        recording.setattr(image_ends_check, "_problem", fail)
        assert not are_used()
    monkeypatch.setattr(image_ends_check, "_problem", lambda *_: None)
    assert are_used(), "what was not known then is checked now"
    monkeypatch.setattr(image_ends_check, "_is_recording", lambda _: True)
    assert are_used(), "what is known is used in graphs"


def test_likelihoods_without_a_kernel_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_ends_check, "_problem", fail)
    assert not are_used("laplace")


def test_an_error_that_ends_cuda_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        def synchronize(self) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: Failed())
    with pytest.raises(UnweaveError, match=r"illegal.*Set the environment variable UNWEAVE_FUSED_LAYERS=0"):
        image_ends_check._refuse_if_cuda_has_failed(torch.device("cuda:0"), RuntimeError("illegal access"))
