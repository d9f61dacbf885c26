"""Metrics run in several threads at once: compiled code lets go of the lock, and no call disturbs another."""

import importlib
import pkgutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import unweave.metrics
from metrics.grids import drawn, noise
from unweave.metrics import dci, downstream, explicitness, infomec, mig_posterior, sap

FACTORS = drawn([3, 4], 300)
CODES = FACTORS @ np.array([[1.0, 0.2, 0.5], [0.1, 1.0, -0.5]]) + 0.3 * noise(300, 3)

CALLS: dict[str, Callable[[], object]] = {
    "dci": lambda: dci(CODES, FACTORS).importance.tolist(),
    "downstream": lambda: downstream(CODES, FACTORS, sizes=[50]).test_accuracy.tolist(),
    "explicitness": lambda: explicitness(CODES, FACTORS),
    "infomec": lambda: infomec(CODES, FACTORS).information.tolist(),
    "mig_posterior": lambda: mig_posterior(CODES, np.full(CODES.shape, -3.0), FACTORS, samples=100),
    "sap": lambda: sap(CODES, FACTORS),
}


def kernels() -> dict[str, CPUDispatcher]:
    """Every compiled function of the metrics."""
    modules = [
        importlib.import_module(f"unweave.metrics.{found.name}")
        for found in pkgutil.iter_modules(unweave.metrics.__path__)
    ]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, CPUDispatcher) and value.py_func.__module__ == module.__name__
    }


@pytest.mark.parametrize("kernel", kernels())
def test_compiled_functions_let_other_threads_run(kernel: str) -> None:
    assert kernels()[kernel].targetoptions.get("nogil") is True


def test_scores_are_the_same_from_many_threads() -> None:
    alone = {name: call() for name, call in CALLS.items()}
    with ThreadPoolExecutor(len(CALLS)) as threads:
        begun = [(name, threads.submit(call)) for _ in range(4) for name, call in CALLS.items()]
        for name, future in begun:
            assert future.result() == alone[name], name
