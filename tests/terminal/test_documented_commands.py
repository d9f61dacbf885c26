"""Every command of README and docs runs in a terminal, or has a reason why not."""

import re
import shlex
from pathlib import Path

import pytest

from terminal.documented import Documented, documented_commands
from terminal.session import CommandServer
from terminal.world import make_world, write_pictures
from unweave.cli import app
from unweave.commands.data import data_app
from unweave.commands.metrics import metrics_app
from unweave.commands.study import study_app

RUN = "runs/run"
# Why a command is not run. A command that is neither here nor can be run fails the tests.
DOWNLOADS = "downloads files"
PUBLISHED = "needs the published results, which are not part of the project"
OWN_DATA = "needs the reader's own data; tests/data/test_own_session.py runs it on such data"
OWN_MODEL = "needs the reader's own model; see tests/explore/test_models.py"
ONNX = "needs the extra onnx; tests/evaluation/test_frozen.py has a stand-in"
WANDB = "needs the extra wandb; see tests/loggers/test_wandb.py"
MLFLOW = "needs the extra mlflow; see tests/loggers/test_mlflow.py"
WATCHED = "opens a page that stays until Ctrl-C; see tests/explore/test_live_command.py"
OFFICIAL = "needs the official files of the data set, which are not part of the project"
CONDITION = "needs a run on data with a condition; see tests/evaluation/test_held_out.py"
DLIB = "needs results of disentanglement_lib; see tests/migration"
DVAE = "needs results of disentangling-vae; see tests/migration"
REASONING = "encodes thousands of images; tests/reasoning/test_reason.py runs it on a few"
REASONS = {
    "data fetch cars3d": DOWNLOADS,
    "data fetch causal3dident": DOWNLOADS,
    "data fetch chairs3d": DOWNLOADS,
    "data fetch dsprites": DOWNLOADS,
    "data fetch fashion_mnist": DOWNLOADS,
    "data fetch mpi3d_toy": DOWNLOADS,
    "data fetch scream_dsprites": DOWNLOADS,
    "data fetch shapes3d": DOWNLOADS,
    "data fetch smallnorb": DOWNLOADS,
    "data fetch three_d_ident": DOWNLOADS,
    "data render shapes3d": OFFICIAL,
    "data render dsprites": "writes a table of 377 MB; tests/data/test_cache.py writes small ones",
    "data render NAME": "writes a table of hundreds of MB; tests/data/test_cache.py writes small ones",
    "migrate disentanglement_lib output/ -o old.parquet": DLIB,
    "migrate disentanglement_lib results/gin/train.gin": DLIB,
    "migrate disentangling_vae results/ -o old.parquet": DVAE,
    "reason RUN": REASONING,
    "reason RUN --steps 1000 --edge 128,128 --graph 128 --levels 4 --tests 1000": REASONING,
    "reason STUDY --steps 20000": REASONING,
    "reason studies/vansteenkiste2019_mini": REASONING,
    "report --published published/ -o report/": PUBLISHED,
    "report study/ --published published/": PUBLISHED,
    "evaluate RUN --data elsewhere/toys": OWN_DATA,
    "evaluate RUN --on all": CONDITION,
    "evaluate RUN --on held_out": CONDITION,
    "explore --encoder encoder.onnx --decoder decoder.onnx --data dsprites": OWN_MODEL,
    "explore --published FOLDER": PUBLISHED,
    "explore codes.npz": OWN_MODEL,
    "explore path/to/model.py:Model --data images.npz": OWN_MODEL,
    "explore theirs.csv --columns columns.toml": "see tests/explore/test_published_explore.py",
    "evaluate model.onnx --data dsprites": ONNX,
    "evaluate model.onnx --data dsprites --metrics headline": ONNX,
    "study run locatello2019_dsprites --engine ray --address auto --population 64": "needs a Ray cluster",
    "study run locatello2019_dsprites --out /project/sprites --population 64 --engine slurm --partition gpu "
    "--time 12:00:00 --gres gpu:1 --cpus 8 --array 16": "needs Slurm; see tests/study/test_slurm.py",
    "study run benchmarks/comparison_dimensions.toml -o comparison": (
        "trains 135 runs for 30,000 steps and more; tests/study/test_spec.py reads the file"
    ),
    "study run benchmarks/comparison_dimensions.toml --side-by-side 4": (
        "needs a GPU; tests/study/test_side_by_side.py trains tiny populations side by side"
    ),
    "train beta_vae --data toys/": OWN_DATA,
    "train beta_vae --log-to mlflow": MLFLOW,
    "train beta_vae --seeds 0-7 --log-to wandb": WANDB,
    "train beta_vae --seeds 0-7 --sweep beta=1,4 --watch": WATCHED,
    "train ml_vae --data toys/ --shared shape": OWN_DATA,
}
RUN_BY_REASON = {"render", "presets", "retry"}  # run by test_commands.py
# What a command is run as where the documentation has a placeholder, or something that takes hours.
REPLACED = {
    "cite NAME ...": "cite dsprites beta_vae",
    "data fetch NAME": "data fetch rooms",
    "data inspect FOLDER": "data inspect pictures",
    "data inspect NAME": "data inspect dsprites",
    "data inspect toys/": "data inspect pictures",
    "data show NAME -o sheet.png": "data show dsprites -o sheet.png",
    "explore STUDY": "explore studies/small",
    "explore old.parquet": "explore results.parquet",
    "metrics explain NAME": "metrics explain mig",
    "report old.parquet -o report": "report study/ -o report/",
    "report studies/locatello2020_few_labels -o report": "report study/ -o report/",
    "report studies/capacity -o report": "report study/ -o report/",
    "report studies/smoke -o report": "report study/ -o report/",
    "report studies/tonnaer2022 -o report": "report study/ -o report/",
    "report studies/locatello2019_fairness -o report": "report study/ -o report/",
    "report studies/locatello2019_mini -o report": "report study/ -o report/",
    "report studies/montero2021 -o report": "report study/ -o report/",
    "report studies/vansteenkiste2019_mini": "report study/ -o report/",
    "select studies/locatello2020_few_labels --by few_labels --labels 100": (
        "select studies/capacity --by few_labels --labels 100"
    ),
    "select studies/locatello2020_few_labels --by few_labels --labeller noisy": (
        "select studies/capacity --by few_labels --labeller noisy"
    ),
    "select studies/locatello2020_few_labels --by few_labels --labels 1000": (
        "select studies/capacity --by few_labels --labels 100"
    ),
    "select STUDY --by udr": "select studies/capacity --by udr --top 3",
    "select studies/capacity --metrics mig,dci": "select studies/capacity --metrics mig,modularity",
    "study collect /project/smoke": "study collect studies/smoke",
    "study collect part0 part1 part2 --output results.parquet": (
        "study collect studies/small studies/part1 studies/part2 --output parts.parquet"
    ),
    "study collect STUDY": "study collect studies/small",
    "study collect comparison": "study collect studies/small",
    "study collect studies/mini": "study collect studies/small",
    "study collect studies/vansteenkiste2019_mini": "study collect studies/small",
    "study export --what runs": "study export studies/small --what runs",
    "study plan locatello2019": "study plan locatello2019 --no-measure",
    "study plan smoke": "study plan smoke --no-measure",
    "study run locatello2019": "study plan locatello2019 --no-measure",
    "study run locatello2019_mini": "study plan locatello2019_mini --no-measure",
    "study run locatello2019_mini --preset smoke": (
        "study plan locatello2019_mini --preset smoke --no-measure"
    ),
    "study run locatello2019_mini -o studies/mini": "study plan locatello2019_mini --no-measure",
    "study run locatello2019 --metrics fairness_trees": "study plan locatello2019 --no-measure",
    "study run locatello2019_fairness": "study plan locatello2019_fairness --no-measure",
    "study run locatello2019_fairness --preset smoke": (
        "study plan locatello2019_fairness --preset smoke --no-measure"
    ),
    "study run tonnaer2022": "study plan tonnaer2022 --no-measure",
    "study run tonnaer2022 --preset smoke": "study plan tonnaer2022 --preset smoke --no-measure",
    "study run montero2021": "study plan montero2021 --no-measure",
    "study run montero2021 --preset smoke": "study plan montero2021 --preset smoke --no-measure",
    "study run traeuble2021 --preset smoke": "study plan traeuble2021 --preset smoke --no-measure",
    "study run STUDY --on held_out": "study run studies/capacity --on held_out",
    "study run locatello2020_few_labels": "study plan locatello2020_few_labels --no-measure",
    "study run locatello2020_few_labels --preset smoke": (
        "study plan locatello2020_few_labels --preset smoke --no-measure"
    ),
    "study run locatello2020_weak": "study plan locatello2020_weak --no-measure",
    "study run vansteenkiste2019_mini": "study plan vansteenkiste2019_mini --no-measure",
    "study run smoke": "study run studies/smoke",
    "study run smoke --out /project/smoke --shard 0/2": "study run studies/smoke --shard 0/2",
    "study run smoke --out /project/smoke --shard 1/2": "study run studies/smoke --shard 1/2",
    "study run studies/capacity --metrics dci_es,infomec": "study run studies/capacity --metrics mig",
    "study status /project/smoke": "study status studies/small",
    "study status /project/sprites": "study status studies/small",
    "train vd_vae --data dsprites --layers 24 --width 128 --seed 0": (
        "train vd_vae --data dsprites --layers 24 --width 8 --seed 0"
    ),
    "train glow --data rooms --n-levels 4 --depth 16 --width 256 --seed 0": (
        "train glow --data rooms --n-levels 4 --depth 1 --width 8 --seed 0"
    ),
}
# Options that make a command small; they take the place of those that it has.
SMALL: dict[str, dict[str, list[str]]] = {
    "downstream": {"--sizes": ["10"], "--test": ["20"], "--repeats": ["2"], "--predictor": ["logistic"]},
    "compare": {"--metrics": ["mig"], "--points": ["60", "30"], "--repeats": ["2"]},
    "directions": {"--images": ["60"]},
    "evaluate": {"--metrics": ["mig,dci"], "--points": ["60", "30"]},
    "explore": {"--no-open": []},
    "impossibility": {"--metrics": ["mig"], "--points": ["60", "30"]},
    "select": {"--images": ["400"]},
    "train": {
        "--steps": ["1"],
        "--batch": ["4"],
        "--device": ["cpu"],
        "--no-scores": [],
        "--no-pictures": [],
    },
}
SMALLER = {"--seeds": "0-1", "--repeats": "2"}
GROUPS = ("data", "methods", "metrics", "study")
# Data sets whose official files are not part of the project.
NOT_HERE = ("cars3d", "mnist", "smallnorb", "yale_b")

COMMANDS = documented_commands()
TRAINING = [command for command in COMMANDS if command.words[0] == "train"]
OTHERS = [command for command in COMMANDS if command.words[0] != "train"]
BATCHES = [TRAINING[start : start + 12] for start in range(0, len(TRAINING), 12)]


def reason_against(command: Documented) -> str | None:
    """Why a command is not run, if there is a reason."""
    return OFFICIAL if set(NOT_HERE) & set(command.words) else REASONS.get(command.text)


def words_to_run(command: Documented) -> list[str]:
    """A documented command with small data and few steps."""
    words = shlex.split(REPLACED.get(command.text, command.text))
    words = [re.sub(r"^(RUN|runs/\w+-dsprites-.*)$", RUN, word) for word in words]
    if len(words) == 1 + (words[0] in GROUPS) and words[-1] not in ("list", "--help"):
        return [*words, "--help"]  # running text that names a command
    for option, value in SMALLER.items():
        if option in words:
            words[words.index(option) + 1] = value
    for option, values in SMALL.get(words[0], {}).items() if "--help" not in words else ():
        if option in words:
            words[words.index(option) : words.index(option) + 1 + len(values)] = []
        words += [option, *values]
    return words


def failure_of(command: Documented, commands: CommandServer, folder: Path, columns: int) -> str | None:
    """What went wrong with a command, with its screen."""
    words = words_to_run(command)
    session = commands.start(words, folder, columns=columns, rows=200)
    serves = words[0] == "explore" and not {"--export", "--help"} & set(words)
    if serves:
        session.wait_for(r"Ctrl-C ends it")
        session.type(b"\x03")
    status = session.finish()
    wrong = status != (130 if serves else 0) or "Traceback" in session.text or "…" in session.text
    return f"{command.page}: unweave {shlex.join(words)} -> {status}\n{session.text}" if wrong else None


def failures_of(chosen: list[Documented], commands: CommandServer, folder: Path) -> list[str]:
    """What went wrong, in terminals of 80 and 200 columns by turns."""
    runnable = {tuple(words_to_run(c)): c for c in chosen if reason_against(c) is None}.values()
    found = [failure_of(c, commands, folder, (80, 200)[i % 2]) for i, c in enumerate(runnable)]
    return [failure for failure in found if failure is not None]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch[0].words[1])
def test_training_commands_run(batch: list[Documented], commands: CommandServer, tmp_path: Path) -> None:
    write_pictures(tmp_path / "my_pictures")
    assert "\n\n".join(failures_of(batch, commands, tmp_path)) == ""


def test_all_other_commands_run(commands: CommandServer, tmp_path: Path) -> None:
    assert "\n\n".join(failures_of(OTHERS, commands, make_world(tmp_path / "world"))) == ""


def test_reasons_and_replacements_are_of_documented_commands() -> None:
    assert len(COMMANDS) > 100
    assert {*REASONS, *REPLACED} <= {command.text for command in COMMANDS}


def test_every_command_is_documented_or_run_by_another_test() -> None:
    run = {tuple(words_to_run(command)[:2]) for command in COMMANDS}
    for name, group in {"study": study_app(), "metrics": metrics_app(), "data": data_app}.items():
        names = {command for command in group if not command.startswith("-")}
        missing = {command for command in names if (name, command) not in run} - RUN_BY_REASON
        assert not missing, f"unweave {name} {missing} is in no page"
    alone = {command for command in app if not command.startswith("-")} - set(GROUPS)
    assert alone <= {command.words[0] for command in COMMANDS}
