"""Mistakes in the input of every command: one clear sentence, exit status 2, and no traceback."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from terminal.session import CommandServer

# A command line, and part of the sentence that it gets.
TRAIN = {
    "beta_va": 'there is no method "beta_va". Did you mean "beta_vae"? Methods: vae, ',
    "vae --learning-rate nan": "learning_rate must be a number greater than 0; got nan.",
    "vae --gradient-clip -1": "gradient_clip must be a number greater than 0; got -1.0.",
    "vae --optimiser sgd": 'there is no optimiser "sgd". Known: adam, adamw, compact_adam.',
    "vae --weight-decay 0.1": "adam has no weight decay; got weight_decay 0.1. Use adamw.",
    "vae --optimiser adamw": "adamw needs a weight_decay greater than 0, such as 0.01; got 0.",
    "vae --schedule cosin": 'there is no schedule "cosin". Did you mean "cosine"?',
    "vae --warmup 1": "warmup must be a number >= 0 and < 1; got 1.0.",
    "vae --batch 1": "batch must be a whole number >= 2; got 1.",
    "vae --seed 1.5": "--seed takes a whole number; got 1.5.",
    "vae --steps 1.5": "--steps takes a whole number; got 1.5.",
    "qlae --values-per-latent 2.5": "--values-per-latent takes a whole number; got 2.5.",
    "beta_vae --beta 3 --sweep beta=1,2": "give either --beta or --sweep beta=..., not both.",
    "info_vae --lambda 3 --sweep lambda=1,2": "give either --lambda or --sweep lambda=..., not both.",
    "vae --seeds 0-100000000000": 'the range of seeds "0-100000000000" has more than 1,000,000 numbers.',
    "vae --device mps": 'unweave does not run on the device "mps". Use auto, cpu, cuda or cuda:1.',
    "vae --device meta": 'unweave does not run on the device "meta".',
    "vae --data ''": 'there is no data set "".',
    "vae --data junk.npz": "junk.npz as arrays saved by numpy.savez or numpy.save: it is damaged, or holds",
    "vae --out file.txt": "file.txt is a file. Name a folder for the runs with --out.",
    "vae --likelihood poisson": 'there is no likelihood "poisson". Known: bernoulli, gaussian, ',
    "vae --likelihood gone.py:MINE": "gone.py, and there is no such file. Restore it, or name the file that",
    "vae --data gone.py:MINE": "gone.py, and there is no such file. Restore it, or name the file that",
    "gone.py:MyVAE": "gone.py, and there is no such file. Restore it, or name the file that has it now.",
    "gone_module:MyVAE": "cannot import the method gone_module:MyVAE: ModuleNotFoundError",
    "vae 3": 'the command does not take "3". Leave that out',
    "generalized_m2 --inference 'q(z'": "a factorisation of q is a product",
    "ml_vae --shared nosuch --steps 1": 'dsprites has no factor "nosuch". Known: shape, scale',
    "aae_clusters --clusters 1": "clusters of aae_clusters must be at least 2; got 1.",
    "m2 --labels 99999999999 --steps 1": "",
    "vae --quiet --verbose": "give either --quiet or --verbose, not both.",
}
EVALUATE = {
    "": "name what to evaluate",
    "nosuch": "there is no nosuch.",
    "empty": "empty is not the folder of a run, and there is none in it.",
    "file.txt": "file.txt",
    "junk.npz": "cannot read junk.npz as numbers saved by NumPy: it is damaged, or holds something else.",
    "nan.npz": "codes must be finite; 300 of 300 values are NaN or infinite",
    "codes.npz --points 10.5 3": "--points takes a whole number; got 10.5.",
    "codes.npz --points 5": "--points requires 2 positional arguments.",
    "codes.npz --repeats -1": "repeats must be a whole number, 0 or more; got -1.",
    "codes.npz --metrics nosuch": 'there is no metric or suite "nosuch".',
    "codes.npz --metrics elbo": "elbo cannot be measured here",
    "codes.npz --json empty": "empty is a folder. Name a file to write.",
    "codes.npz --json file.txt/a.json": "cannot write into file.txt: it is a file. Name another file.",
    "codes.npz --plot a.xyz": "a.xyz must end in .png or .pdf",
}
STUDY = {
    "plan nosuch": 'there is no study "nosuch".',
    "plan junk.toml": "cannot read junk.toml as TOML",
    "plan odd.toml": 'the study "odd" has no runs.',
    "plan file.txt": "file.txt is no study: give a preset, a .toml file or the folder of a study.",
    "plan smoke --population 0": "population must be a whole number >= 1; got 0.",
    "run smoke --workers 0": "workers must be a whole number >= 1; got 0.",
    "run smoke --checkpoint-every 0": "checkpoint_every must be a whole number >= 1; got 0.",
    "run smoke --shard 3/2": "shards of 2 are 0/2 to 1/2; got 3/2.",
    "run smoke --address auto": "Give --engine ray too, or leave --address out.",
    "run smoke --partition gpu": "Give --engine slurm too, or leave --partition out.",
    "run smoke --engine slrum": 'there is no study engine "slrum". Did you mean "slurm"?',
    "run smoke --engine slurm --array 0": "array must be a whole number >= 1; got 0.",
    "run smoke --out file.txt": "file.txt is a file. Name a folder for the study.",
    "status nosuch": "nosuch is not the folder of a study",
    "retry nosuch": "nosuch is not the folder of a study",
    "collect empty": "empty is not the folder of a study: it has no study.json.",
    "export empty -o a.xlsx": "a.xlsx must end in .parquet or .csv.",
}
OTHERS = {
    "report": "name what to report on",
    "report empty": "empty has no results.parquet",
    "report wrong.csv": "Tables of another form need a mapping: --mapping FILE",
    "report wrong.csv --mapping odd.toml": '"name" cannot be part of a mapping of columns.',
    "report --published empty": "empty has no file of published results",
    "select nosuch": "there is no folder nosuch.",
    "select empty --top 0": "--top is how many runs to show, 1 or more; got 0.",
    "select empty --metrics total_correlation": "total_correlation needs none.",
    "report nosuch": "there is no file or folder nosuch. Give a study",
    "explore nosuch": "there is no nosuch. Give the folder of a run or a study",
    "explore empty": "empty is neither the folder of a run",
    "explore file.txt": "results are read from a .csv or .parquet file; got",
    "explore wrong.csv": "a table of results has the columns",
    "explore empty --device gpu": 'there is no device "gpu". Use auto, cpu, cuda or cuda:1.',
    "explore empty --export empty": "empty is a folder. Name a file to write.",
    "data show nosuch": 'there is no data set "nosuch".',
    "data show dsprites --seed 1.5": "--seed takes a whole number; got 1.5.",
    "data fetch nosuch": 'there is no data set "nosuch".',
    "data render nosuch": 'there is no data set "nosuch".',
    "data inspect empty": "no picture found in empty",
    "metrics explain nosuch": 'there is no metric "nosuch".',
    "metrics explain": "requires an argument",
    "compare nosuch empty": "there is no folder nosuch. Give the folders of two runs.",
    "compare empty": "requires an argument",
    "compare empty empty": "empty is not the folder of a run: it has no spec.json.",
    "compare empty empty --metrics nosuch": 'there is no metric or suite "nosuch".',
    "impossibility nosuch": '"nosuch" is neither the folder of a run nor a data set.',
    "impossibility dsprites --points 0 0": "points are two whole numbers",
    "impossibility dsprites -o empty": "empty is a folder. Name a file to write.",
    "impossibility dsprites --mixing magic": 'Choose from: "reflection", "cosines".',
    "cite nosuch": 'there is no data set, metric or method "nosuch".',
    "trian": 'Unknown command "trian". Did you mean "train"?',
}
GROUPS = {"train": TRAIN, "evaluate": EVALUATE, "study": STUDY, "": OTHERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of all wrong kinds."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "empty").mkdir()
    files = {"file.txt": "hello", "junk.npz": "junk", "junk.toml": "name = ", "odd.toml": 'name = "odd"'}
    for name, text in {**files, "wrong.csv": "a,b\n1,2\n"}.items():
        (folder / name).write_text(text)
    factors = np.arange(100)[:, None] % 3
    np.savez(folder / "codes.npz", codes=np.ones((100, 3)), factors=factors)
    np.savez(folder / "nan.npz", codes=np.full((100, 3), np.nan), factors=factors)
    return folder


@pytest.mark.parametrize("group", GROUPS)
def test_one_sentence_and_status_2(group: str, commands: CommandServer, folder: Path) -> None:
    before = sorted(folder.iterdir())
    wrong = []
    for line, sentence in GROUPS[group].items():
        session = commands.run(shlex.split(f"{group} {line}"), folder, columns=500)
        # A command may say what it is about to do before it finds the mistake.
        messages = re.findall(r"(?m)^unweave: .+$", session.text)
        good = session.status == 2 and "Traceback" not in session.text and "━" not in session.text
        if not good or len(messages) != 1 or sentence not in messages[0]:
            wrong.append(f"unweave {group} {line} -> {session.status}\n{session.text}")
    assert "\n\n".join(wrong) == ""
    assert [path for path in sorted(folder.iterdir()) if path not in before and path.name != "runs"] == []


def test_verbose_shows_where_a_mistake_was_noticed(commands: CommandServer, folder: Path) -> None:
    session = commands.run(["study", "plan", "junk.toml", "--verbose"], folder)
    assert session.status == 2
    assert "Traceback (most recent call last)" in session.text
    assert "TOMLDecodeError" in session.text
    assert re.search(r"(?m)^unweave: cannot read junk.toml as TOML", session.text)


def test_there_are_more_than_forty() -> None:
    assert sum(map(len, GROUPS.values())) > 40
