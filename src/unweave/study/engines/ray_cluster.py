"""A connection to a Ray cluster, and what its machines have for a task."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from unweave.errors import UnweaveError
from unweave.study.work import TrainAndScore, Work

REACH = 5.0  # seconds to wait for the head of a cluster


def ray_module() -> Any:
    """Ray, which is not installed everywhere."""
    try:
        import ray
    except ImportError:
        raise UnweaveError("the Ray engine needs Ray: pip install unweave[ray]") from None
    return ray


def machines() -> list[dict[str, float]]:
    """What the machines of the cluster have."""
    return [node["Resources"] for node in ray_module().nodes() if node["Alive"]]


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A connection to a cluster, or the one that the process has."""
    ray = ray_module()
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _check_address(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        reason = str(error.__cause__ or error).strip().rpartition("\n")[2].rstrip(".")
        raise UnweaveError(
            f"cannot reach the Ray cluster at {address or 'its default address'}: {reason}. "
            "Start one with `ray start --head`, run this command on one of its machines, and give --address "
            "auto or HOST:PORT."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Check that the address answers: Ray itself tries for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=REACH).close()


@dataclass(frozen=True)
class Portion:
    """What one Ray task takes of its machine; with half a GPU each, two populations share one."""

    cpus: int = 1
    gpus: float = 0

    def slots(self) -> int:
        """How many tasks the cluster takes at once."""
        slots = 0
        for has in machines():
            wanted = (("CPU", self.cpus), ("GPU", self.gpus))
            slots += min((int(has.get(name, 0) // part) for name, part in wanted if part), default=1)
        return max(1, slots)


def portion_for(work: Work) -> Portion:
    """A GPU and its part of the cores where the cluster has GPUs and they are wanted, else two cores."""
    nodes = machines()
    device = work.device if isinstance(work, TrainAndScore) else "cpu"
    with_gpu = [has for has in nodes if has.get("GPU", 0) >= 1]
    if device != "cpu" and with_gpu:
        return Portion(int(min(has.get("CPU", 0) // has["GPU"] for has in with_gpu)), 1)
    if device.startswith("cuda"):
        raise UnweaveError("a GPU was asked for, and the Ray cluster has none. Use --device cpu.")
    cores = min((int(has["CPU"]) for has in nodes if has.get("CPU", 0) >= 1), default=1)
    return Portion(min(2, cores))
