"""The command line: what commands print, and how they start and end."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unweave
from command_line import run_here
from plugins.outside import install
from unweave.cli import app
from unweave.data import CATALOGUE
from unweave.methods import METHODS
from unweave.nn.distributions.likelihood import LIKELIHOODS, Likelihood
from unweave.nn.networks.architectures import ARCHITECTURES, Architecture


def test_show_draws_a_sheet_on_a_machine_without_any_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unweave", "data", "show", "dsprites", "-o", "sheet.png"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rendered by unweave" in done.stdout
    pixels = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert pixels.shape[0] > 600
    assert (pixels == 0).any(), "no sprite's background"


@pytest.mark.parametrize(
    ("group", "built_in", "plugin"),
    [("architectures", ARCHITECTURES, "my_mlp"), ("likelihoods", LIKELIHOODS, "my_squared")],
)
def test_built_in_and_installed_parts_are_listed(
    group: str,
    built_in: Mapping[str, Architecture | Likelihood],
    plugin: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts = {plugin: f"cli_{group}:{plugin.upper().replace('MY_SQUARED', 'SQUARED')}", "gone": "cli_no:GONE"}
    install(tmp_path, f"cli_{group}", {f"unweave.{group}": parts})
    monkeypatch.syspath_prepend(tmp_path)
    app([group, "list"], result_action="return_value")
    printed = capsys.readouterr()
    lines = {line.split()[0]: line for line in printed.out.splitlines()}
    assert list(lines) == ["name", *built_in, plugin]
    assert all(part.description in lines[name] for name, part in built_in.items())
    assert f'the {group[:-1]} "gone" of a plug-in is left out' in printed.err


def test_list_names_all_data_sets() -> None:
    done = run_here("data", "list")
    assert done.returncode == 0
    for entry in CATALOGUE:
        assert entry.name in done.stdout
    assert "737,280" in done.stdout
    assert "no: unweave data fetch shapes3d" in done.stdout


def test_list_names_all_methods_with_their_settings() -> None:
    done = run_here("methods", "list")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines()[1:] if not line.startswith("  ")]  # not of a long cell
    rows = {line.split()[0]: line for line in lines}
    assert list(rows) == [kind.name for kind in METHODS]
    assert "The variational autoencoder" in rows["vae"]
    assert rows["vae"].split()[-1] == "none"
    assert "gamma 10.0, second_batch False" in rows["factor_vae"]


def test_inspect_says_what_a_folder_is_good_for(tmp_path: Path) -> None:
    for i in range(3):
        Image.fromarray(np.full((8, 8), 40 * i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "factors.csv").write_text("file,size\n0.png,0.5\n1.png,0.71\n2.png,0.93\n")
    done = run_here("data", "inspect", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "holding size fixed" in done.stdout
    assert "bin it first" in done.stdout
    assert "3 images of (1, 32, 32)" in done.stdout
    (tmp_path / "factors.csv").write_text("file,size\n0.png,1\n1.png,1\n2.png,2\n")
    several = run_here("data", "inspect", str(tmp_path)).stdout
    assert "2 combinations of factors with images of (1, 32, 32)" in several


def test_render_and_cite(own_cache: Path) -> None:
    assert "480,000" not in run_here("cite", "dsprites").stdout
    assert run_here("cite", "dsprites:x~y=0.2").stdout == run_here("cite", "dsprites").stdout
    both = run_here("cite", "color_dsprites", "noisy_dsprites").stdout
    assert both.count("@misc{dsprites17") == both.count("@inproceedings{locatello2019") == 1
    mixed = run_here("cite", "dsprites", "beta_vae").stdout
    assert mixed.index("@misc{dsprites17") < mixed.index("@inproceedings{higgins2017betavae")
    assert "@inproceedings{chen2018" in run_here("cite", "mig").stdout
    assert run_here("data", "fetch", "rooms").stdout == "rooms needs no file: unweave renders it.\n"


def test_unweave_cites_itself() -> None:
    """By the file that the repository shows; data sets and methods are cited by name."""
    own = run_here("cite")
    assert (own.returncode, own.stderr) == (0, "")
    assert own.stdout.startswith(
        "@software{unweave,\n  author = {{The unweave authors}},\n  title = {unweave: "
    )
    assert f"version = {{{unweave.__version__}}}" in own.stdout
    assert "{}" not in own.stdout
    assert run_here("cite", "unweave", "dsprites").stdout.startswith(own.stdout)


REFUSED = [
    (["data", "show", "dsprits"], 'there is no data set "dsprits". Did you mean "dsprites"?'),
    (["data", "shwo", "dsprites"], 'Unknown command "shwo". Did you mean "show"?'),
    (["data", "show"], "requires an argument"),
    (["data", "show", "dsprites", "--sede", "1"], "Unknown option: --sede. Did you mean --seed?"),
    (["data", "show", "dsprites", "--seed", "x"], 'unable to convert "x" into int'),
    (["data", "show", "dsprites", "--seed", "-1"], "seed must be a whole number >= 0"),
    (["data", "show", "shapes3d"], "Run `unweave data fetch shapes3d`"),
    (["data", "show", "scream_dsprites"], "scream_dsprites needs the file the_scream.jpg"),
    (["data", "show", "dsprites", "-o", "no.such"], "cannot write the picture"),
    (["data", "render", "noisy_dsprites"], "cannot be tabled"),
    (["data", "inspect", "no-such-folder"], 'there is no data set "no-such-folder"'),
    (["data", "inspect", "dsprites", "b c", "d"], 'the command does not take "b c", "d". Leave that out'),
    (["cite", "cifar"], 'there is no data set, metric or method "cifar". Known: unweave, dsprites'),
    (["cite", "beta_va"], 'there is no data set, metric or method "beta_va". Did you mean "beta_vae"?'),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_input_is_one_sentence_and_status_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("unweave: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert list(tmp_path.glob("*.png")) == []


def test_a_cache_in_the_way_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file"))
    done = run_here("data", "render", "dsprites")
    assert done.returncode == 2
    assert "Set UNWEAVE_CACHE to a folder that you can write to" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m unweave data list | head -c 10"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert os.name == "nt" or done.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, unweave.cli\n"
        "try: unweave.cli.app(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'torch', 'numba', 'pandas', 'matplotlib', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_python_api_needs_no_cyclopts() -> None:
    code = "import sys; sys.modules['cyclopts'] = None; import unweave; unweave.data.load('dsprites')"
    subprocess.run([sys.executable, "-c", code], check=True)
