"""GPU kernels in Triton, and the functions that call them. `dispatch.py` says where they can be used."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
