"""Metrics run in several threads at once: compiled code lets go of the lock, and no call disturbs another."""

import importlib
import pkgutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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
    """Every compiled function of the metrics and their estimators."""
    names = [module.name for module in pkgutil.walk_packages(unweave.metrics.__path__, "unweave.metrics.")]
    return {
        f"{name}.{key}": value
        for name in names
        for key, value in vars(importlib.import_module(name)).items()
        if isinstance(value, CPUDispatcher) and value.py_func.__module__ == name
    }


def test_compiled_functions_let_other_threads_run() -> None:
    assert "unweave.metrics.estimators.tree_kernels.boost" in kernels()
    assert [name for name, kernel in kernels().items() if not kernel.targetoptions.get("nogil")] == []


def test_scores_are_the_same_from_many_threads() -> None:
    alone = {name: call() for name, call in CALLS.items()}
    with ThreadPoolExecutor(len(CALLS)) as threads:
        begun = [(name, threads.submit(call)) for _ in range(4) for name, call in CALLS.items()]
        for name, future in begun:
            assert future.result() == alone[name], name
