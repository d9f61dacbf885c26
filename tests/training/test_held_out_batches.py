"""No batch of any method has a combination that is held out."""

import numpy as np
import pytest
import torch

from training.test_batches import DEVICE, SEEDS, draws
from training.tiny import TINY
from unweave.data import conditioned
from unweave.data.supervision.restrict import full_grid
from unweave.methods import METHODS
from unweave.methods.sampling import Labels, Sampling
from unweave.streams import Stream
from unweave.training.batches import HostBatches
from unweave.training.factors import device_factors, host_factors

CONDITIONS = (
    "hold(size=2,x>=2)",
    "only(size<2,y!=1)",
    "random(0.4):x~y=0.3",
    "only(size=1,y=0|4):weigh(x=0)=0.1",
)
SAMPLINGS: dict[Sampling, str] = {method().sampling: method.name for method in METHODS}


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=list(SAMPLINGS.values()))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_held_out_combinations_are_in_no_batch(condition: str, sampling: Sampling) -> None:
    data = conditioned(TINY, condition)
    full, allowed = full_grid(data), data.allowed
    assert allowed is not None
    drawn = [host_factors(data, 40, Stream.of(0).at(step), sampling) for step in range(5)]
    on_device = device_factors(data, sampling, DEVICE)
    if on_device is not None:
        drawn += [points.cpu().numpy() for points in on_device(draws(3), ("batch",), 40)]
    if isinstance(sampling, Labels):
        host = HostBatches(data, torch.device("cpu"))
        drawn += [host.points(Stream.of(seed), sampling).factors for seed in SEEDS]
    factors = np.concatenate(drawn)
    assert allowed(factors).all()
    # What is held out exists, and the batches show more than a few combinations.
    assert not allowed(full.factors_at(np.arange(len(full)))).all()
    assert len(np.unique(full.index(factors))) > 5
