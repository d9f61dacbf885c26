"""Runs whose alignment is known: copies of a run whose latents are permuted and flipped."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from unweave.evaluation.scores import SCHEMA, Score, Scores
from unweave.layout import SCORES_FILE, SPEC_FILE, WEIGHTS_FILE

ORDER, SIGNS = (2, 0, 3, 1), (-1, 1, 1, -1)  # latent j of a copy is SIGNS[j] times latent ORDER[j] of the run


def permuted_copy(
    run: Path, target: Path, order: Sequence[int] = ORDER, signs: Sequence[int] = SIGNS, **changed: Any
) -> Path:
    """A copy of a run that decodes to the same images; its spec has other fields, so its id differs."""
    shutil.copytree(run, target)
    weights = load_file(target / WEIGHTS_FILE)
    heads, flips = [*order, *(len(order) + j for j in order)], np.array([*signs, *[1] * len(order)])
    weights["encoder.heads.weight"] = np.ascontiguousarray(weights["encoder.heads.weight"][:, heads] * flips)
    weights["encoder.heads.bias"] = weights["encoder.heads.bias"][heads] * flips
    first = weights["decoder.dense.0.weight"]
    weights["decoder.dense.0.weight"] = np.ascontiguousarray(first[list(order)] * np.array(signs)[:, None])
    save_file({name: table.astype(np.float32) for name, table in weights.items()}, target / WEIGHTS_FILE)
    change_spec(target, **changed)
    return target


def change_spec(run: Path, **changed: Any) -> None:
    """Write other fields into the spec of a run."""
    record = json.loads((run / SPEC_FILE).read_text())
    record["spec"] |= changed
    (run / SPEC_FILE).write_text(json.dumps(record))


def write_scores(run: Path, value: float, protocol: str = "mig[bins20,mean]") -> None:
    """Store one score, with its interval, in the folder of a run."""
    score = Score("mig", protocol, "mean", value, value - 0.01, value + 0.01)
    record = Scores(str(run), "mean", (score,)).to_dict()
    (run / SCORES_FILE).write_text(json.dumps({"schema": SCHEMA, "evaluations": [record]}))
