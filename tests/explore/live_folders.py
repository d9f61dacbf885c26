"""Folders of runs as training leaves them at some moment, without any training."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unweave.explore.live.folders import spec_hash
from unweave.locks import claim


def spec_of(beta: float = 1.0, seed: int = 0, steps: int = 1000) -> dict[str, Any]:
    """A spec as `RunSpec.to_dict` writes it, as far as it is read here."""
    method = {"name": "beta_vae", "beta": beta}
    return {"version": 1, "method": method, "data": "dsprites", "seed": seed, "steps": steps, "latents": 10}


def write_run(parent: Path, spec: Mapping[str, Any], *lines: Mapping[str, Any]) -> Path:
    """The folder of a run that was started and logged some lines."""
    folder = parent / f"beta_vae-dsprites-seed{spec['seed']}-{spec_hash(spec)}"
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps({"spec": spec, "image_shape": [1, 64, 64]}))
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def add_lines(folder: Path, *lines: Mapping[str, Any]) -> None:
    """Let the log of a run grow."""
    with (folder / "log.jsonl").open("a") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in lines))


def end_run(folder: Path, outcome: str = "finished", scores: Mapping[str, float] | None = None) -> None:
    """Let a run end, with some scores of its mean codes."""
    result = {"outcome": outcome, "steps": 1000, "terms": {"kl": 1.0}}
    (folder / "result.json").write_text(json.dumps(result))
    if scores is not None:
        records = [{"name": n, "representation": "mean", "value": v} for n, v in scores.items()]
        (folder / "scores.json").write_text(json.dumps({"schema": 1, "evaluations": [{"scores": records}]}))


def write_study(folder: Path, *specs: Mapping[str, Any]) -> None:
    """The record of a study whose runs are in `runs/`."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"schema": 1, "name": "grid", "runs_in": "runs", "runs": list(specs)}
    (folder / "study.json").write_text(json.dumps(record))


def locked(folder: Path) -> Any:
    """Hold the lock of a run, as the process that trains it does."""
    return claim(folder / "train.lock", "run")
