"""Factorisations as texts, and networks for them."""

import pytest
import torch

from unweave.errors import UnweaveError
from unweave.nn.distributions.categorical import Categorical, indicators
from unweave.nn.distributions.gaussian import Gaussian
from unweave.nn.networks.graph import Graph, graph_of
from unweave.nn.networks.graph_network import GraphNetwork
from unweave.streams import Stream

SHAPE = (1, 32, 32)


def parents(graph: Graph) -> dict[str, tuple[str, ...]]:
    return {node.name: node.parents for node in graph.inference}


def test_y_stands_for_all_labels() -> None:
    graph = graph_of("q(z1|x) q(y|x, z1) q(z2|y)", "p(z2) p(z1|z2) p(y|z1) p(x|y,z1)").of_labels(2)
    assert parents(graph) == {"z1": ("x",), "y1": ("x", "z1"), "y2": ("x", "z1"), "z2": ("y1", "y2")}
    assert [node.parents for node in graph.generation] == [(), ("z2",), ("z1",), ("z1",), ("y1", "y2", "z1")]
    assert graph.gaussian == ("z1", "z2")


def test_labels_may_have_their_own_parents() -> None:
    graph = graph_of("q(y2|x) q(y1|x,y2) q(z|x)", "p(z) p(y1) p(y2|y1) p(x|y1,y2,z)").of_labels(2)
    assert parents(graph) == {"y2": ("x",), "y1": ("x", "y2"), "z": ("x",)}


BAD = [
    ("q(z|x), q(y|x)", "p(y) p(z) p(x|y,z)", r"a factorisation of q is a product of q\(child\|parents\)"),
    ("q(z|x) q(w|x)", "p(z) p(w) p(x|z)", "a factorisation of q is a product"),
    ("", "p(y) p(z) p(x|y,z)", "a factorisation of q is a product"),
    ("p(z|x) q(y|x)", "p(y) p(z) p(x|y,z)", "a factorisation of q is a product"),
    ("q(z|x,y) q(y|x)", "p(y) p(z) p(x|y,z)", "y must come before z, which depends on it"),
    ("q(y|x) q(z|x) q(y|z)", "p(y) p(z) p(x|y,z)", "y can be a child once"),
    ("q(y|x) q(z|x) q(x|z)", "p(y) p(z) p(x|y,z)", "x can be a child once, and x only in p"),
    ("q(y|x) q(z|x)", "p(y) p(z)", r"p must end in p\(x\|...\), the image"),
    ("q(y|x) q(z|x)", "p(y) p(x|y)", "q and p must have the same variables besides x"),
    (
        "q(z1|x) q(z2|x)",
        "p(z1) p(z2) p(x|z1,z2)",
        "needs labels, y or y1, y2, ..., and a Gaussian z; got z1, z2",
    ),
    ("q(y|x)", "p(y) p(x|y)", "needs labels, y or y1, y2, ..., and a Gaussian z; got y"),
    ("q(y|x) q(y1|x) q(z|x)", "p(y) p(y1) p(z) p(x|y,z)", "needs labels, y or y1"),
]


@pytest.mark.parametrize(("inference", "generation", "text"), BAD)
def test_a_bad_factorisation_is_refused(inference: str, generation: str, text: str) -> None:
    with pytest.raises(UnweaveError, match=text):
        graph_of(inference, generation)


def test_each_label_needs_a_variable() -> None:
    graph = graph_of("q(y1|x) q(z|x)", "p(y1) p(z) p(x|y1,z)")
    with pytest.raises(UnweaveError, match=r"has y1 for 2 labels\. Name each of y1, y2, or write y"):
        graph.of_labels(2)


def network(runs: int = 2, latents: int = 6) -> GraphNetwork:
    graph = graph_of("q(z1|x) q(y|x,z1) q(z2|y)", "p(y) p(z2) p(z1|y,z2) p(x|y,z1)")
    streams = [Stream.of(seed) for seed in range(runs)]
    return GraphNetwork(streams, SHAPE, latents, "released", graph, (3, 4))


def images(runs: int = 2, count: int = 5) -> torch.Tensor:
    numbers = [Stream.of(seed).child("images").uniform(count, 32 * 32) for seed in range(runs)]
    return torch.stack([torch.from_numpy(run).float().view(count, *SHAPE) for run in numbers])


def test_the_code_has_a_dimension_for_each_label_and_the_rest_for_gaussians() -> None:
    model = network()
    assert model.widths == {"y1": 3, "y2": 4, "z1": 2, "z2": 2}
    assert network(latents=7).widths == {"y1": 3, "y2": 4, "z1": 3, "z2": 2}
    code = model.encode(images())
    assert code.mean.shape == code.log_var.shape == (2, 5, 6)
    assert model.decode(code.mean).shape == (2, 5, *SHAPE)
    with pytest.raises(
        UnweaveError, match="2 labels and 2 Gaussian variables needs at least 4 latents; got 3"
    ):
        network(latents=3)


def test_the_code_is_that_of_each_variable_given_the_means_of_those_before_it() -> None:
    model, batch = network(), images()
    features = model.image_features(batch)
    z1, y1, y2, z2 = model.graph.inference
    first = model.infer(z1, features, {})
    assert isinstance(first, Gaussian)
    labels = [model.infer(node, features, {"z1": first.mean}) for node in (y1, y2)]
    assert isinstance(labels[0], Categorical)
    assert isinstance(labels[1], Categorical)
    known = {
        f"y{j + 1}": q.log_probabilities.exp() for j, q in enumerate(labels) if isinstance(q, Categorical)
    }
    second = model.infer(z2, features, known)
    assert isinstance(second, Gaussian)
    expected = torch.cat(
        [labels[0].as_code().mean, labels[1].as_code().mean, first.mean, second.mean], dim=-1
    )
    torch.testing.assert_close(model.encode(batch).mean, expected)


def test_variables_without_parents_have_the_usual_priors() -> None:
    model = network()
    values = {"y1": torch.zeros(2, 5, 3), "y2": torch.zeros(2, 5, 4), "z2": torch.zeros(2, 5, 2)}
    by_name = {node.name: node for node in model.graph.generation}
    label, normal = model.generate(by_name["y2"], values), model.generate(by_name["z2"], values)
    assert isinstance(label, Categorical)
    assert isinstance(normal, Gaussian)
    torch.testing.assert_close(label.log_probabilities.exp(), torch.full((2, 5, 4), 0.25))
    assert not normal.mean.any()
    assert not normal.log_var.any()


def test_the_likelihood_of_several_samples_is_that_of_each() -> None:
    model, batch = network(), images(count=3)
    labels = torch.tensor([[0, 1, 2, 0, 0, 2]]).expand(2, -1)
    values = {
        "y1": indicators(labels, 3, batch),
        "y2": indicators(labels, 4, batch),
        "z1": torch.arange(24.0).view(2, 6, 2) / 10,
    }
    actual = model.log_likelihood(values, batch, "bernoulli")
    assert actual.shape == (2, 2, 3)
    logits = model.decoder(torch.cat([values["y1"], values["y2"], values["z1"]], dim=-1))
    one = torch.distributions.Bernoulli(logits=logits[1, 4]).log_prob((batch[1, 1] > 0.5).float()).sum()
    hard = model.log_likelihood(values, (batch > 0.5).float(), "bernoulli")
    torch.testing.assert_close(hard[1, 1, 1], one)


def test_runs_do_not_mix() -> None:
    both, batch = network(runs=2), images(runs=2)
    graph = graph_of("q(z1|x) q(y|x,z1) q(z2|y)", "p(y) p(z2) p(z1|y,z2) p(x|y,z1)")
    alone = GraphNetwork([Stream.of(1)], SHAPE, 6, "released", graph, (3, 4))
    torch.testing.assert_close(both.encode(batch).mean[1:], alone.encode(batch[1:]).mean)
