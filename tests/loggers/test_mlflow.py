"""Runs in MLflow's local store, read by its client."""

from pathlib import Path

import pytest

from loggers.trained import SCORES, own_log, train

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; it is not among the test packages")
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


def test_runs_have_each_loss_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert train(tmp_path, "mlflow", seeds=(0, 1), kill_at=6) == []
    assert train(tmp_path, "mlflow", seeds=(0, 1)) == []
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("unweave")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["seed0", "seed1"]
    for name, run in runs.items():
        history = client.get_metric_history(run.info.run_id, "kl")
        assert [(metric.step, metric.value) for metric in history] == own_log(tmp_path / name)
        assert run.data.params["beta"] == "3.0"
        assert run.data.metrics["score/mig"] == SCORES["mig"]
        assert run.info.status == "FINISHED"
