"""Recording work on several streams as a CUDA graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch


@contextmanager
def joined_on_error(streams: Sequence[torch.cuda.Stream]) -> Iterator[None]:
    """Let the current stream wait for others if an error, such as too little memory, ends a recording.

    A graph cannot be ended while branches are loose: torch would raise an error about that instead.
    """
    try:
        yield
    except BaseException:
        for stream in streams:
            if _is_recorded(stream):  # a graph may not wait for others
                torch.cuda.current_stream().wait_stream(stream)
        raise


def _is_recorded(stream: torch.cuda.Stream) -> bool:
    with torch.cuda.stream(stream):
        return torch.cuda.is_current_stream_capturing()
