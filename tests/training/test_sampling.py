"""Batches of pairs, groups, sequences and labelled images: those of unweave.data.supervision, anywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.test_batches import DEVICE, SEEDS, SPRITES, TRUTHS, draws
from unweave.data import Card, Factor, GroundTruth, from_arrays
from unweave.data.grid import Factors, Images, Kind
from unweave.data.supervision import Binned, Noisy, Permuted, groups, labelled, pairs, sequences
from unweave.errors import UnweaveError
from unweave.methods.sampling import Groups, Labels, Pairs, Sampling, Sequences
from unweave.methods.sampling import Images as SingleImages
from unweave.streams import Stream
from unweave.training.batches import HostBatches, ResidentBatches
from unweave.training.factors import device_factors, host_factors

# Shown are the factors that these ground truths still have: not x, shape and scale where they are hidden.
SAMPLINGS: dict[str, Sampling] = {
    "images": SingleImages(),
    "one changed": Pairs(1),
    "pairs, random": Pairs("random"),
    "pairs, published, with labels": Pairs("published", labels=True),
    "groups of two": Groups(2, 1),
    "groups of three, with labels": Groups(3, ("y",), labels=True),
    "groups of the first": Groups(4, 1, chosen="first"),
    "groups with labels of shared factors": Groups(2, ("y",), labels="shared"),
    "alone": Groups(1, ()),
    "sequences": Sequences(5, ("y",)),
    "quick sequences": Sequences(3, 1, step=2),
    "independent frames": Sequences(3, 1, step=None),
    "labels": Labels(7),
    "noisy labels": Labels(30, Noisy(0.5)),
}
SHOWN = ("sprites", "colour", "scream", "noise", "hidden", "hidden, then noise")


def expected_factors(truth: GroundTruth, stream: Stream, size: int, sampling: Sampling) -> Factors:
    """The factors of a batch in the order of its images, written out once more."""
    if isinstance(sampling, Pairs):
        drawn = pairs(truth, size, stream, sampling.changed)
        return np.concatenate([[one, two] for one, two in zip(drawn.first, drawn.second, strict=True)])
    if isinstance(sampling, Groups):
        shared = [truth.factors[0].name] if sampling.chosen == "first" else sampling.shared
        return np.concatenate(list(groups(truth, size, sampling.together, shared, stream).factors))
    if isinstance(sampling, Sequences):
        held = [truth.factors[0].name] if sampling.content == 1 else sampling.content
        assert not isinstance(held, int)
        return np.concatenate(list(sequences(truth, size, sampling.together, held, stream, sampling.step)))
    return truth.sample_factors(size, stream)


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
@pytest.mark.parametrize("name", ["sprites", "hidden, then noise"])
def test_the_host_draws_what_the_supervision_draws(name: str, sampling: Sampling) -> None:
    truth, size, step = TRUTHS[name], 6, 12
    batch = HostBatches(truth, DEVICE).draw(draws(step), step, "batch", size, sampling)
    for run, seed in enumerate(SEEDS):
        stream = Stream.of(seed).child("batch").at(step)
        factors = expected_factors(truth, stream, size, sampling)
        assert len(factors) == size * sampling.together
        np.testing.assert_array_equal(batch.images[run].cpu().numpy(), truth.observe(factors, stream))
        if isinstance(sampling, Labels):
            chosen = stream.child("labelled")
            points = labelled(
                truth, sampling.points, Stream.of(seed).child("labelled points"), sampling.labeller
            )
            index = chosen.integers(size, [sampling.points])[:, 0]
            images = truth.observe(points.factors[index], chosen)
            assert batch.labelled is not None
            np.testing.assert_array_equal(batch.labelled.index[run].cpu().numpy(), index)
            np.testing.assert_array_equal(batch.labelled.labels[run].cpu().numpy(), points.labels[index])
            np.testing.assert_array_equal(batch.labelled.images[run].cpu().numpy(), images)
        if isinstance(sampling, Pairs | Groups) and sampling.labels:
            assert batch.labels is not None
            known = factors if sampling.labels is True else factors[:, [truth.position("y")]]
            np.testing.assert_array_equal(batch.labels[run].cpu().numpy(), known)
        else:
            assert batch.labels is None


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
@pytest.mark.parametrize("name", SHOWN)
def test_the_device_draws_what_the_host_draws(name: str, sampling: Sampling) -> None:
    truth = TRUTHS[name]
    resident, host = ResidentBatches(truth, DEVICE), HostBatches(truth, DEVICE)
    assert resident.on_device(sampling)
    assert not host.on_device(sampling)
    assert resident.label_sizes(sampling) == host.label_sizes(sampling)
    for step, purpose, size in ((0, "batch", 1), (299_999, "other batch", 9)):
        one = resident.draw(draws(step), step, purpose, size, sampling)
        other = host.draw(draws(step), step, purpose, size, sampling)
        for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
            assert mine.dtype == theirs.dtype
            assert torch.equal(mine, theirs)
        assert one.images.permute(0, 1, 3, 4, 2).is_contiguous(), "channels-last"


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
def test_a_part_of_a_population_draws_its_own(sampling: Sampling) -> None:
    source = ResidentBatches(TRUTHS["colour"], DEVICE)
    whole = source.draw(draws(7), 7, "batch", 5, sampling)
    part = source.draw(draws(7).of_runs(1, 3), 7, "batch", 5, sampling)
    for mine, theirs in zip(part.tensors(), whole.tensors(), strict=True):
        assert torch.equal(mine, theirs[1:])


@pytest.mark.skipif(DEVICE.type != "cuda", reason="recording a graph needs a GPU")
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
def test_batches_can_be_part_of_a_cuda_graph(sampling: Sampling) -> None:
    truth, population = TRUTHS["hidden, then noise"], draws(0)
    source, host = ResidentBatches(truth, DEVICE), HostBatches(truth, DEVICE)
    source.draw(population, 0, "batch", 6, sampling)  # sends constants to the device before recording
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        batch = source.draw(population, 0, "batch", 6, sampling)
        population.step += 1
    for step in range(3):
        graph.replay()
        expected = host.draw(population, step, "batch", 6, sampling)
        for mine, theirs in zip(batch.tensors(), expected.tensors(), strict=True):
            assert torch.equal(mine, theirs)


KINDS: tuple[Kind, ...] = ("categorical", "ordinal", "circular")


@st.composite
def truths(draw: st.DrawFn) -> GroundTruth:
    """Some factors of all kinds and sizes; the test needs no images."""
    several = st.lists(st.integers(1, 5), min_size=2, max_size=5)
    sizes = draw(several.filter(lambda sizes: sum(size > 1 for size in sizes) > 1))
    kinds = [draw(st.sampled_from(KINDS)) for _ in sizes]
    kinds[sizes.index(max(sizes))] = "ordinal"  # something can move
    factors = tuple(
        Factor(f"f{i}", size, kind) for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    )

    def render(wanted: Factors, _stream: Stream) -> Images:
        raise AssertionError(wanted)

    return GroundTruth("made up", factors, (1, 4, 4), render, Card("t", "none", ""), "made up")


@given(
    truths(),
    st.sampled_from(
        [
            Pairs(1),
            Pairs(2),
            Pairs("random"),
            Pairs("published"),
            Groups(3, 1),
            Groups(2, 2),
            Groups(3, 2, chosen="first"),
            Sequences(1, ()),
            Sequences(9, ()),
            Sequences(6, (), step=3),
            SingleImages(),
        ]
    ),
    st.integers(1, 40),
    st.integers(0, 300_000),
)
@settings(deadline=None, max_examples=80)
def test_factors_on_a_device_are_those_of_the_host(
    truth: GroundTruth, sampling: Sampling, size: int, step: int
) -> None:
    population = draws(step)
    draw = device_factors(truth, sampling, DEVICE)
    assert draw is not None
    actual = draw(population, ("batch",), size).cpu().numpy()
    for run, seed in enumerate(SEEDS):
        stream = Stream.of(seed).child("batch").at(step)
        np.testing.assert_array_equal(actual[run], host_factors(truth, size, stream, sampling))


@pytest.mark.parametrize("changed", [1, 3, "random", "published"])
def test_a_pair_on_a_device_always_differs(changed: int | str) -> None:
    draw = device_factors(SPRITES, Pairs(changed), DEVICE)  # type: ignore[arg-type]
    assert draw is not None
    first, second = draw(draws(3), ("batch",), 3_000).unflatten(1, (-1, 2)).unbind(2)
    differ = (first != second).sum(-1)
    assert set(differ.unique().tolist()) == ({changed} if isinstance(changed, int) else {1, 2, 3, 4})


@pytest.mark.parametrize(
    ("sampling", "text"),
    [
        (Pairs(6), "so 1 to 5 factors can change; got changed=6"),
        (Groups(2, 6), "can share 0 to 5 of them; got shared=6"),
        (Groups(2, 6, chosen="first"), "has 5 factors, of which a group cannot share 6"),
        (Groups(2, ("weight",)), 'has no factor "weight"'),
        (Sequences(3, ("scale", "orientation", "x", "y")), "nothing of dsprites can move"),
        (Sequences(0, ()), "the length of a sequence must be a whole number >= 1; got 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused_everywhere(sampling: Sampling, text: str) -> None:
    for source in (ResidentBatches(SPRITES, DEVICE), HostBatches(SPRITES, DEVICE)):
        with pytest.raises(UnweaveError, match=text):
            source.draw(draws(0), 0, "batch", 4, sampling)


def test_labels_of_all_labellers_have_their_sizes() -> None:
    for labeller, sizes in ((Permuted(), SPRITES.sizes), (Binned(2), (2, 2, 2, 2, 2))):
        sampling = Labels(5, labeller)
        source = ResidentBatches(SPRITES, DEVICE)
        assert source.label_sizes(sampling) == sizes
        labelled_batch = source.draw(draws(1), 1, "batch", 50, sampling).labelled
        assert labelled_batch is not None
        actual = labelled_batch.labels
        assert actual.shape == (3, 50, 5)
        assert (actual.cpu() < torch.tensor(sizes)).all()


def test_a_collection_gives_single_images_only() -> None:
    collection = from_arrays(Stream.of(0).bytes(20, 3 * 16).reshape(20, 4, 4, 3))
    with pytest.raises(UnweaveError, match="from which no pairs can be drawn"):
        HostBatches(collection, DEVICE).draw(draws(0), 0, "batch", 4, Pairs())
