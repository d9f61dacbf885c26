"""What a step would send from the host to the device, which a CUDA graph cannot record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Watch(TorchDispatchMode):
    """Notes the operations with a tensor that is neither known nor made by another operation.

    Such a tensor was made of Python numbers, as a list that is an index.
    """

    def __init__(self, known: Sequence[Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = {id(tensor): tensor for tensor in known}  # they must not end, or ids would be used again
        self.found: list[str] = []

    def __torch_dispatch__(
        self,
        operation: Callable[..., Any],
        _types: Sequence[type],
        arguments: Sequence[Any] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        result = operation(*arguments, **(options or {}))
        taken = _tensors((arguments, options))
        made_of_numbers = [tensor for tensor in taken if tensor.dim() and id(tensor) not in self.known]
        if made_of_numbers or ("_to_copy" in str(operation) and _moves(taken, _tensors(result))):
            self.found.append(str(operation))
        self.known |= {id(tensor): tensor for tensor in (*taken, *_tensors(result))}
        return result


def sent_by(step: Callable[[], object]) -> list[str]:
    """Operations with tensors of the host, in a step that was made before and keeps what it can."""
    first = _Watch()
    with first:
        step()
    second = _Watch(list(first.known.values()))
    with second:
        step()
    return second.found


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _moves(taken: Sequence[Tensor], made: Sequence[Tensor]) -> bool:
    return {tensor.device for tensor in taken} != {tensor.device for tensor in made}
