"""The explorer: a web page to move through the latents of a run and through the runs of a study."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__)
