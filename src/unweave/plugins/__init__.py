"""Parts from outside the package: methods, metrics, data sets, architectures and likelihoods of a user.

`loading` finds them by `file.py:Name`, `package.module:Name` or entry point; `contract` checks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.plugins.contract import check_data, check_method, check_metric
    from unweave.plugins.loading import Plugin, is_reference

__all__ = ["Plugin", "check_data", "check_method", "check_metric", "is_reference"]

_DEFINED_IN = {
    "Plugin": "unweave.plugins.loading",
    "check_data": "unweave.plugins.contract",
    "check_method": "unweave.plugins.contract",
    "check_metric": "unweave.plugins.contract",
    "is_reference": "unweave.plugins.loading",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _DEFINED_IN)
