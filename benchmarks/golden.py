"""Check that a refactoring changes no number: write all kinds of results to a file, compare with it later.

python benchmarks/golden.py write before.json     # on the old code
python benchmarks/golden.py compare before.json   # on the new code, same machine and same torch

Compared bit for bit: weights and logs of every method after 20 CPU steps; the study's metrics on ten
representations (where the reference cases are next to the repository); the table of a small study; the tables
of the report on the published models. Numbers depend on the machine and on torch, so the file is not kept in
the repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unweave

SHARED = Path(__file__).parents[2] / "shared" / "reference"
STEPS = 20
STUDY = """
name = "golden"
metrics = ["mig", "sap", "modularity", "dci"]
points = [400, 200]
[shared]
seed = "0-1"
steps = 6
batch = 8
latents = 4
[[methods]]
name = "beta_vae"
beta = [1, 4]
[[methods]]
name = "factor_vae"
"""


def trained(folder: Path) -> dict[str, str]:
    """Digests of weights and logs of every method."""
    digests = {}
    for kind in unweave.methods.METHODS:
        run = unweave.train(kind(), steps=STEPS, batch=8, out=folder, device="cpu", precision="float32")
        for name in ("weights.safetensors", "log.jsonl"):
            digests[f"{kind.name} {name}"] = hashlib.sha256((run.path / name).read_bytes()).hexdigest()
        print(kind.name, file=sys.stderr)
    return digests


def scored() -> dict[str, Any]:
    """All scores of the reference cases."""
    if not SHARED.is_dir():
        return {}
    scores: dict[str, Any] = {}
    with np.load(SHARED / "metric_cases.npz") as arrays:
        for case in sorted({name.split("/")[0] for name in arrays.files}):
            train, test = (
                (arrays[f"{case}/codes_{part}"].astype(float), arrays[f"{case}/factors_{part}"])
                for part in ("train", "test")
            )
            found = unweave.evaluate(*train, test=test, metrics="study")
            scores |= {f"{case} {name}": repr(value) for name, value in found.items()}
            print(case, file=sys.stderr)
    return scores


def commands(folder: Path) -> dict[str, str]:
    """The table of a small study, and the tables of the report on the published models."""
    import pandas as pd

    (folder / "study.toml").write_text(STUDY)
    _unweave("study", "run", folder / "study.toml", "-o", folder / "study", "--device", "cpu")
    table = pd.read_parquet(folder / "study" / "results.parquet").drop(columns=["seconds"], errors="ignore")
    ordered = table.sort_values(["run", "representation", "score"]).to_csv(index=False)
    results = {"study table": hashlib.sha256(ordered.encode()).hexdigest()}
    if SHARED.is_dir():
        _unweave("report", "--published", SHARED / "published", "-o", folder / "report")
        for path in sorted((folder / "report").rglob("*.csv")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            results[f"report {path.relative_to(folder / 'report')}"] = digest
    return results


def _unweave(*words: str | Path) -> None:
    command = [sys.executable, "-m", "unweave", *map(str, words)]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)


def main() -> None:
    """Write or compare."""
    action, path = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        results = trained(Path(folder)) | scored() | commands(Path(folder))
    if action == "write":
        path.write_text(json.dumps(results, indent=1))
        print(f"{len(results)} results in {path}")
        return
    before = json.loads(path.read_text())
    changed = [name for name in before | results if before.get(name) != results.get(name)]
    print(f"{len(before)} results before, {len(results)} now, {len(changed)} differ", *changed, sep="\n")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
