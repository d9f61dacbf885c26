"""The parts of the plug-in do what unweave expects of them."""

import numpy as np

from unweave.plugins import check_data, check_method, check_metric
from unweave_sparse.data import ENTRY
from unweave_sparse.method import SparseVAE
from unweave_sparse.metric import ACTIVE_SHARE, active_share


def test_the_method_keeps_the_contract() -> None:
    check_method(SparseVAE)


def test_the_metric_keeps_the_contract() -> None:
    check_metric(ACTIVE_SHARE)
    assert active_share(np.array([[0.0, 1.0], [0.0, -1.0]])) == 0.5


def test_the_data_set_keeps_the_contract() -> None:
    check_data(ENTRY)
