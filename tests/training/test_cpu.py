"""Training on a CPU: memory that is kept from step to step, threads that sleep, Adam in one pass."""

import os
import sys
from collections.abc import Iterator

import pytest
import torch

from unweave import cpu_settings
from unweave.cpu_settings import keep_freed_memory, wait_asleep
from unweave.data import load
from unweave.methods import BetaVAE
from unweave.nn import cpu_adam
from unweave.nn.cpu_adam import adam_in_one_pass, is_large
from unweave.nn.optimiser import FIRST_MOMENT, SECOND_MOMENT, Adam, PopulationOptimiser
from unweave.runs.spec import RunSpec
from unweave.training.batches import batches_of
from unweave.training.population import Population
from unweave.training.trainer import use_device
from unweave.training.update import Update

STEPS = 3


@pytest.fixture
def asked_again() -> Iterator[None]:
    """The setting is made once in a process; let it be made again."""
    keep_freed_memory.cache_clear()
    yield
    keep_freed_memory.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux")
def test_steps_reuse_their_memory(asked_again: None) -> None:
    """Without the setting there are some 10,000 page faults in a step of these networks."""
    import resource

    def faults() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    device = use_device("cpu")
    assert keep_freed_memory()
    data = load("dsprites")
    update = Update(Population([RunSpec(BetaVAE())], data.shape, device), batches_of(data, device), len(data))
    update.run(2)
    before = faults()
    update.run(STEPS)
    assert (faults() - before) / STEPS < 2_000


@pytest.mark.parametrize("variable", cpu_settings.MEMORY_VARIABLES)
def test_what_a_user_has_set_is_respected(
    asked_again: None, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    assert not keep_freed_memory()


def test_other_systems_keep_their_memory_as_they_do(
    asked_again: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


def test_threads_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    wait_asleep()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    wait_asleep()
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.delenv("OMP_WAIT_POLICY")
    monkeypatch.setenv("GOMP_SPINCOUNT", "")  # is restored at the end
    monkeypatch.delenv("GOMP_SPINCOUNT")
    wait_asleep()
    assert os.environ["GOMP_SPINCOUNT"] == str(cpu_settings.SPINS)


def test_adam_in_one_pass_is_the_formula_in_float64() -> None:
    generator = torch.Generator().manual_seed(0)
    p, m, g = (torch.randn(2, 300, 7, generator=generator) for _ in range(3))
    v, size = torch.rand(2, 300, 7, generator=generator), torch.tensor([-1e-3, -1e-2])
    expected_m = 0.9 * m.double() + 0.1 * g.double()
    expected_v = 0.999 * v.double() + 0.001 * g.double().square()
    expected_p = p.double() + size.double().view(2, 1, 1) * expected_m / (expected_v.sqrt() + 1e-8)
    adam_in_one_pass(p, m, v, g.transpose(1, 2).contiguous().transpose(1, 2), size, (0.9, 0.999), 1e-8)
    for found, expected in ((p, expected_p), (m, expected_m), (v, expected_v)):
        torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-7)


def test_large_parameters_are_updated_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, from the first step on, with a learning rate for each run."""
    generator = torch.Generator().manual_seed(1)
    initial = torch.randn(2, 64, 32, generator=generator)
    gradients = [torch.randn(2, 64, 32, generator=generator) for _ in range(3)]
    results = []
    for large in (1 << 40, 1):
        monkeypatch.setattr(cpu_adam, "LARGE", large)
        state = PopulationOptimiser([initial.clone(), initial[:, 0].clone()], Adam())
        assert is_large(state.masters[0]) == (large == 1)
        for step, gradient in enumerate(gradients):
            state.update([gradient, gradient[:, 0]], torch.tensor(step), torch.tensor([1e-3, 1e-4]))
        results.append([*state.masters, *state.moments[FIRST_MOMENT], *state.moments[SECOND_MOMENT]])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


def test_the_networks_of_the_study_have_no_large_parameters() -> None:
    """The discriminator's layers have 1,000 x 1,000 weights: a study's numbers stay as they were."""
    assert not is_large(torch.empty(4, 1000, 1000))
    assert is_large(torch.empty(1, 4096, 1200))
    assert not is_large(torch.empty(1, 1200, 4096).transpose(1, 2))
