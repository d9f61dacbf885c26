"""A folder in which the commands of the documentation find what they name: runs, studies, codes, tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from conftest import ROOT
from report.made_up import SIX, settings, table
from selection.tiny_study import FIELDS, METRICS, POINTS, trained_study
from unweave.evaluation.evaluate import Effort
from unweave.evaluation.score_store import evaluate_run
from unweave.runs.run import Run
from unweave.study.table import collect, write_table

CAPACITY = f"""
name = "capacity"
metrics = "{METRICS}"
points = [{POINTS[0]}, {POINTS[1]}]

[shared]
data = "{FIELDS["data"]}"
steps = {FIELDS["steps"]}
batch = {FIELDS["batch"]}
latents = {FIELDS["latents"]}
seed = "0-2"

[[methods]]
name = "beta_vae"
beta = [1, 4]
"""
THEIRS = """
columns = {data = "set", method = "kind", seed = "number"}
scores = {mig = "MIG"}
constants = {source = "theirs"}
"""


def make_world(folder: Path) -> Path:
    """Fill the folder; its studies are trained and measured, so that commands find nothing to train."""
    study = trained_study(folder / "studies" / "capacity")
    for run in map(study.run_folder, study.runs):
        evaluate_run(Run(run), METRICS, ("sampled",), Effort(POINTS))
    scores, _ = collect(study)
    write_table(scores, study.table)
    for name in ("small", "smoke", "part1", "part2"):
        shutil.copytree(study.path, folder / "studies" / name)
    shutil.copytree(next((study.path / "runs").iterdir()), folder / "runs" / "run")
    shutil.copy(study.table, folder / "results.parquet")
    (folder / "capacity.toml").write_text(CAPACITY)
    (folder / "study").mkdir()
    table(settings(["dsprites"]), {"mig": SIX["mig"]}).table.to_parquet(folder / "study" / "results.parquet")
    theirs = pd.DataFrame({"set": "dsprites", "kind": ["a", "b"] * 4, "number": range(8), "MIG": 0.3})
    theirs.to_csv(folder / "theirs.csv", index=False)
    (folder / "theirs.toml").write_text(THEIRS)
    draws = np.random.default_rng(0)
    factors = draws.integers(0, 3, (300, 2))
    codes = factors + draws.normal(size=(300, 2))
    np.savez(folder / "codes.npz", codes=codes, factors=factors)
    np.save(folder / "codes.npy", codes)
    columns = pd.DataFrame(factors, columns=["size", "colour"])
    columns.assign(hue=draws.random(300) * 360).to_csv(folder / "factors.csv", index=False)
    columns.assign(z0=codes[:, 0], z1=codes[:, 1]).to_csv(folder / "table.csv", index=False)
    write_pictures(folder / "pictures")
    (folder / "zoo").symlink_to(ROOT / "zoo")
    return folder


def write_pictures(folder: Path) -> None:
    """Six pictures and the table of their factors."""
    folder.mkdir()
    lines = ["file,brightness,shape"]
    for i in range(6):
        Image.fromarray(np.full((32, 32), 40 * i, np.uint8)).save(folder / f"{i}.png")
        lines.append(f"{i}.png,{i // 2},{i % 2}")
    (folder / "factors.csv").write_text("\n".join(lines) + "\n")
