"""Which variable depends on which: factorisations of q(y, z|x) and p(x, y, z), read from a text.

    >>> graph = graph_of("q(z|x) q(y|x,z)", "p(y) p(z) p(x|y,z)").of_labels(2)
    >>> [(node.name, node.parents) for node in graph.inference]
    [('z', ('x',)), ('y1', ('x', 'z')), ('y2', ('x', 'z'))]

x is the image. Names with z are Gaussian. y1, y2, ... are the labels, in their order; y stands for all of
them, which are conditionally independent given their parents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unweave.errors import UnweaveError

IMAGE, LABELS = "x", "y"
EXAMPLE = '"q(z|x) q(y|x,z)" with "p(y) p(z) p(x|y,z)"'


@dataclass(frozen=True)
class Node:
    """A variable, and the parents of its distribution."""

    name: str
    parents: tuple[str, ...]

    @property
    def is_label(self) -> bool:
        """Whether it is a label; otherwise it is Gaussian or the image."""
        return self.name.startswith(LABELS)


@dataclass(frozen=True)
class Graph:
    """Both factorisations, parents before children; the image comes last in `generation`."""

    inference: tuple[Node, ...]
    generation: tuple[Node, ...]

    @property
    def gaussian(self) -> tuple[str, ...]:
        """Names of the Gaussian variables."""
        return tuple(node.name for node in self.inference if not node.is_label)

    def of_labels(self, count: int) -> Graph:
        """The graph with y replaced by y1, y2, ...; each label must have a variable."""
        numbered = tuple(f"{LABELS}{number}" for number in range(1, count + 1))
        expanded = Graph(_spread(self.inference, numbered), _spread(self.generation, numbered))
        named = {node.name for node in expanded.inference if node.is_label}
        if named != set(numbered):
            raise UnweaveError(
                f"the factorisation has {', '.join(sorted(named))} for {count} labels. Name each of "
                f"{', '.join(numbered)}, or write y for all of them."
            )
        return expanded


def graph_of(inference: str, generation: str) -> Graph:
    """The graph of two texts, in which parents must come before children."""
    graph = Graph(_nodes("q", inference, (IMAGE,)), _nodes("p", generation, ()))
    hidden = sorted(node.name for node in graph.inference)
    if graph.generation[-1].name != IMAGE:
        raise UnweaveError(f'p must end in p(x|...), the image; got "{generation}". An example: {EXAMPLE}.')
    if hidden != sorted(node.name for node in graph.generation[:-1]):
        raise UnweaveError(
            f'q and p must have the same variables besides x; got "{inference}", "{generation}".'
        )
    labels = {node.name for node in graph.inference if node.is_label}
    if not labels or len(labels) == len(hidden) or (LABELS in labels and len(labels) > 1):
        raise UnweaveError(
            f"a factorisation needs labels, y or y1, y2, ..., and a Gaussian z; got {', '.join(hidden)}."
        )
    return graph


def _nodes(letter: str, text: str, known_before: tuple[str, ...]) -> tuple[Node, ...]:
    factor = rf"{letter}\(\s*(x|y\d*|z\w*)\s*(?:\|([\w\s,]*))?\)"
    if not re.fullmatch(rf"\s*({factor}\s*)+", text):
        raise UnweaveError(
            f"a factorisation of {letter} is a product of {letter}(child|parents), of x, y, y1, y2, z, "
            f'z1, ...; got "{text}". An example: {EXAMPLE}.'
        )
    nodes, known = list[Node](), list(known_before)
    for name, parents in re.findall(factor, text):
        before = tuple(re.findall(r"\w+", parents))
        if name in known:
            raise UnweaveError(f'{name} can be a child once, and x only in p; got "{text}".')
        for parent in before:
            if parent not in known:
                raise UnweaveError(f'{parent} must come before {name}, which depends on it; got "{text}".')
        nodes.append(Node(name, before))
        known.append(name)
    return tuple(nodes)


def _spread(nodes: tuple[Node, ...], numbered: tuple[str, ...]) -> tuple[Node, ...]:
    def named(name: str) -> tuple[str, ...]:
        return numbered if name == LABELS else (name,)

    return tuple(
        Node(name, tuple(expanded for parent in node.parents for expanded in named(parent)))
        for node in nodes
        for name in named(node.name)
    )
