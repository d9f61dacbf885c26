"""The names of the files in the folders of runs and studies, and where runs are in them.

`unweave.runs.store` and `unweave.study.folder` describe what each file holds.
"""

from __future__ import annotations

from pathlib import Path

# In the folder of a run.
SPEC_FILE = "spec.json"
LOG_FILE = "log.jsonl"
WEIGHTS_FILE = "weights.safetensors"
ENDING_FILE = "ending.json"
RESULT_FILE = "result.json"
CARD_FILE = "card.md"
TRAIN_LOCK_FILE = "train.lock"
SCORES_FILE = "scores.json"
PART_SCORES_FILE = "scores-{part}.json"  # on all combinations, or on those that were held out
GENERALISATION_FILE = "generalisation.json"
CODES_FILE = "codes.safetensors"
ERROR_FILE = "error.json"
REASONING_FILE = "reasoning.json"

# In the folder of the pictures of a run.
PICTURES_FOLDER = "pictures"
RECONSTRUCTIONS_FILE = "reconstructions.png"
SWAPS_FILE = "swaps.png"
TRAVERSALS_FILE = "traversals.png"
TRAVERSALS_ANIMATION_FILE = "traversals.gif"

# In the folder of a study.
STUDY_FILE = "study.json"
PLAN_FILE = "plan.json"
LEDGER_FILE = "ledger.sqlite"
RESULTS_FILE = "results.parquet"
AGREEMENTS_FILE = "agreements.parquet"
SELECTION_FILE = "selection.parquet"
WORKERS_LOG_FILE = "workers.log"


def runs_inside(folder: Path) -> list[Path]:
    """The folders of all runs in a folder of runs or of a study, sorted."""
    return sorted(
        spec.parent for pattern in ("*", "runs/*") for spec in folder.glob(f"{pattern}/{SPEC_FILE}")
    )
