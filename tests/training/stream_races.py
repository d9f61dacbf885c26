"""A detector of races between CUDA streams that needs no GPU.

Work runs on the CPU, in order, with streams and events that only keep clocks. A clock has the number of the
last operation of each stream that has surely ended. An operation may read what another stream wrote only if
its stream has waited for that write. Memory goes back to the stream that allocated it, which uses it again at
once: so at its next allocation, that stream must have waited for all that other streams did with the memory.

torch's engine of gradients is part of the rules: a node runs on the stream of its forward pass, waits for the
nodes whose results it gets, and keeps their memory; the caller waits for the gradients. The gradients that it
starts from count as made by the caller's stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

Clock = dict[int, int]


def join(clock: Clock, other: Clock) -> None:
    for stream, time in other.items():
        clock[stream] = max(clock.get(stream, 0), time)


@dataclass
class Event:
    clock: Clock


@dataclass(eq=False)
class Stream:
    """In place of torch.cuda.Stream."""

    number: int
    clock: Clock = field(default_factory=dict)
    device: ClassVar[torch.device] = torch.device("cuda")

    def wait_stream(self, other: Stream) -> None:
        assert other.clock, "a graph may not wait for a stream that is not part of it"
        join(self.clock, other.clock)

    def wait_event(self, event: Event) -> None:
        join(self.clock, event.clock)

    def record_event(self) -> Event:
        return Event(dict(self.clock))


@dataclass(eq=False)
class Node:
    """A node of the graph of gradients."""

    stream: Stream  # of its forward pass
    done: Clock = field(default_factory=dict)  # when it has run


@dataclass(eq=False)
class Block:
    """The memory of a tensor."""

    reference: StorageWeakRef
    owner: Stream | None  # which allocated it; None: it outlives the steps
    accesses: Clock = field(default_factory=dict)  # the last of each stream
    written: tuple[Stream, int, str] | None = None  # the stream, the time and the operation of the last write
    producer: Node | None = None  # in the present backward pass
    is_kept: bool = False  # by the engine, until the streams that got it are done


class Races(TorchDispatchMode):
    """Notes what each stream reads, writes, allocates and frees; `found` are the races."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []
        self.main = Stream(0)
        self._streams = [self.main]
        self._entered: list[tuple[Stream, Node | None]] = []  # streams, and the nodes that chose them
        self._blocks: dict[int, Block] = {}
        self._freed: dict[Stream, list[Block]] = {}
        self._in_backward = False
        self.busy: set[int] = set()  # the numbers of the streams that Triton's kernels ran on

    def stream(self, *_: Any, **__: Any) -> Stream:
        self._streams.append(Stream(len(self._streams)))
        return self._streams[-1]

    @contextmanager
    def entered(self, stream: Stream) -> Iterator[None]:
        self._entered.append((stream, _running()))
        try:
            yield
        finally:
            self._entered.pop()

    def current(self, *_: Any) -> Stream:
        node = _running()
        for stream, chooser in reversed(self._entered):
            if chooser is node:
                return stream
        return self.main if node is None else node.stream

    def begin(self) -> None:
        """Start the first step; whatever exists outlives the steps."""
        self._sweep()
        for block in self._blocks.values():
            block.owner, block.written, block.accesses, block.producer = None, None, {}, None
        self._freed, self.found = {}, []

    def end(self) -> None:
        """End a step: the first stream must have waited for all others, or no graph could be recorded."""
        for stream in self._streams:
            if self.main.clock.get(stream.number, 0) < stream.clock.get(stream.number, 0):
                self.found.append(f"stream {stream.number} is not joined")

    def gradients(self, original: Any, *arguments: Any, **options: Any) -> Any:
        """torch.autograd.grad, which waits for the gradients that it starts from, and the caller for it."""
        for block in self._blocks.values():
            block.producer = None
        for block in map(self._block, _tensors([*arguments[2:], options.get("grad_outputs")])):
            block.producer = Node(self.current(), dict(self.current().clock))
        self._in_backward = True
        try:
            result = original(*arguments, **options)
        finally:
            self._in_backward = False
        for block in map(self._block, result):
            join(self.current().clock, block.producer.done if block.producer else {})
        return result

    def launched(self, original: Any, executor: Any, *arguments: Any, **options: Any) -> None:
        """A Triton kernel in the interpreter: it writes the tensors that differ afterwards."""
        with _disable_current_modes():
            tensors = _tensors((arguments, options))
            before = [_bytes(tensor).clone() for tensor in tensors]
            original(executor, *arguments, **options)
            changed = [x for x, old in zip(tensors, before, strict=True) if not torch.equal(_bytes(x), old)]
        self.busy.add(self.current().number)
        self._sweep()
        self._note(executor.fn.__name__, map(self._block, tensors), map(self._block, changed))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._sweep()
        inputs = {id(block): block for block in map(self._block, _tensors((args, kwargs)))}
        changed = {id(block): block for block in map(self._block, _changed(func, args, kwargs or {}))}
        known = set(self._blocks)
        result = func(*args, **(kwargs or {}))
        outputs = {id(block): block for block in map(self._block, _tensors(result))}
        if not changed and outputs and outputs.keys() <= inputs.keys():
            return result  # a view
        if not self._blocks.keys() <= known:
            self._reuse(str(func))
        new = {key: block for key, block in outputs.items() if key not in inputs}
        self._note(str(func), inputs.values(), (changed | new).values())
        return result

    def _note(self, name: str, used: Iterable[Block], written: Iterable[Block]) -> None:
        stream = self.current()
        stream.clock[stream.number] = stream.clock.get(stream.number, 0) + 1
        for block in used:
            self._read(block, stream, name)
        for block in written:
            self._write(block, stream, name)

    def _read(self, block: Block, stream: Stream, name: str) -> None:
        if self._in_backward and _running() is None:
            self._receive(block, stream)
        if block.written is not None:
            writer, time, operation = block.written
            if stream.clock.get(writer.number, 0) < time:
                writes = f"{operation} writes on stream {writer.number}"
                self.found.append(f"{name} on stream {stream.number} reads what {writes}")
        block.accesses[stream.number] = stream.clock[stream.number]

    def _write(self, block: Block, stream: Stream, name: str) -> None:
        for other, time in block.accesses.items():
            if stream.clock.get(other, 0) < time:
                self.found.append(f"{name} on stream {stream.number} overwrites what stream {other} uses")
        block.written = stream, stream.clock[stream.number], name
        block.accesses[stream.number] = stream.clock[stream.number]
        if self._in_backward:
            # The engine adds gradients up outside of nodes, for the node that gets the sum.
            block.producer = _running() or Node(stream, dict(stream.clock))

    def _receive(self, block: Block, stream: Stream) -> None:
        """Get a gradient from the engine, which lets the stream wait for the node that made it."""
        if block.producer is not None:
            join(stream.clock, block.producer.done)
            block.is_kept |= block.owner is not stream

    def _start(self, node: Node, gradients: Sequence[Any]) -> None:
        node.done.clear()
        for tensor in _tensors(gradients):
            self._receive(self._block(tensor), node.stream)

    def _reuse(self, name: str) -> None:
        """Allocate: all that was freed on this stream may be used again."""
        stream = self.current()
        for block in self._freed.pop(stream, []):
            for other, time in block.accesses.items():
                if not block.is_kept and stream.clock.get(other, 0) < time:
                    operation = block.written[2] if block.written else "an operation"
                    self.found.append(
                        f"{name} on stream {stream.number} may use the memory of a result of {operation} "
                        f"while stream {other} uses it"
                    )

    def _sweep(self) -> None:
        """Note which blocks were freed."""
        for key in [key for key, block in self._blocks.items() if block.reference.expired()]:
            block = self._blocks.pop(key)
            if block.owner is not None:
                self._freed.setdefault(block.owner, []).append(block)

    def _block(self, tensor: Tensor) -> Block:
        reference = StorageWeakRef(tensor.untyped_storage())
        if reference.cdata not in self._blocks:
            self._blocks[reference.cdata] = Block(reference, self.current())
        return self._blocks[reference.cdata]

    def note_nodes(self, result: Any) -> None:
        """A node of a gradient belongs to the stream of its forward pass."""
        nodes: list[Any] = [tensor.grad_fn for tensor in _tensors(result) if tensor.grad_fn is not None]
        while nodes:
            node = nodes.pop()
            if "noted" not in node.metadata:
                noted = node.metadata["noted"] = Node(self.current())
                node.register_prehook(lambda gradients, noted=noted: self._start(noted, gradients))
                node.register_hook(lambda *_, noted=noted: noted.done.update(noted.stream.clock))
                nodes += [following for following, _ in node.next_functions if following is not None]


class _Nodes(TorchFunctionMode):
    def __init__(self, races: Races) -> None:
        super().__init__()
        self.races = races

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.races.note_nodes(result)
        return result


def _running() -> Node | None:
    """The node that the engine runs now. When it is done, its results may be added to those of others."""
    node: Any = torch._C._current_autograd_node()
    noted: Node | None = None if node is None else node.metadata.get("noted")
    return None if noted is None or noted.done else noted


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _changed(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:
    """The arguments that an operation writes to."""
    arguments = func._schema.arguments
    given = {**dict(zip([a.name for a in arguments], args, strict=False)), **kwargs}
    return _tensors([given.get(a.name) for a in arguments if a.alias_info and a.alias_info.is_write])


@contextmanager
def streams_watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Races]:
    """Let the detector see streams, events, gradients and Triton's kernels."""
    races, grad = Races(), torch.autograd.grad
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "Stream", races.stream)
        patched.setattr(torch.cuda, "stream", races.entered)
        patched.setattr(torch.cuda, "current_stream", races.current)
        # As if everything were recorded: streams are recorded from their first wait on.
        patched.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(races.current().clock))
        patched.setattr(torch.autograd, "grad", lambda *a, **o: races.gradients(grad, *a, **o))
        try:
            from triton.runtime.interpreter import GridExecutor
        except ImportError:
            pass
        else:
            launch = GridExecutor.__call__
            patched.setattr(GridExecutor, "__call__", lambda *a, **o: races.launched(launch, *a, **o))
        with races, _Nodes(races):
            yield races
