"""unweave with other libraries: torch data loaders, scikit-learn, metric objects, the Hugging Face Hub."""

from typing import TYPE_CHECKING

from unweave.lazy import lazy_names

if TYPE_CHECKING:
    from unweave.integrations.estimator import DisentanglingTransformer
    from unweave.integrations.hf_datasets import from_hf_dataset, to_hf_dataset
    from unweave.integrations.hub import load_from_hub, push_to_hub, save_for_hub
    from unweave.integrations.metric_objects import DisentanglementScores
    from unweave.integrations.torch_data import TorchDataset

__all__ = [
    "DisentanglementScores",
    "DisentanglingTransformer",
    "TorchDataset",
    "from_hf_dataset",
    "load_from_hub",
    "push_to_hub",
    "save_for_hub",
    "to_hf_dataset",
]

_DEFINED_IN = {
    "DisentanglementScores": "unweave.integrations.metric_objects",
    "DisentanglingTransformer": "unweave.integrations.estimator",
    "TorchDataset": "unweave.integrations.torch_data",
    "from_hf_dataset": "unweave.integrations.hf_datasets",
    "load_from_hub": "unweave.integrations.hub",
    "push_to_hub": "unweave.integrations.hub",
    "save_for_hub": "unweave.integrations.hub",
    "to_hf_dataset": "unweave.integrations.hf_datasets",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _DEFINED_IN)


def __dir__() -> list[str]:
    return __all__
