"""Small files in the format of disentanglement_lib 1.5: operative gin configurations, and results as JSON."""

import json
import uuid
from pathlib import Path
from typing import Any

SHARED = {
    "dataset.name": "'dsprites_full'",
    "model.model": "@vae()",
    "model.batch_size": "64",
    "model.training_steps": "300000",
    "model.random_seed": "0",
    "encoder.num_latent": "10",
    "encoder.encoder_fn": "@conv_encoder",
    "decoder.decoder_fn": "@deconv_decoder",
    "reconstruction_loss.loss_fn": "@bernoulli_loss",
    "vae_optimizer.optimizer_fn": "@vae/AdamOptimizer",
    "vae/AdamOptimizer.learning_rate": "0.0001",
    "vae/AdamOptimizer.beta1": "0.9",
    "vae/AdamOptimizer.epsilon": "1e-08",
    "discriminator_optimizer.optimizer_fn": "@discriminator/AdamOptimizer",
    "discriminator/AdamOptimizer.learning_rate": "0.0001",
    "discriminator/AdamOptimizer.beta1": "0.5",
}
HISTOGRAM = {"discretizer.discretizer_fn": "@histogram_discretizer", "discretizer.num_bins": "20"}
MIG = {"evaluation.evaluation_fn": "@mig", "mig.num_train": "10000", **HISTOGRAM}


def gin_text(bindings: dict[str, str]) -> str:
    """An operative configuration as gin writes it; long lines are wrapped."""
    lines = ["# Parameters of a step:", "# " + "=" * 78, ""]
    for name, value in bindings.items():
        line = f"{name} = {value}"
        lines.append(line if len(line) <= 80 else f"{name} = \\\n    {value}")
    return "\n".join(lines) + "\n"


def cut_bindings(bindings: dict[str, str]) -> dict[str, str]:
    """The bindings as disentanglement_lib puts them into JSON: of a wrapped line only the first half."""
    lines = gin_text(bindings).splitlines()
    return dict(line.split(" = ", 1) for line in lines if not line.startswith("#") and " = " in line)


class TrainedModel:
    """The results of a model: what its evaluations share."""

    def __init__(self, bindings: dict[str, str], losses: dict[str, float] | None = None) -> None:
        self.config = SHARED | bindings
        self.results: dict[str, Any] = (losses or {}) | {"uuid": str(uuid.uuid4()), "elapsed_time": 1.5}


def evaluation(
    folder: Path,
    model: TrainedModel,
    results: dict[str, Any],
    bindings: dict[str, str] | None = None,
    representation: str = "mean",
    seed: int = 0,
) -> Path:
    """Write the folder `results` of one evaluation as dlib_evaluate does; return it."""
    evaluated = {"dataset.name": model.config["dataset.name"], "evaluation.random_seed": str(seed)}
    configs = {
        "train": model.config,
        "postprocess": {"postprocess.postprocess_fn": f"@{representation}_representation"},
        "evaluation": evaluated | (MIG if bindings is None else bindings),
    }
    all_results = {
        "train": model.results,
        "postprocess": {"uuid": str(uuid.uuid4()), "elapsed_time": 0.5},
        "evaluation": results | {"uuid": str(uuid.uuid4()), "elapsed_time": 2.5},
    }
    target = folder / "results"
    flat: dict[str, Any] = {}
    for step, config in configs.items():
        write(target / "gin" / f"{step}.gin", gin_text(config))
        for kind, content in (("config", cut_bindings(config)), ("results", all_results[step])):
            write(target / "json" / f"{step}_{kind}.json", json.dumps(content, indent=2))
            flat |= {f"{step}_{kind}.{key}": value for key, value in content.items()}
    write(target / "aggregate" / "evaluation.json", json.dumps(flat, indent=2))
    return target


def aggregated(path: Path, folders: list[Path]) -> Path:
    """Write what dlib_aggregate_results makes of evaluations: columns of cells, null where there is none."""
    files = [folder / "aggregate" / "evaluation.json" for folder in folders]
    records = [json.loads(file.read_text()) | {"path": str(file)} for file in files]
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: {str(i): record.get(name) for i, record in enumerate(records)} for name in names}
    return write(path, json.dumps(columns))


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
