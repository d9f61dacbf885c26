"""Random streams: numbers addressed by (seed, purpose, step, row, column), never drawn from a state.

A stream is a pure function. Row r of a stream is the same whether it is asked for alone, in a batch of
64 or in a million rows, before or after any other call, so a result never depends on batch size, on
the order of calls, or on what else runs at the same time.

The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
ten rounds of 32-bit multiplications, which run alike on a CPU and on a GPU. The 64-bit key is a hash of
the seed and of the purposes; the 128-bit counter is (column block, row low, row high, step).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.errors import UnweaveError

# How many rows from the first on, or the numbers of the rows.
Rows: TypeAlias = int | NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """A table of random numbers with unlimited rows: a pure function of seed, purpose, step, row and column.

    >>> stream = Stream.of(0).child("colour")
    >>> bool((stream.uniform(100, 3)[40:50] == stream.skip(40).uniform(10, 3)).all())
    True
    """

    key: int
    step: int = 0
    first: int = 0

    @classmethod
    def of(cls, seed: int | Stream) -> Stream:
        """The root stream of a seed; a stream is returned as it is."""
        if isinstance(seed, Stream):
            return seed
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise UnweaveError(
                f"seed must be a whole number >= 0 or a Stream; got {seed!r}. Pass for example seed=0."
            )
        return cls(_hash(b"seed", int(seed)))

    def child(self, *purpose: str | int) -> Stream:
        """An independent stream for a named purpose, at the same step and first row."""
        key = self.key
        for name in purpose:
            key = _hash(key.to_bytes(8, "little"), name)
        return replace(self, key=key)

    def at(self, step: int) -> Stream:
        """The same stream at another step of training."""
        return replace(self, step=int(step))

    def skip(self, rows: int) -> Stream:
        """The same stream, seen from a later row on."""
        return replace(self, first=self.first + int(rows))

    def bits(self, rows: Rows, columns: int) -> NDArray[np.uint32]:
        """(rows, columns) words of 32 random bits."""
        numbers = rows if isinstance(rows, np.ndarray) else np.arange(rows)
        out = np.empty((len(numbers), columns), np.uint32)
        low, high = np.uint64(self.key & 0xFFFFFFFF), np.uint64(self.key >> 32)
        _fill(out, low, high, numbers.astype(np.uint64) + np.uint64(self.first), np.uint64(self.step))
        return out

    def bytes(self, rows: Rows, columns: int) -> NDArray[np.uint8]:
        """(rows, columns) random bytes, all 256 values alike."""
        words = self.bits(rows, -(-columns // 4)).astype("<u4", copy=False)
        return words.view(np.uint8)[:, :columns]

    def uniform(self, rows: Rows, columns: int) -> NDArray[np.float64]:
        """(rows, columns) numbers in the open interval (0, 1): odd multiples of 2^-24, exact in float32."""
        bits = self.bits(rows, columns) >> np.uint32(9)
        return (bits.astype(np.float64) + 0.5) * 2.0**-23

    def normal(self, rows: Rows, columns: int) -> NDArray[np.float64]:
        """(rows, columns) standard normal numbers, two from each pair of uniform ones (Box and Muller)."""
        uniform = self.uniform(rows, 2 * -(-columns // 2))
        radius, angle = np.sqrt(-2 * np.log(uniform[:, 0::2])), 2 * np.pi * uniform[:, 1::2]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
        return pairs.reshape(uniform.shape)[:, :columns]

    def integers(self, rows: Rows, sizes: Sequence[int]) -> NDArray[np.int64]:
        """(rows, len(sizes)) whole numbers, column j uniform in 0 .. sizes[j] - 1.

        By multiplication and shift, so that no draw is ever rejected; the probability of a value is
        off by less than one part in 2^32 / size.
        """
        bits = self.bits(rows, len(sizes)).astype(np.uint64)
        return (bits * np.asarray(sizes, np.uint64) >> np.uint64(32)).astype(np.int64)

    def permutations(self, rows: Rows, length: int) -> NDArray[np.int64]:
        """(rows, length): a random order of 0 .. length - 1 in each row."""
        high, low = np.split(self.bits(rows, 2 * length).astype(np.uint64), 2, axis=1)
        return np.argsort(high << np.uint64(32) | low, axis=1, kind="stable")


def _hash(prefix: bytes, name: str | int) -> int:
    # The type is part of the text: child("1") and child(1) are different purposes.
    text = prefix + f"{type(name).__name__}:{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@compiled()
def _philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """One Philox4x32-10 block; every argument is a uint64 that holds 32 bits."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


@compiled()
def _fill(out, k0, k1, rows, step):  # type: ignore[no-untyped-def]
    """out[i, 4 b .. 4 b + 3] = Philox(counter (b, row, row >> 32, step)), row = rows[i]."""
    columns = out.shape[1]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i, row in enumerate(rows):
        for block in range((columns + 3) // 4):
            words = _philox(np.uint64(block), row & low, row >> shift, step, k0, k1)
            for j in range(min(4, columns - 4 * block)):
                out[i, 4 * block + j] = np.uint32(words[j])
