"""Results and settings of other tools: read them, and turn them into those of unweave."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.migration.disentanglement_lib import read_disentanglement_lib
    from unweave.migration.disentangling_vae import read_disentangling_vae
    from unweave.migration.equivalents import run_spec_from_gin

__all__ = ["read_disentanglement_lib", "read_disentangling_vae", "run_spec_from_gin"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "read_disentanglement_lib": "unweave.migration.disentanglement_lib",
            "read_disentangling_vae": "unweave.migration.disentangling_vae",
            "run_spec_from_gin": "unweave.migration.equivalents",
        },
    )
