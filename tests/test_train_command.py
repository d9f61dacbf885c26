"""`unweave train`: what it prints and writes, and how it ends."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cyclopts import CycloptsError
from PIL import Image

import unweave
from command_line import run_here
from training.tiny import TINY
from unweave.commands.train import Options, specs_of, train_app
from unweave.display.progress import losses
from unweave.errors import UnweaveError
from unweave.methods import QLAE, VAE, BetaTCVAE, BetaVAE, FactorVAE, InfoVAE
from unweave.runs.run import Run, folder_name
from unweave.runs.spec import RunSpec
from unweave.study import work as work_module
from unweave.training.trainer import Report

QUICK = ["--steps", "4", "--batch", "4", "--device", "cpu", "--no-scores"]
FILES = [
    "card.md",
    "log.jsonl",
    "pictures/reconstructions.png",
    "pictures/traversals.gif",
    "pictures/traversals.png",
    "result.json",
    "spec.json",
    "weights.safetensors",
]


def train_here(*arguments: str) -> None:
    """The command in this process, up to its errors."""
    train_app()(arguments, exit_on_error=False, print_error=False, result_action="return_value")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_train_makes_a_run_folder_and_the_second_time_does_nothing(tmp_path: Path) -> None:
    done = run_here("train", "beta_vae", "--beta", "2", "--seed", "3", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    spec = RunSpec(BetaVAE(2.0), seed=3, steps=4, batch=4)
    folder = tmp_path / "runs" / folder_name(spec)
    assert files(folder) == FILES
    lines = done.stdout.splitlines()
    assert lines[0] == "1 run of beta_vae on dsprites, 4 steps, into runs/"
    assert re.fullmatch(
        r"beta_vae \(beta 2\), seed 3: finished after 4 steps: reconstruction .*, kl .*", lines[1]
    )
    assert lines[2] == f"-> runs/{folder.name}"
    assert re.fullmatch(r"step 4 of 4: reconstruction [\d.e+]+, kl [\d.e-]+\n", done.stderr)
    assert unweave.load(folder).spec == spec
    assert "dsprites17" in (folder / "card.md").read_text()
    with Image.open(folder / "pictures" / "traversals.gif") as moving:
        assert getattr(moving, "n_frames", 1) > 10

    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = run_here("train", "beta_vae", "--beta", "2", "--seed", "3", *QUICK, cwd=tmp_path)
    assert again.returncode == 0
    assert again.stderr == ""
    assert "1 already done: nothing is trained twice." in again.stdout
    assert again.stdout.splitlines()[2:] == lines[1:]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times


def test_seeds_and_sweeps_make_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path), "--no-pictures"]
    train_here("beta_vae", "--seeds", "0-1", "--sweep", "beta=1,8", *QUICK, *out)
    trained = {(r.spec.method, r.spec.seed) for r in map(unweave.load, tmp_path.iterdir())}
    assert trained == {(BetaVAE(beta), seed) for beta in (1.0, 8.0) for seed in (0, 1)}
    assert "4 runs of beta_vae" in capsys.readouterr().out
    assert files(tmp_path / folder_name(RunSpec(BetaVAE(8.0), steps=4, batch=4))) == [
        name for name in FILES if not name.startswith("pictures")
    ]
    train_here("beta_vae", "--seeds", "0-2", *QUICK, *out, "--beta", "8")
    assert "3 runs of beta_vae on dsprites, 4 steps" in (said := capsys.readouterr().out)
    assert "2 already done" in said
    assert len(list(tmp_path.iterdir())) == 5


def test_a_run_that_cannot_be_measured_does_not_stop_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(run: Run, *_arguments: Any, **_options: Any) -> list[Any]:
        measured.append(run.spec.seed)
        if run.spec.seed == 0:
            raise UnweaveError("its codes are not finite.")
        return []

    monkeypatch.setattr(work_module, "evaluate_run", measure)
    scored = [option for option in QUICK if option != "--no-scores"]
    with pytest.raises(UnweaveError, match="1 run cannot be measured, the first because: its codes are"):
        train_here("vae", "--seeds", "0-1", *scored, "--no-pictures", "--out", str(tmp_path))
    assert measured == [0, 1]
    assert not list(tmp_path.glob("ledger*"))


def test_a_signal_saves_says_how_to_go_on_and_ends_with_130(tmp_path: Path) -> None:
    arguments = ["vae", "--steps", "100000", "--batch", "4", "--log-every", "1", "--device", "cpu"]
    command = [sys.executable, "-m", "unweave", "train", *arguments]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("step 1 of 100,000:")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(
        r"stopped by signal 2 after step \d+: run the same command again to resume\.\n", errors
    )
    [folder] = (tmp_path / "runs").iterdir()
    [checkpoint] = folder.glob("checkpoint-*.safetensors")
    step = int(checkpoint.stem.partition("-")[2])
    assert json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"] == step


def options(**given: Any) -> Options:
    return Options(**given)


def test_presets_and_options_give_specs() -> None:
    [study] = specs_of(VAE, {}, options())
    assert study == RunSpec(VAE())
    [factor] = specs_of(FactorVAE, {}, options())
    assert factor == RunSpec(FactorVAE(), steps=150_000)
    [quick] = specs_of(BetaVAE, {}, options(preset="quick", seed=5))
    assert quick == RunSpec(
        BetaVAE(16.0), seed=5, steps=3000, batch=32, learning_rate=1e-3, schedule="linear"
    )
    [given] = specs_of(BetaVAE, {"beta": 2.0}, options(preset="quick"))
    assert given.method == BetaVAE(2.0)
    [own] = specs_of(VAE, {}, options(preset="quick", steps=7, learning_rate=1e-3, data="rooms"))
    assert (own.steps, own.learning_rate, own.data) == (7, 1e-3, "rooms")


def test_counts_and_choices_can_be_swept() -> None:
    specs = specs_of(QLAE, {}, Options(sweep=["values_per_latent=5,10"], precision="float32"))
    assert [spec.method for spec in specs] == [QLAE(values_per_latent=5), QLAE(values_per_latent=10)]
    specs = specs_of(InfoVAE, {}, Options(sweep=["divergence=mmd, stein"]))
    assert [spec.method for spec in specs] == [InfoVAE(divergence="mmd"), InfoVAE(divergence="stein")]
    specs = specs_of(InfoVAE, {}, Options(sweep=["lambda=1,10"]))  # written as the option is
    assert [spec.method for spec in specs] == [InfoVAE(lambda_=1.0), InfoVAE(lambda_=10.0)]


def test_sweeps_and_seeds_are_a_grid_without_repeats() -> None:
    specs = specs_of(
        BetaTCVAE, {"estimator": "stratified"}, options(sweep=["beta=1,2,2.0", "alpha=0,1"], seeds="0-1,4,1")
    )
    expected = {
        RunSpec(BetaTCVAE(beta=beta, alpha=alpha, estimator="stratified"), seed=seed)
        for beta in (1.0, 2.0)
        for alpha in (0.0, 1.0)
        for seed in (0, 1, 4)
    }
    assert len(specs) == len(expected)
    assert set(specs) == expected


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (VAE, {"preset": "quik"}, 'there is no preset "quik". Did you mean "quick"?'),
        (VAE, {"seed": 1, "seeds": "0-3"}, "give either --seed or --seeds, not both."),
        (VAE, {"seeds": "3-1"}, 'the range of seeds "3-1" is empty; write the smaller number first.'),
        (VAE, {"seeds": "a"}, 'seeds are whole numbers and ranges, as in 0-7 or 1,3,5; got "a".'),
        (VAE, {"seeds": ""}, "seeds are whole numbers and ranges"),
        (VAE, {"seeds": "-1"}, "seeds are whole numbers and ranges"),
        (VAE, {"seed": -1}, "seed must be a whole number >= 0; got -1."),
        (VAE, {"sweep": ["beta=1,2"]}, 'vae has no setting "beta". It has none.'),
        (BetaVAE, {"sweep": ["bta=1,2"]}, 'beta_vae has no setting "bta". Did you mean "beta"?'),
        (BetaVAE, {"sweep": ["beta"]}, 'a sweep is a setting and its values, as in beta=1,2,4; got "beta".'),
        (BetaVAE, {"sweep": ["beta=1,x"]}, "a sweep is a setting and its values"),
        (BetaVAE, {"sweep": ["beta=1,-2"]}, "beta of beta_vae must be a number >= 0; got -2.0."),
        (BetaVAE, {"sweep": ["beta=1", "beta=2"]}, "--sweep beta was given twice."),
        (VAE, {"seeds": "0-9999999"}, 'the range of seeds "0-9999999" has more than 1,000,000 numbers.'),
        (
            FactorVAE,
            {"sweep": ["second-batch=1"]},
            "second_batch of factor_vae must be True or False; got 1.",
        ),
    ],
)
def test_bad_grids_are_refused(kind: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UnweaveError) as caught:
        specs_of(kind, {}, options(**given))
    assert str(caught.value).startswith(message)


BAD = [
    (["beta_va"], 'Unknown command "beta_va". Did you mean "beta_vae"?'),
    (["beta_vae", "--bta", "3"], "Unknown option: --bta. Did you mean --beta?"),
    (["beta_vae", "--beta", "-1"], "beta of beta_vae must be a number >= 0; got -1.0."),
    (["beta_vae", "--beta", "x"], 'Invalid value for --beta: unable to convert "x" into float.'),
    (["vae", "--steps", "0"], "steps must be a whole number >= 1; got 0."),
    (["vae", "--latents", "0"], "latents must be a whole number >= 1; got 0."),
    (["vae", "--log-every", "0"], "log_every must be a whole number >= 1; got 0."),
    (["vae", "--checkpoint-every", "-5"], "checkpoint_every must be a whole number >= 1; got -5."),
    (["vae", "--architecture", "tabel2"], 'there is no architecture "tabel2". Did you mean "table2"?'),
    (["vae", "--data", "dsprits"], 'there is no data set "dsprits". Did you mean "dsprites"?'),
    (["vae", "--data", "shapes3d"], "Run `unweave data fetch shapes3d`"),
    (["vae", "--device", "gpu"], 'there is no device "gpu". Use auto, cpu, cuda or cuda:1.'),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_refused_before_anything_is_written(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    # main() makes one line and exit status 2 of these two.
    with pytest.raises((UnweaveError, CycloptsError), match=re.escape(message)) as caught:
        train_here(*arguments, *([] if "--bta" in arguments else ["--out", str(tmp_path / "runs")]))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    done = run_here("train", "vae", "--device", "cuda", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "unweave: a GPU was requested, but torch finds none. Use --device cpu.\n"
    assert list(tmp_path.iterdir()) == []


def test_folders_and_checkpoints_that_are_not_of_the_run(tmp_path: Path) -> None:
    arguments = ["vae", *QUICK, "--no-pictures", "--out", str(tmp_path)]
    folder = tmp_path / folder_name(RunSpec(VAE(), steps=4, batch=4))
    folder.mkdir()
    (folder / "thesis.txt").write_text("keep")
    with pytest.raises(UnweaveError, match=r"has files that are not of a run\. Choose another folder"):
        train_here(*arguments)
    (folder / "thesis.txt").unlink()
    (folder / "spec.json").write_text('{"name": "a package"}')
    with pytest.raises(UnweaveError, match=r"spec\.json is not of a run"):
        train_here(*arguments)
    (folder / "spec.json").unlink()
    train_here(*arguments)
    whole = (folder / "weights.safetensors").read_bytes()
    for name in ("result.json", "weights.safetensors"):
        (folder / name).unlink()
    (folder / "checkpoint-2.safetensors").write_bytes(b"garbage")
    with pytest.raises(
        UnweaveError, match=r"checkpoint-2\.safetensors: .* Delete this file and run the same"
    ):
        train_here(*arguments)
    (folder / "checkpoint-2.safetensors").write_bytes(whole)  # tensors, but not those of a checkpoint
    with pytest.raises(UnweaveError, match=r"cannot resume from step 2 .* Delete that checkpoint"):
        train_here(*arguments)
    (folder / "checkpoint-2.safetensors").unlink()
    train_here(*arguments)
    assert (folder / "weights.safetensors").read_bytes() == whole


def test_losses_scores_and_pictures_go_to_a_logger(tmp_path: Path) -> None:
    factors = TINY.factors_at(np.arange(len(TINY)))
    np.savez(tmp_path / "squares.npz", images=TINY.observe(factors), factors=factors)
    logger = Path(__file__).parent / "loggers" / "recording.py"
    options = [*QUICK[:-1], "--data", "squares.npz", "--architecture", "mlp", "--latents", "2"]
    done = run_here("train", "vae", *options, "--log-to", f"{logger}:Recorder", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "runs").iterdir()
    calls = [json.loads(line) for line in (path / "Recorder" / "calls.jsonl").read_text().splitlines()]
    [(_, step, terms)] = [call for call in calls if call[0] == "log"]
    assert step == 4
    assert terms == json.loads((path / "result.json").read_text())["terms"]
    [(_, scores, pictures)] = [call for call in calls if call[0] == "finish"]
    assert {"mig", "sap"} <= set(scores)
    assert pictures == ["reconstructions.png", "traversals.png"]


def test_a_logger_that_is_not_installed_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(UnweaveError, match=r'pip install "unweave\[tensorboard\]"'):
        train_here("vae", "--log-to", "tensorboard", *QUICK, "--out", str(tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("kind", "precision"), [("cuda", "bf16"), ("cpu", "float32")])
def test_precision_goes_by_the_device(kind: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.training.trainer.pick_device", lambda _name: torch.device(kind))
    [spec] = specs_of(BetaVAE, {}, Options())
    assert spec.precision == precision
    [spec] = specs_of(BetaVAE, {}, Options(precision="tf32"))
    assert spec.precision == "tf32"
    [spec] = specs_of(QLAE, {}, Options())
    assert spec.precision == ("tf32" if kind == "cuda" else "float32")


def test_losses_that_are_told() -> None:
    usual = {"reconstruction": 3.0, "kl": 1.0, "elbo": -4.0}
    others = {"generator": 2.0, "discriminator": 0.5, "information": 1.0, "code_error": 0.1}
    report = Report(1, 2, ("a", "b"), (usual, usual | {"kl": 2.0}), 0.0)
    assert losses(report) == ["reconstruction 3", "kl 1.5"]
    alone = Report(1, 2, ("a",), (others,), 0.0)
    assert losses(alone) == ["generator 2", "discriminator 0.5", "information 1"]


def test_help_says_which_defaults_a_method_has_instead_of_the_usual_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train_here("vd_vae", "--help")
    words = " ".join(capsys.readouterr().out.split())
    assert "Its defaults, instead of those below: --steps 50000, --batch 32, --latents 32," in words
    assert "--learning-rate 0.0002, --warmup 0.002, --gradient-clip 200." in words
    assert "Channels of the features. Default: 64." in words
    train_here("beta_vae", "--help")
    assert "instead of those below" not in capsys.readouterr().out


def test_a_mistake_in_a_plugin_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from unweave.methods.method import Method\n"
        "@dataclass(frozen=True)\n"
        "class Broken(Method):\n"
        "    name: ClassVar[str] = 'broken'\n"
        "    citation: ClassVar[str] = ''\n"
        "    def losses(self, step):\n"
        "        return step.forward.nothing\n"
    )
    few = ("--steps", "2", "--batch", "4", "--latents", "2", "--device", "cpu")
    done = run_here("train", "mine.py:Broken", *few, cwd=tmp_path)
    assert done.returncode == 2
    assert "mine.py:Broken failed in line 9 of mine.py: AttributeError: 'Forward' object" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
