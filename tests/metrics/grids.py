"""Codes and factors for the tests: whole grids of factors, and codes of every awkward kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.metrics.examples import LinearJudge
from unweave.streams import Stream


def grid(*sizes: int, repeats: int = 1) -> NDArray[np.int64]:
    """All combinations of factor values, (n, k), each `repeats` times."""
    rows = np.stack(np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij"), axis=-1)
    return rows.reshape(-1, len(sizes)).repeat(repeats, axis=0).astype(np.int64)


def drawn(sizes: Sequence[int], n: int, seed: int = 0) -> NDArray[np.int64]:
    """(n, k) random factor values."""
    return Stream.of(seed).child("test factors").integers(n, sizes)


def noise(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    """(n, d) standard normal numbers."""
    return Stream.of(seed).child("test noise").normal(n, d)


def awkward_codes() -> dict[str, NDArray[Any]]:
    """Codes for grid(3, 4, repeats=10) that have broken somebody's metric."""
    factors = grid(3, 4, repeats=10)
    plain = factors + 0.1 * noise(len(factors), 2)
    return {
        "dead": np.hstack([plain, np.full((len(plain), 1), 3.7), np.zeros((len(plain), 1))]),
        "all dead": np.full((len(plain), 3), 0.1),
        "all dead float32": np.full((len(plain), 3), 3.7, np.float32),
        "copied": np.hstack([plain, plain, -plain]),
        "huge": plain * 1e307,
        "largest": np.where(plain > 1, 1.0, -1.0) * np.finfo(np.float64).max,
        "huge copied": np.hstack([plain, plain]) * 1e307,
        "huge and dead": np.hstack([plain * 1e307, 0 * plain]),
        "tiny": plain * 1e-320,
        "huge and tiny": np.hstack([plain * 1e307, plain * 1e-307]),
        "float16": plain.astype(np.float16),
        "largest float16": (plain > 1.5).astype(np.float16) * np.finfo(np.float16).max,
        "float32": plain.astype(np.float32),
        "integer": factors.astype(np.int8),
        "large integer": factors * 2**61,
        "boolean": factors > 1,
        "one code": plain[:, :1],
        "two neighbouring numbers": np.where(plain > 1, 1.0, np.nextafter(1.0, 2)),
        "more codes than points": noise(len(plain), 150),
    }


def in_blocks(codes: NDArray[Any], factors: NDArray[np.int64]) -> dict[str, Any]:
    """The first code and the others, if there are others; the first factor belongs to the first code.

    The last factor is circular.
    """
    blocks = {"content": [0], "style": list(range(1, codes.shape[1]))}
    return {
        "blocks": {name: block for name, block in blocks.items() if block},
        "block_factors": {"content": [0]},
        "judge": LinearJudge(codes, factors),
        "circular": [factors.shape[1] - 1],
        "periods": {factors.shape[1] - 1: float(factors[:, -1].max() + 1)},
    }
