"""Commands that no page shows, and what all commands have in common, in a terminal."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from terminal.session import CommandServer
from terminal.world import CAPACITY
from unweave.data import CATALOGUE
from unweave.methods import METHODS, summary
from unweave.metrics import METRICS
from unweave.nn.distributions.likelihood import LIKELIHOODS
from unweave.nn.networks.architectures import ARCHITECTURES

LISTS = {
    "data": [entry.name for entry in CATALOGUE],
    "methods": [kind.name for kind in METHODS],
    "metrics": [metric.name for metric in METRICS],
    "architectures": list(ARCHITECTURES),
    "likelihoods": list(LIKELIHOODS),
}


def test_every_method_has_a_line_of_its_own() -> None:
    lines = [summary(kind) for kind in METHODS]
    assert len(set(lines)) == len(METHODS)
    for line in lines:
        assert line.endswith(".")
        assert 30 <= len(line) <= 100, line
        assert not re.search(r"\[\d\]|\brec\b", line), f"{line} is no description"


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("group", LISTS)
def test_lists_fit_the_terminal(group: str, columns: int, commands: CommandServer, tmp_path: Path) -> None:
    session = commands.run([group, "list"], tmp_path, columns=columns, rows=250)
    assert session.status == 0
    names = [line[:40].split()[0] for line in session.text.splitlines() if line[:40].split()]
    assert [name for name in names if name in LISTS[group]] == LISTS[group]
    assert "…" not in session.text
    words = set(re.findall(r"[\w\[\],.+-]+", session.text))
    if group == "metrics":
        assert {metric.protocol() for metric in METRICS} <= words
    elif group == "data":
        assert {factor.name for entry in CATALOGUE for factor in entry.factors} <= words


@pytest.mark.parametrize(
    "command",
    ["", "train", "train beta_vae", "study run", "data show", "evaluate", "metrics list", "methods list"],
)
def test_help_names_the_options_of_all_commands(
    command: str, commands: CommandServer, tmp_path: Path
) -> None:
    session = commands.run([*command.split(), "--help"], tmp_path, rows=120)
    assert session.status == 0
    assert "-q or --quiet" in session.words
    assert "-v or --verbose" in session.words
    if command == "train":
        for kind in METHODS:
            assert f"{kind.name} " in session.text
        assert "ML-VAE on pairs whose changed factors are known" in session.words


@pytest.mark.parametrize("command", ["train beta_vae", "study run", "evaluate"])
def test_help_breaks_lines_where_the_terminal_ends(
    command: str, commands: CommandServer, tmp_path: Path
) -> None:
    session = commands.run([*command.split(), "--help"], tmp_path, columns=110, rows=120)
    lines = [line[1:-1] for line in session.text.splitlines() if line.startswith("│")]
    width = len(lines[0])
    for line, following in pairwise(lines):
        continued = following.startswith(" " * 8)  # no option begins here
        assert not continued or len(line.rstrip()) + 1 + len(following.split()[0]) + 1 >= width, following
    assert "--empty" not in session.words
    assert "[]" not in session.words


def test_commands_without_a_page(commands: CommandServer, tmp_path: Path) -> None:
    presets = commands.run(["study", "presets"], tmp_path)
    assert (presets.status, "smoke: " in presets.text) == (0, True)
    assert commands.run(["--version"], tmp_path).status == 0
    refused = commands.run(["data", "render", "noisy_dsprites"], tmp_path)
    assert refused.status == 2
    assert "cannot be tabled" in refused.words


def test_a_study_is_stopped_resumed_and_retried(commands: CommandServer, tmp_path: Path) -> None:
    text = CAPACITY.replace('"0-2"', "0").replace("[1, 4]", "4")
    (tmp_path / "one.toml").write_text(text)
    arguments = ["study", "run", "one.toml", "-o", "one", "--workers", "1", "--device", "cpu"]
    session = commands.start(arguments, tmp_path)
    session.wait_for(r"━.* 0/1 runs done .* elapsed")
    session.type(b"\x03")
    assert session.finish() == 130
    assert re.search(r"(?m)^stopped by signal 2: run the same command again to resume\.$", session.text)
    assert "Traceback" not in session.text

    resumed = commands.run(arguments, tmp_path)
    assert resumed.status == 0, resumed.text
    assert re.search(r"(?m)^━+ +1/1 runs done  0:\d\d elapsed", resumed.text)
    assert "1 trained, 0 tasks running" in resumed.text
    assert "\n  unweave report one\n" in resumed.text

    quiet = commands.run([*arguments, "--quiet"], tmp_path)
    assert quiet.status == 0
    assert quiet.text.startswith("1 of 1 runs done")
    assert "unweave report" not in quiet.text
    retry = commands.run(["study", "retry", "one"], tmp_path)
    assert (retry.status, retry.text) == (0, "0 tasks are open again: unweave study run one")
    assert "1 of 1 runs done" in commands.run(["study", "status", "one"], tmp_path).text

    (tmp_path / "one" / "ledger.sqlite").unlink()
    refused = commands.run(["study", "retry", "one"], tmp_path)
    assert refused.status == 2
    assert "there is nothing to retry" in refused.words
