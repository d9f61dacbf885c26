"""Adam's Triton kernel against the plain update, several steps, on random shapes."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nn.triton_device import CUDA, DEVICE, LOW, numbers, poison  # noqa: F401

from unweave.nn.kernels import adam as kernels  # isort: skip
from unweave.nn.layers.layer import ROUNDED_COPY
from unweave.nn.optimiser import (
    FIRST_MOMENT,
    SECOND_MOMENT,
    Adam,
    AdamW,
    PopulationOptimiser,
    _laid_out_as,
)

BETWEEN = 7.0  # fills the memory behind the tensors
SETTINGS = Adam(beta1=0.5, beta2=0.9, epsilon=1e-3)  # so that each of them shows after a few steps


def fenced(values: Tensor) -> tuple[Tensor, Tensor]:
    """The same numbers, followed in memory by a guard that must not be overwritten."""
    memory = torch.full((values.numel() + 2000,), BETWEEN, dtype=values.dtype, device=DEVICE)
    inside = memory[: values.numel()].view(values.shape)
    inside.copy_(values)
    return inside, memory[values.numel() :]


DECAYING = AdamW(beta1=0.5, beta2=0.9, epsilon=1e-3, weight_decay=0.7)


def plain_updates(
    start: Tensor, gradients: Sequence[Tensor], rates: Tensor, optimiser: Adam | AdamW = SETTINGS
) -> PopulationOptimiser:
    """The plain update, which is the one of the CPU."""
    adam = PopulationOptimiser([start.float()], optimiser)
    for step, gradient in enumerate(gradients):
        adam.update([gradient.float()], torch.tensor(step), rates)
    return adam


def update_by_kernel(
    master: Tensor,
    used: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: Tensor,
    step: int,
    rates: Tensor,
    optimiser: Adam | AdamW = SETTINGS,
) -> None:
    s = optimiser
    decay = (s.weight_decay * rates).to(DEVICE) if isinstance(s, AdamW) else None
    updated = kernels.Updated(master, used, first, second, gradient, decay)
    at = torch.tensor(step, device=DEVICE)
    kernels.adam([updated], at, rates.to(DEVICE), s.beta1, s.beta2, s.epsilon)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([1, 5, 1000, 1024, 1025, 2500, 9000]),
    st.sampled_from([torch.float32, LOW]),
    st.integers(1, 4),
    st.integers(0, 1000),
    st.sampled_from([SETTINGS, DECAYING]),
)
@example(3, 1025, LOW, 4, 0, SETTINGS)
@example(2, 2500, torch.float32, 4, 1, SETTINGS)
@example(3, 1025, LOW, 4, 2, DECAYING)
@example(2, 2500, torch.float32, 4, 3, DECAYING)
def test_the_kernel_is_the_plain_update(
    runs: int, count: int, dtype: torch.dtype, steps: int, seed: int, optimiser: Adam | AdamW
) -> None:
    rates = torch.linspace(0.01, 0.05, runs)
    gradients = [numbers(seed + step, runs, count) for step in range(steps)]
    start = numbers(seed + 100, runs, count)
    plain = plain_updates(start, gradients, rates, optimiser)
    tensors = [start.float(), torch.zeros(runs, count), torch.zeros(runs, count), start.to(dtype)]
    (master, first, second, used), fences = zip(*map(fenced, tensors), strict=True)
    used = master if dtype == torch.float32 else used
    for step, gradient in enumerate(gradients):
        update_by_kernel(master, used, first, second, gradient.to(DEVICE, dtype), step, rates, optimiser)
    moments = plain.moments[FIRST_MOMENT][0], plain.moments[SECOND_MOMENT][0]
    pairs = zip((master, first, second), (plain.masters[0], *moments), strict=True)
    for ours, expected in pairs:
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(used.cpu(), master.cpu().to(dtype)), "the copy is the master, rounded"
    assert all(bool((fence == BETWEEN).all()) for fence in fences), "nothing else is written"


def test_parameters_of_all_kinds_are_updated_together() -> None:
    """Rounded or not, of any size, with and without decay: each as if it were alone."""
    rates, counts = torch.tensor([0.1, 0.2]), (3, 1025, 2048, 7)
    kinds = [(torch.float32, None), (LOW, None), (torch.float32, rates), (LOW, None)]
    parameters, expected = [], []
    for seed, (count, (dtype, decay)) in enumerate(zip(counts, kinds, strict=True)):
        start, gradient = numbers(seed, 2, count), numbers(seed + 9, 2, count)
        master = start.float().to(DEVICE)
        first, second = torch.zeros_like(master), torch.zeros_like(master)
        used = master if dtype == torch.float32 else start.to(DEVICE, dtype)
        on_device = None if decay is None else (0.7 * decay).to(DEVICE)
        parameters.append(kernels.Updated(master, used, first, second, gradient.to(DEVICE, dtype), on_device))
        plain = plain_updates(start, [gradient], rates, SETTINGS if decay is None else DECAYING)
        expected.append(plain.masters[0])
    step = torch.zeros((), dtype=torch.int64, device=DEVICE)
    s = SETTINGS
    kernels.adam(parameters, step, rates.to(DEVICE), s.beta1, s.beta2, s.epsilon)
    for parameter, exact in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.master.cpu(), exact, rtol=1e-5, atol=1e-6)
        assert torch.equal(parameter.used, parameter.master.to(parameter.used.dtype))


@pytest.mark.parametrize("step", [0, 5, 299_999])
def test_step_sizes_are_corrected_for_bias(step: int) -> None:
    """Against the formula in Python's floats; a step of each run, as of a player that starts later."""
    rates, t = torch.tensor([1e-4, 2e-4, 0.0]), step + 1
    exact = [-float(rate) * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) for rate in rates]
    for steps in (torch.tensor(step), torch.full((3,), step)):
        sizes = kernels.step_sizes(steps.to(DEVICE), rates.to(DEVICE), 0.9, 0.999)
        torch.testing.assert_close(sizes.cpu(), torch.tensor(exact), rtol=1e-6, atol=0)


def test_each_run_has_its_own_rate() -> None:
    """One that has none stays where it is, to the bit; the first step of the others is their rate's."""
    start, rates = numbers(0, 3, 40).float(), torch.tensor([0.0, 0.25, 0.5])
    master = start.clone().to(DEVICE)
    first, second = torch.zeros_like(master), torch.zeros_like(master)
    update_by_kernel(master, master, first, second, torch.full((3, 40), 2.0, device=DEVICE), 0, rates)
    root = 2 * math.sqrt(1 - SETTINGS.beta2)  # of the second moment of gradients of 2
    share = root / (root + SETTINGS.epsilon)
    assert torch.equal(master[0].cpu(), start[0])
    torch.testing.assert_close(
        start - master.cpu(), share * rates[:, None].expand(3, 40), rtol=1e-4, atol=1e-6
    )


def test_any_memory_order_will_do_if_all_have_it() -> None:
    """Weights of convolutions have their own memory layout."""
    start, gradient = (numbers(seed, 2, 3, 5, 4, 4) for seed in (1, 2))
    rates = torch.tensor([0.1, 0.2])
    plain = plain_updates(start, [gradient], rates)
    taps_first = [
        tensor.float().to(DEVICE).permute(0, 3, 4, 2, 1).contiguous().permute(0, 4, 3, 1, 2)
        for tensor in (start, gradient, torch.zeros_like(start), torch.zeros_like(start))
    ]
    master, g, first, second = taps_first
    update_by_kernel(master, master, first, second, g, 0, rates)
    torch.testing.assert_close(master.cpu(), plain.masters[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(second.cpu(), plain.moments[SECOND_MOMENT][0], rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not CUDA, reason="needs a GPU")
@pytest.mark.parametrize("optimiser", [SETTINGS, DECAYING])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_takes_the_kernel(dtype: torch.dtype, optimiser: Adam | AdamW) -> None:
    """Through PopulationOptimiser, gradients in whatever order of memory they come."""
    start, rates = numbers(3, 2, 6, 5), torch.tensor([0.1, 0.2])
    gradients = [numbers(seed, 2, 6, 5) for seed in range(3)]
    plain = plain_updates(start, gradients, rates, optimiser)
    ours = PopulationOptimiser([start.float().to(DEVICE)], optimiser)
    ours.attach([start.to(DEVICE, dtype)] if dtype != torch.float32 else ours.masters)
    for step, gradient in enumerate(gradients):
        turned = gradient.to(DEVICE, dtype).transpose(1, 2).contiguous().transpose(1, 2)
        ours.update([turned], torch.tensor(step, device=DEVICE), rates.to(DEVICE))
    torch.testing.assert_close(ours.masters[0].cpu(), plain.masters[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(ours.parameters[0], ours.masters[0].to(dtype))


@pytest.mark.parametrize("compact", [False, True])
def test_rounded_copies_of_parameters_follow_every_change(compact: bool) -> None:
    """After updates by the kernel (on a GPU), a change of the masters, and a choice of runs."""
    start, rates = numbers(3, 3, 6, 5), torch.tensor([0.1, 0.2, 0.3])
    parameter = torch.nn.Parameter(1.01 * start.float().to(DEVICE))
    setattr(parameter, ROUNDED_COPY, parameter.detach().bfloat16())
    ours = PopulationOptimiser([parameter], SETTINGS, compact=compact and CUDA)
    gradient = numbers(4, 3, 6, 5).float().to(DEVICE)
    ours.update([gradient], torch.tensor(0, device=DEVICE), rates.to(DEVICE))
    (used,) = ours.used
    assert used.dtype == torch.bfloat16
    assert torch.equal(used, parameter.detach().bfloat16())
    with torch.no_grad():
        parameter.mul_(3)
    ours.round()
    assert torch.equal(used, parameter.detach().bfloat16())
    remaining = torch.nn.Parameter(parameter.detach()[1:].clone())
    ours.select(torch.tensor([1, 2], device=DEVICE), [remaining])
    assert ours.used == [remaining], "a new parameter has no copy until it is given one"


def test_gradients_that_kernels_cannot_read_in_pieces_of_16_bytes_are_copied() -> None:
    """Views into a larger gradient, as of parameters that were stacked, may start anywhere."""
    master, memory = torch.zeros(4, device=DEVICE), torch.arange(9.0, device=DEVICE)
    assert _laid_out_as(master, memory[:4]).data_ptr() == memory.data_ptr()
    moved = _laid_out_as(master, memory[1:5])
    assert moved.data_ptr() % 16 == 0
    assert moved.tolist() == [1, 2, 3, 4]


def test_step_sizes_without_a_first_moment_are_those_of_the_formula() -> None:
    """beta1 is 0 in StyleGAN2: only the second moment is corrected."""
    rates = torch.tensor([0.1, 0.2], device=DEVICE)
    found = kernels.step_sizes(torch.tensor(2, device=DEVICE), rates, 0.0, 0.99)
    expected = [-rate * math.sqrt(1 - 0.99**3) for rate in (0.1, 0.2)]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("long", [False, True])
def test_many_parameters_take_several_launches(monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    """Arguments of a kernel have a largest size, so parameters are updated in parts: here two at a time.

    If a parameter has too many numbers for 32 bits, they are counted in 64 bits.
    """
    monkeypatch.setattr(kernels, "MOST_PARAMETERS", 2)
    monkeypatch.setattr(kernels, "COUNTED_IN_64_BITS", 0 if long else kernels.COUNTED_IN_64_BITS)
    rates, adam = torch.tensor([0.1, 0.2, 0.3]), []
    starts = [numbers(seed, 3, 5 + 1000 * (seed % 2)).float() for seed in range(5)]
    gradients = [numbers(10 + seed, *start.shape).float() for seed, start in enumerate(starts)]
    for start, gradient in zip(starts, gradients, strict=True):
        expected = plain_updates(start.clone(), [gradient], rates).masters[0]
        master = start.to(DEVICE)
        first, second = torch.zeros_like(master), torch.zeros_like(master)
        adam.append((kernels.Updated(master, master, first, second, gradient.to(DEVICE)), expected))
    s = SETTINGS
    step = torch.tensor(0, device=DEVICE)
    kernels.adam([updated for updated, _ in adam], step, rates.to(DEVICE), s.beta1, s.beta2, s.epsilon)
    for updated, expected in adam:
        torch.testing.assert_close(updated.master.cpu(), expected, rtol=1e-5, atol=1e-6)


def updated_in_bfloat16(
    gradient: Tensor, step: Tensor, moments: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """The moments of weights (P, n) after an update, kept in bfloat16; they start at 0."""
    master = torch.zeros_like(gradient).to(DEVICE)
    first, second = moments or (torch.zeros_like(master, dtype=torch.bfloat16) for _ in range(2))
    parameter = kernels.Updated(master, master, first, second, gradient.to(DEVICE))
    rates, s = torch.full((len(gradient),), 0.1, device=DEVICE), SETTINGS
    kernels.adam([parameter], step.to(DEVICE), rates, s.beta1, s.beta2, s.epsilon)
    return first, second


def test_compact_moments_are_rounded_without_bias() -> None:
    """A number between two of bfloat16 becomes one of them; the mean over many is the number."""
    count, value = 40_000, 0.12345
    first, second = updated_in_bfloat16(torch.full((1, count), value), torch.tensor(3))
    for moment, exact in (
        (first, (1 - SETTINGS.beta1) * value),
        (second, (1 - SETTINGS.beta2) * value**2),
    ):
        found = moment.double().cpu().unique()
        assert len(found) == 2
        assert found[0] < exact < found[1]
        gap = float(found[1] - found[0])
        assert gap < 2**-7 * exact, "they are neighbours"
        # Five standard errors: the share that is rounded up has a deviation of at most half of the gap.
        assert abs(float(moment.double().mean()) - exact) < 5 * gap / 2 / math.sqrt(count)


def test_compact_moments_follow_changes_below_their_precision() -> None:
    """Rounded to the nearest, a moment that changes by less than half of its last digit would stay."""
    updates = 64
    first = torch.ones(1, 20_000, dtype=torch.bfloat16, device=DEVICE)
    second = first.clone()
    for step in range(updates):
        gradient = torch.full(first.shape, 1.004)  # moves the first moment by 0.002 at first, 1/4 of a digit
        updated_in_bfloat16(gradient, torch.tensor(step), (first, second))
    assert float(first.float().mean()) == pytest.approx(1.004, abs=2e-4)


def test_noise_of_compact_moments_belongs_to_the_run_and_its_step() -> None:
    """Alone, among others, at any place: the same bits. In another update they differ."""
    gradient = 1.1 * numbers(1, 3, 2500).float()
    together = updated_in_bfloat16(gradient, torch.tensor([5, 6, 5]))
    for run, step in enumerate((5, 6, 5)):
        alone = updated_in_bfloat16(gradient[run : run + 1], torch.tensor(step))
        for ours, others in zip(alone, together, strict=True):
            assert torch.equal(ours[0], others[run])
    other = updated_in_bfloat16(gradient[:1], torch.tensor(6))
    assert not torch.equal(other[0][0], together[0][0])


def test_moments_that_bfloat16_holds_exactly_are_not_rounded() -> None:
    first, _ = updated_in_bfloat16(torch.full((2, 1030), 2.0), torch.tensor(0))
    assert bool((first == 2 * (1 - SETTINGS.beta1)).all())
