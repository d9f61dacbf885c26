"""The decoder of a run, or of a user's torch module, as a list of steps that a page can compute.

torch.export records how one code is decoded, whatever the method does to it. What does not depend on the code
is computed here, and kept as a constant. What only moves numbers (views, slices, permutations) is a list of
places. The rest are steps of a few kinds, which pages/decoder.js knows.
"""

from __future__ import annotations

import copy
import io
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from unweave.errors import UnweaveError
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.runs.run import Run

# Names of torch's operations, by what becomes of them.
MOVES = {"_unsafe_view", "alias", "clone", "contiguous", "detach", "expand", "flatten", "permute", "reshape"}
MOVES |= {"select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unflatten"}
MOVES |= {"unsqueeze", "view"}
MAPS = {"abs", "clamp", "exp", "gelu", "leaky_relu", "log", "neg", "reciprocal", "relu", "round", "rsqrt"}
MAPS |= {"sigmoid", "sqrt", "tanh"}
PAIRS = {"add", "div", "eq", "maximum", "minimum", "mul", "sub"}
# Pages take the sigmoid of what a program makes; means of other likelihoods become logits within this range.
SMALLEST_MEAN = 1e-6
# These make numbers of a shape, whatever stands in it.
MADE = {"full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"}


@dataclass(frozen=True, eq=False)
class Program:
    """Steps in their order.

    Operands are numbers: 0 is the code, n is what step n makes, and -n the nth constant.
    """

    steps: list[dict[str, Any]]
    sizes: list[int]  # of the constants
    numbers: NDArray[np.float32]  # the constants, one after another
    result: int

    @property
    def words(self) -> dict[str, Any]:
        """All but the numbers, for a page."""
        return {"steps": self.steps, "sizes": self.sizes, "result": self.result}


@dataclass(frozen=True, eq=False)
class Placed:
    """Numbers that depend on the code: those of an operand at these places."""

    operand: int
    places: Tensor


Value: TypeAlias = "Placed | Tensor | float"


def program_of(run: Run) -> Program:
    """From a code (d,) to the logits of its mean image, (c, h, w), both in a row."""
    if not run.spec.method.exportable:
        raise UnweaveError(
            f"{run.spec.method.name} decodes in many passes, which a page cannot compute. Use unweave "
            "explore without --export."
        )
    return trace_program(_Decoding(Run(run.folder, "cpu")), run.spec.latents, run.spec.method.name)


def program_of_module(decoder: nn.Module, latents: int, name: str) -> Program:
    """The same for a user's decoder of codes (n, d), which returns images in [0, 1]."""
    return trace_program(
        _OwnDecoding(copy.deepcopy(decoder).cpu().eval().requires_grad_(False)), latents, name
    )


def trace_program(module: nn.Module, inputs: int, name: str) -> Program:
    """The steps that compute a module's output from one row of numbers; `name` is for error messages."""
    exported = _recorded(module, inputs, name)
    stored_names = exported.graph_signature.inputs_to_parameters | exported.graph_signature.inputs_to_buffers
    stored_names |= exported.graph_signature.inputs_to_lifted_tensor_constants
    tensors: dict[str, Tensor] = {**exported.constants, **exported.state_dict}
    writer = _Writer(name, [inputs])
    values: dict[fx.Node, Any] = {}
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            values[node] = (
                tensors[stored_names[node.name]]
                if node.name in stored_names
                else Placed(0, torch.arange(inputs))
            )
        elif node.op == "call_function":
            values[node] = writer.compute(node, values)
        else:
            [logits] = cast(list[Value], fx.node.map_arg(node.args[0], values.__getitem__))
    return writer.program(logits)


class _Decoding(nn.Module):
    """The decoding of one code by a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.method, self.parts = run.spec.method, nn.ModuleDict(run.networks)
        self.mean = likelihood_named(run.spec.likelihood).mean

    def forward(self, code: Tensor) -> Tensor:
        output = self.method.decode(dict(self.parts.items()), code[None, None])[0, 0]
        if self.mean is torch.sigmoid:
            return output
        return _logits(self.mean(output))


class _OwnDecoding(nn.Module):
    """The decoding of one code by a user's module."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, code: Tensor) -> Tensor:
        return _logits(self.decoder(code[None])[0])


def _logits(means: Tensor) -> Tensor:
    inside = means.clamp(SMALLEST_MEAN, 1 - SMALLEST_MEAN)
    return torch.log(inside / (1 - inside))


@torch.no_grad()
def _recorded(module: nn.Module, inputs: int, name: str) -> torch.export.ExportedProgram:
    # torch warns of itself, and prints what it has recorded before it says what it cannot record.
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            recorded = torch.export.export(module, (torch.zeros(inputs),), strict=False)
            whole: torch.export.ExportedProgram = recorded.run_decompositions({})
        except Exception as error:  # torch's errors about what it cannot record have no class in common
            raise UnweaveError(
                f"What {name} does to a code cannot be recorded: {str(error).strip().splitlines()[0]} "
                "Use unweave explore without --export."
            ) from error
    return whole


@dataclass
class _Writer:
    name: str
    sizes: list[int]  # of the code and of what the steps make
    steps: list[dict[str, Any]] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)

    def program(self, logits: Value) -> Program:
        result = self._operand(logits)
        sizes = [constant.numel() for constant in self.constants]
        numbers = [constant.flatten().float() for constant in self.constants]
        return Program(self.steps, sizes, torch.cat([torch.empty(0), *numbers]).numpy().astype("<f4"), result)

    def compute(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        """What a node gives: a constant, numbers placed, or several of these."""
        args: Any = fx.node.map_arg(node.args, values.__getitem__)
        options: Any = fx.node.map_arg(node.kwargs, values.__getitem__)
        target = cast(Callable[..., Any], node.target)
        name = target.__name__.partition(".")[0]
        if name == "_assert_tensor_metadata":
            return None
        if name == "getitem":
            return args[0][args[1]]
        if not any(isinstance(leaf, Placed) for leaf in _leaves(args)):
            return target(*args, **options)
        if name in MADE:
            return target(args[0].places.float(), *args[1:], **options)
        if name in MOVES:
            return _moved(target, *args)
        if name == "_to_copy" and options.get("dtype", torch.float32).is_floating_point:
            return args[0]  # all numbers are float32 there
        if name == "var_mean":
            return self.moments(*args, **options)
        if options or name not in PAIRS | MAPS | OTHERS.keys():
            raise self._unknown(name)
        if name in PAIRS:
            return self.pair(name, *args)
        return self.elementwise(name, *args) if name in MAPS else OTHERS[name](self, *args)

    def elementwise(self, name: str, x: Placed, *settings: float | None) -> Placed:
        return self._add({"do": "each", "which": name, "settings": list(settings)}, [x], x.places.shape)

    def pair(self, name: str, a: Value, b: Value) -> Placed:
        """Both are spread over the larger shape: along axes that are missing they do not move."""
        a, b = (operand if isinstance(operand, Placed) else torch.as_tensor(operand) for operand in (a, b))
        shapes = [_shape(operand) for operand in (a, b)]
        shape = torch.broadcast_shapes(*shapes)
        strides = [torch.empty(own).expand(shape).stride() for own in shapes]
        return self._add(
            {"do": "pair", "which": name, "shape": list(shape), "strides": strides}, [a, b], shape
        )

    def add_product(self, x: Value, a: Value, b: Value) -> Placed:
        return self.pair("add", x, self.pair("mul", a, b))

    def subtract_from(self, x: Value, other: Value) -> Placed:
        return self.pair("sub", other, x)

    def join(self, parts: Sequence[Value], axis: int = 0) -> Placed:
        places, before = [], 0
        for part in parts:
            shape = _shape(part)
            places.append(before + torch.arange(shape.numel()).view(shape))
            before += shape.numel()
        taken = torch.cat(places, axis)
        return self._add({"do": "take", "places": taken.flatten().tolist()}, parts, taken.shape)

    def product(self, x: Value, weight: Value) -> Placed:
        """(..., inner) times (inner, columns); axes of length 1 may stand before the latter."""
        (*rows, inner), columns = _shape(x), _shape(weight)[-1]
        if _shape(weight).numel() != inner * columns:
            raise self._unknown("a batch of products")
        words = {"do": "product", "rows": math.prod(rows), "inner": inner, "columns": columns}
        return self._add(words, [x, weight], torch.Size([*rows, columns]))

    def mean(self, x: Placed, axes: Sequence[int], keepdim: bool = False) -> Placed:
        """The mean over some axes, as a product with equal weights."""
        order = [axis for axis in range(x.places.dim()) if axis not in {a % x.places.dim() for a in axes}]
        rows = x.places.movedim(order, list(range(len(order)))).flatten(len(order))
        sums = self.product(Placed(x.operand, rows), torch.full((rows.shape[-1], 1), 1 / rows.shape[-1]))
        shape = x.places.float().mean(tuple(axes), keepdim=keepdim).shape
        return Placed(sums.operand, sums.places.reshape(shape))

    def moments(
        self, x: Placed, axes: Sequence[int], correction: int, keepdim: bool
    ) -> tuple[Placed, Placed]:
        """Variance and mean over some axes, which stay as axes of length 1."""
        if correction or not keepdim:
            raise self._unknown("a variance with a correction or fewer axes")
        mean = self.mean(x, axes, keepdim=True)
        centred = self.pair("sub", x, mean)
        return self.mean(self.pair("mul", centred, centred), axes, keepdim=True), mean

    def dense(self, bias: Value, x: Value, weight: Value) -> Placed:
        return self.pair("add", self.product(x, weight), bias)

    def dense_of_torch(self, x: Value, weight: Tensor, bias: Tensor | None = None) -> Placed:
        product = self.product(x, weight.T)
        return product if bias is None else self.pair("add", product, bias)

    def convolved(
        self,
        x: Placed,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        *others: Any,
    ) -> Placed:
        """A convolution of stride 1: the same as a transposed one with its weights turned round."""
        usual = others == ([1, 1], 1)[: len(others)] and {*stride} == {1}  # dilation, groups
        if not usual or any(size - 1 < sides for size, sides in zip(weight.shape[2:], padding, strict=True)):
            raise self._unknown("a convolution with strides, groups or dilation")
        turned = weight.flip(2, 3).transpose(0, 1)
        margins = [size - 1 - sides for size, sides in zip(weight.shape[2:], padding, strict=True)]
        return self.transposed(x, turned, bias, stride, margins)

    def transposed(
        self,
        x: Placed,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        *others: Any,
    ) -> Placed:
        """The page adds up channels, which lie side by side there: weights are (kernel, kernel, in, out)."""
        images, inputs, height, width = x.places.shape
        outputs, kernel = weight.shape[1:3]
        unusual = others != ([0, 0], 1, [1, 1])[: len(others)]  # more at the edge, groups, dilation
        if images != 1 or unusual or any(len({*sides}) != 1 for sides in (stride, padding, weight.shape[2:])):
            raise self._unknown("a convolution of several images or groups, or of unequal sides")
        words = {"do": "transposed", "height": height, "width": width, "inputs": inputs, "outputs": outputs}
        words |= {"kernel": kernel, "stride": stride[0], "padding": padding[0]}
        high, wide = (stride[0] * (size - 1) + kernel - 2 * padding[0] for size in (height, width))
        of_channels = weight.new_zeros(outputs) if bias is None else bias
        operands = (x, weight.permute(2, 3, 0, 1), of_channels)
        return self._add(words, operands, torch.Size([1, outputs, high, wide]))

    def argmin(self, x: Placed, axis: int, keep: bool = False) -> Placed:
        if axis not in (-1, x.places.dim() - 1):
            raise self._unknown("argmin over any axis but the last")
        shape = x.places[..., :1].shape if keep else x.places[..., 0].shape
        return self._add({"do": "argmin", "among": x.places.shape[-1]}, [x], shape)

    def gather(self, x: Value, axis: int, index: Placed | Tensor) -> Placed:
        if isinstance(x, Placed) and isinstance(index, Tensor):
            return Placed(x.operand, x.places.gather(axis, index))
        if axis not in (-1, len(_shape(index)) - 1) or _shape(x)[:-1] != _shape(index)[:-1]:
            raise self._unknown("gather over any axis but the last")
        words = {"do": "gather", "among": _shape(x)[-1], "each": _shape(index)[-1]}
        return self._add(words, [x, index], _shape(index))

    def _add(self, words: dict[str, Any], operands: Sequence[Value], shape: torch.Size) -> Placed:
        made = self._append(words, [self._operand(operand) for operand in operands], shape.numel())
        return Placed(made, torch.arange(shape.numel()).view(shape))

    def _operand(self, value: Value) -> int:
        """The number of an operand that has these numbers and no others, in their order."""
        if not isinstance(value, Placed):
            self.constants.append(torch.as_tensor(value))
            return -len(self.constants)
        places = value.places.flatten()
        if torch.equal(places, torch.arange(self.sizes[value.operand])):
            return value.operand
        return self._append({"do": "take", "places": places.tolist()}, [value.operand], len(places))

    def _append(self, words: dict[str, Any], operands: list[int], size: int) -> int:
        self.steps.append(words | {"of": operands})
        self.sizes.append(size)
        return len(self.steps)

    def _unknown(self, what: str) -> UnweaveError:
        return UnweaveError(
            f"{self.name} decodes by {what}, which a page cannot compute. "
            "Use unweave explore without --export."
        )


def _shape(value: Value) -> torch.Size:
    return value.places.shape if isinstance(value, Placed) else torch.as_tensor(value).shape


def _leaves(args: Any) -> list[Any]:
    return [leaf for arg in args for leaf in (arg if isinstance(arg, list | tuple) else [arg])]


def _moved(move: Callable[..., Any], x: Placed, *how: Any) -> Placed | list[Placed]:
    # Numbers may lie otherwise in memory than torch's do, and there a view may need a copy.
    moved = x.places.reshape(*how) if "view" in move.__name__ else move(x.places, *how)
    if isinstance(moved, Tensor):
        return Placed(x.operand, moved)
    return [Placed(x.operand, part) for part in moved]


OTHERS: dict[str, Callable[..., Placed]] = {
    "addcmul": _Writer.add_product,
    "addmm": _Writer.dense,
    "argmin": _Writer.argmin,
    "baddbmm": _Writer.dense,
    "bmm": _Writer.product,
    "cat": _Writer.join,
    "conv2d": _Writer.convolved,
    "conv_transpose2d": _Writer.transposed,
    "gather": _Writer.gather,
    "linear": _Writer.dense_of_torch,
    "matmul": _Writer.product,
    "mean": _Writer.mean,
    "mm": _Writer.product,
    "rsub": _Writer.subtract_from,
}
