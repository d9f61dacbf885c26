"""Offline runs of W&B, read from W&B's own files."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loggers.trained import SCORES, own_log, train

wandb = pytest.importorskip("wandb", reason="wandb is not installed; it is not among the test packages")
BLOCK = 32768
FULL, LAST = 1, 4  # a record in one piece, and the last piece of a record
pytestmark = pytest.mark.filterwarnings("ignore")  # W&B's own


def records(path: Path) -> Iterator[Any]:
    """The records of all files of a run, in the order in which they were written."""
    messages = importlib.import_module("wandb.proto.wandb_internal_pb2")
    for file in sorted(path.glob("wandb/offline-run-*/run-*.wandb")):
        for content in log_records(file.read_bytes()):
            yield messages.Record.FromString(content)


def log_records(content: bytes) -> Iterator[bytes]:
    """The records of a file in LevelDB's log format, behind W&B's header of 7 bytes."""
    place, record = 7, b""
    while place + 7 <= len(content):
        if BLOCK - place % BLOCK < 7:  # no record begins in the last bytes of a block
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        record += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (FULL, LAST):
            yield record
            record = b""


def test_offline_runs_have_each_loss_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert train(tmp_path, "wandb", seeds=(0, 1), kill_at=6) == []
    assert train(tmp_path, "wandb", seeds=(0, 1)) == []
    ids = set()
    for seed in (0, 1):
        path = tmp_path / f"seed{seed}"
        found = list(records(path))
        rows = [
            {
                "/".join(item.nested_key) or item.key: json.loads(item.value_json)
                for item in record.history.item
            }
            for record in found
            if record.WhichOneof("record_type") == "history"
        ]
        assert [(row["_step"], row["kl"]) for row in rows] == own_log(path)
        runs = [record.run for record in found if record.WhichOneof("record_type") == "run"]
        [run_id] = {run.run_id for run in runs}
        ids.add(run_id)
        config = {item.key: json.loads(item.value_json) for run in runs for item in run.config.update}
        assert config["beta"] == 3.0
        assert config["seed"] == seed
        summary = {
            item.key or "/".join(item.nested_key): json.loads(item.value_json)
            for record in found
            if record.WhichOneof("record_type") == "summary"
            for item in record.summary.update
        }
        assert summary["score/mig"] == SCORES["mig"]
    assert len(ids) == 2
