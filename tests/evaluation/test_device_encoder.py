"""Images that the encoding device makes: the bytes of the host, and the same scores to the last bit."""

import gc
import weakref
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import unweave
from training.test_batches import DEVICE, TRUTHS
from training.tiny import TINY
from unweave.data import GroundTruth, variants
from unweave.data.supervision.restrict import hold_out
from unweave.evaluation import device_encoder, likelihoods, sources
from unweave.evaluation.device_encoder import DeviceEncoder, can_make_images, make_images
from unweave.evaluation.encoders import encoder_of, factor_encoder
from unweave.evaluation.evaluate import Effort, source_of
from unweave.evaluation.measuring import measure_source
from unweave.evaluation.parts import Part
from unweave.evaluation.posteriors import EncodeFactors, Posterior
from unweave.evaluation.scores import Scores
from unweave.evaluation.sources import GroundTruthSource
from unweave.metrics.lookup import metrics_named
from unweave.runs.run import Run
from unweave.streams import Stream
from unweave.training import image_tables
from unweave.training.image_tables import image_table

EFFORT = Effort(points=(200, 100), jobs=2)


def small_truth() -> GroundTruth:
    return variants.hide(variants.colour(TINY, "tiny in colour"), ["x"], "tiny in colour, x hidden")


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return small_truth()


@pytest.fixture(scope="module")
def run(truth: GroundTruth, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return unweave.train(unweave.methods.VAE(), truth, out=folder, steps=3, batch=4, latents=3, device="cpu")


@pytest.mark.parametrize("name", TRUTHS)
def test_images_are_those_of_the_host_however_rows_are_split(name: str) -> None:
    truth = TRUTHS[name]
    table = image_table(truth, DEVICE)
    for seed, step, first, sizes in ((0, 0, 0, (7,)), (8, 299_999, 2_047, (1, 5, 3)), (8, 2, 6, (4, 2))):
        stream = Stream.of(seed).child("metric").at(step).skip(first)
        factors = truth.sample_factors(sum(sizes), stream)
        ends = np.cumsum([0, *sizes])
        parts = [
            make_images(table, factors[start:end], stream.skip(int(start))) for start, end in pairwise(ends)
        ]
        assert all(part.is_contiguous() for part in parts), "as images that come from the host"
        np.testing.assert_array_equal(torch.cat(parts).cpu().numpy(), truth.observe(factors, stream))


def scores(run: Run, truth: GroundTruth, kind: str, on: Part, on_device: bool) -> Scores:
    source = source_of(run, EFFORT, data=truth, on=on)
    assert isinstance(source, GroundTruthSource)
    if on_device:
        source.encode_factors = DeviceEncoder(run, truth)
    return measure_source(source, metrics_named("mig, sap"), kind, EFFORT, "run")


@pytest.mark.parametrize("kind", ["mean", "sampled"])
def test_scores_are_those_of_the_host(run: Run, truth: GroundTruth, kind: str) -> None:
    host, device = (scores(run, truth, kind, "training", on_device) for on_device in (False, True))
    assert dict(device) == dict(host)
    assert list(host) == ["mig", "sap"]
    assert device.images == host.images > 300


def test_held_out_combinations_are_made_there_too(run: Run, truth: GroundTruth) -> None:
    restricted = hold_out(truth, [{"size": 0, "y": 0}])
    host, device = (scores(run, restricted, "mean", "held_out", on_device) for on_device in (False, True))
    assert dict(device) == dict(host)
    assert device.images == host.images


def test_posteriors_are_the_same_bits_in_parts_of_any_row(
    run: Run, truth: GroundTruth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihoods, "CHUNK", 13)
    monkeypatch.setattr(sources, "CHUNK", 13)
    host = GroundTruthSource(encoder_of(run), truth)
    device = replace(host, encode_factors=DeviceEncoder(run, truth))
    for of_host, of_device in zip(host.encode_grid(), device.encode_grid(), strict=True):
        np.testing.assert_array_equal(of_device, of_host)
    stream = Stream.of(1).at(4).skip(5)
    factors = truth.sample_factors(30, stream)
    expected, codes = (source.interventions("sampled").encode(factors, stream) for source in (host, device))
    np.testing.assert_array_equal(codes, expected)


class OnGpu:
    """A run that says that it is on a GPU."""

    device = torch.device("cuda")

    def __init__(self, run: Run) -> None:
        self.spec, self.posterior = run.spec, run.posterior


def test_who_makes_the_images(run: Run, truth: GroundTruth, monkeypatch: pytest.MonkeyPatch) -> None:
    room = 3 * 4 * 5 * 32 * 32 // 8 * 10  # ten times the table of the white squares, as bits
    monkeypatch.setattr(image_tables, "free_memory", lambda _: room)
    assert isinstance(factor_encoder(OnGpu(run), truth), DeviceEncoder)
    assert factor_encoder(run, truth) is None, "on a CPU"
    assert factor_encoder(lambda images: images, truth) is None, "no run"
    assert factor_encoder(OnGpu(run), TINY) is None, "its grid is encoded once"
    assert factor_encoder(OnGpu(run), replace(TINY, stochastic=True)) is None, "what it draws is not known"
    room -= 1
    assert factor_encoder(OnGpu(run), truth) is None, "too large"


def test_a_table_is_shared_and_freed_with_its_ground_truth(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_tables, "free_memory", lambda _: 0)
    truth, cpu = small_truth(), torch.device("cpu")
    assert not can_make_images(truth, cpu)
    stream = Stream.of(0)
    factors = truth.sample_factors(2, stream)
    DeviceEncoder(run, truth)(factors, stream)
    assert can_make_images(truth, cpu), "the table is there already"
    [table] = device_encoder._tables[truth].values()
    DeviceEncoder(run, truth)(factors, stream)
    assert [*device_encoder._tables[truth].values()] == [table]
    gone = weakref.ref(table)
    del truth, table
    gc.collect()
    assert gone() is None


def test_evaluate_uses_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    host = unweave.evaluate(run, metrics="mig", points=(200, 100))
    made: list[int] = []

    def on_device(run: Run, truth: GroundTruth) -> EncodeFactors:
        def encode(factors: NDArray[np.int64], stream: Stream) -> Posterior:
            made.append(len(factors))
            return DeviceEncoder(run, truth)(factors, stream)

        return encode

    monkeypatch.setattr(import_module("unweave.evaluation.evaluate"), "factor_encoder", on_device)
    device = unweave.evaluate(run, metrics="mig", points=(200, 100))
    assert dict(device) == dict(host)
    assert sum(made) == device.images == host.images
