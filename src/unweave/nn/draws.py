"""Random numbers for a population on any device: the same as `unweave.streams`, one stream per run.

This is Philox4x32-10 on tensors. Products of 32-bit words are computed in int64: they wrap around, and the
upper half is right once the copies of the sign bit are masked. On CUDA a Triton kernel does the same in one
launch; on the CPU the compiled code of the streams does. The step is a tensor on the device, so that a
captured CUDA graph can increment it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unweave.errors import UnweaveError
from unweave.nn.kernels.dispatch import has_triton
from unweave.streams import Stream

_LOW = 0xFFFFFFFF
MOST_ROWS = 1 << 31  # that streams may skip

# Names of child streams: "a/b" and ("a", "b") are child("a", "b").
Purpose: TypeAlias = str | tuple[str | int, ...]


class PopulationDraws:
    """The streams of all runs of a population; draws are (P, rows, columns).

    Rows are counted from the first row of the streams, which is the same for all of them.
    """

    def __init__(self, streams: Sequence[Stream], step: Tensor) -> None:
        self.streams = tuple(streams)
        self.first = _first_row(self.streams)
        self.step = step  # int64, a single number, shared with the trainer that increments it
        # Cached, because nothing may be sent to the device while a CUDA graph is recorded.
        self._keys: dict[tuple[Purpose, ...], Tensor] = {}
        self._sizes: dict[tuple[int, ...], Tensor] = {}
        self._parts: dict[tuple[int, int], PopulationDraws] = {}

    def of_runs(self, first: int, last: int) -> PopulationDraws:
        """The draws of the runs first .. last - 1 alone."""
        if (first, last) not in self._parts:
            self._parts[first, last] = PopulationDraws(self.streams[first:last], self.step)
        return self._parts[first, last]

    def bits(self, purpose: Purpose, rows: int, columns: int) -> Tensor:
        """(P, rows, columns) words of 32 random bits, in int64."""
        return self._bits(self.keys(purpose), rows, columns)

    def _bits(self, keys: Tensor, rows: int, columns: int) -> Tensor:
        """(keys, rows, columns) words of 32 random bits."""
        if keys.device.type == "cuda" and has_triton():
            from unweave.nn.kernels.random import random_bits

            return random_bits(keys, self.step, rows, columns, self.first)
        if keys.device.type == "cpu":
            return stream_bits(keys, self.step, rows, columns, self.first)
        return philox_bits(keys, self.step, rows, columns, self.first)

    def bits_of(self, purposes: Sequence[Purpose], rows: int, columns: int) -> Tensor:
        """(purposes, P, rows, columns): the `bits` of several purposes, drawn at once."""
        keys = self.key_table(tuple(purposes))
        return self._bits(keys.flatten(), rows, columns).view(*keys.shape, rows, columns)

    def bytes(self, purpose: Purpose, rows: int, columns: int) -> Tensor:
        """(P, rows, columns) uint8 random bytes, as `Stream.bytes`."""
        words = self.bits(purpose, rows, -(-columns // 4))
        shifts = torch.arange(0, 32, 8, device=words.device)  # the lowest byte of a word comes first
        return (words.unsqueeze(-1) >> shifts & 0xFF).to(torch.uint8).flatten(-2)[..., :columns]

    def uniform(self, purpose: Purpose, rows: int, columns: int) -> Tensor:
        """(P, rows, columns) float32 in the open interval (0, 1), as `Stream.uniform`."""
        return _as_uniform(self.bits(purpose, rows, columns))

    def uniform_of(self, purposes: Sequence[Purpose], rows: int, columns: int) -> Tensor:
        """(purposes, P, rows, columns): the `uniform` numbers of several purposes, drawn at once."""
        return _as_uniform(self.bits_of(purposes, rows, columns))

    def normal(self, purpose: Purpose, rows: int, columns: int) -> Tensor:
        """(P, rows, columns) standard normal numbers in float32, as `Stream.normal`."""
        keys = self.keys(purpose)
        if keys.device.type == "cuda" and has_triton():
            from unweave.nn.kernels.random import random_normal

            return random_normal(keys, self.step, rows, columns, self.first)
        uniform = self.uniform(purpose, rows, 2 * -(-columns // 2))
        radius = torch.sqrt(-2 * torch.log(uniform[..., 0::2]))
        angle = 2 * math.pi * uniform[..., 1::2]
        pairs = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=-1)
        return pairs.flatten(-2)[..., :columns]

    def integers(self, purpose: Purpose, rows: int, sizes: Sequence[int]) -> Tensor:
        """(P, rows, len(sizes)) whole numbers, as `Stream.integers`."""
        return self.bits(purpose, rows, len(sizes)) * self._limits(sizes) >> 32

    def integers_of(self, purposes: Sequence[Purpose], rows: int, sizes: Sequence[int]) -> Tensor:
        """(purposes, P, rows, len(sizes)): the `integers` of several purposes, drawn at once."""
        return self.bits_of(purposes, rows, len(sizes)) * self._limits(sizes) >> 32

    def _limits(self, sizes: Sequence[int]) -> Tensor:
        key = tuple(sizes)
        if key not in self._sizes:
            self._sizes[key] = torch.tensor(key, dtype=torch.int64, device=self.step.device)
        return self._sizes[key]

    def permutations(self, purpose: Purpose, rows: int, length: int) -> Tensor:
        """(P, rows, length): a random order of 0 .. length - 1 in each row, as `Stream.permutations`."""
        high, low = self.bits(purpose, rows, 2 * length).split(length, dim=-1)
        # Sorting is signed: flipping the highest bit puts unsigned words in order.
        return torch.argsort((high ^ 0x80000000) << 32 | low, dim=-1, stable=True)

    def keys(self, purpose: Purpose) -> Tensor:
        """(P,) int64: the key of each run's stream for the purpose."""
        return self.key_table((purpose,))[0]

    def key_table(self, purposes: tuple[Purpose, ...]) -> Tensor:
        """(purposes, P) int64: the keys of several streams of each run."""
        if purposes not in self._keys:
            paths = [path_of(purpose) for purpose in purposes]
            keys = [[stream.child(*path).key for stream in self.streams] for path in paths]
            signed = [[key - (1 << 64) if key >> 63 else key for key in row] for row in keys]
            self._keys[purposes] = torch.tensor(signed, dtype=torch.int64, device=self.step.device)
        return self._keys[purposes]


def _first_row(streams: Sequence[Stream]) -> int:
    """The first row of all streams; kernels count rows in 32 bits."""
    rows = sorted({stream.first for stream in streams}) or [0]
    if len(rows) > 1 or rows[0] >= MOST_ROWS:
        raise UnweaveError(
            f"the streams of a population must start at the same row below {MOST_ROWS}; got rows "
            f"{', '.join(map(str, rows))}. Skip the same number of rows in all of them."
        )
    return rows[0]


def _as_uniform(bits: Tensor) -> Tensor:
    """Words of 32 random bits as float32 in the open interval (0, 1)."""
    return ((bits >> 9).float() + 0.5) * 2.0**-23


def path_of(purpose: Purpose) -> tuple[str | int, ...]:
    """The names of child streams, one after the other."""
    return tuple(purpose.split("/")) if isinstance(purpose, str) else purpose


def stream_bits(keys: Tensor, step: Tensor, rows: int, columns: int, first: int = 0) -> Tensor:
    """`philox_bits` of tensors on the CPU. A step of a small network draws several times faster."""
    words = np.empty((len(keys), rows, columns), np.int64)
    for run, key in enumerate(keys.tolist()):
        words[run] = Stream(key % 2**64, int(step) & _LOW, first).bits(rows, columns)
    return torch.from_numpy(words)


def philox_bits(keys: Tensor, step: Tensor, rows: int, columns: int, first: int = 0) -> Tensor:
    """(P, rows, columns) int64 words: Philox(counter (column block, `first` + row, 0, step), key)."""
    blocks = -(-columns // 4)
    shape = (len(keys), rows, blocks)
    c0 = torch.arange(blocks, device=keys.device).expand(shape)
    c1 = torch.arange(first, first + rows, device=keys.device)[:, None].expand(shape)
    c2, c3 = torch.zeros_like(c0), (step & _LOW).expand(shape)
    k0, k1 = (keys & _LOW)[:, None, None], (keys >> 32 & _LOW)[:, None, None]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32 & _LOW) ^ c1 ^ k0, p1 & _LOW, (p0 >> 32 & _LOW) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = k0 + 0x9E3779B9 & _LOW, k1 + 0xBB67AE85 & _LOW
    return torch.stack([c0, c1, c2, c3], dim=-1).flatten(2)[..., :columns]
