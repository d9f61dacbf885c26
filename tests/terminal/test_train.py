"""`unweave train` in a real terminal: the screen while it trains, when it is stopped, and after."""

import re
from pathlib import Path

import pytest

from plugins.outside import write_plugin
from terminal.session import CommandServer

TINY = ["--batch", "4", "--device", "cpu", "--log-every", "1"]
PLAIN = ["--no-scores", "--no-pictures"]
COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|38;|4[0-7]|48;)[0-9;]*m")


def test_the_first_command_at_80_columns(commands: CommandServer, tmp_path: Path) -> None:
    session = commands.run(["train", "beta_vae", "--preset", "quick", "--steps", "6", *TINY], tmp_path)
    assert session.status == 0, session.text
    assert "Traceback" not in session.text
    during = [frame for frame in session.frames if re.search(r"[1-5]/6 steps", frame)]
    assert during, session.frames
    for frame in during:
        assert re.search(r"━.* [1-5]/6 steps  0:\d\d left  [\d.,]+ steps/s  0:\d\d elapsed", frame), frame
        assert re.search(r"reconstruction \d+", frame)
    assert any("drawing pictures" in frame for frame in session.frames)
    assert any("measuring" in frame for frame in session.frames)
    assert re.search(r"━ +6/6 steps  [\d.,]+ steps/s  0:\d\d elapsed", session.text)
    [folder] = (tmp_path / "runs").iterdir()
    assert f"-> runs/{folder.name}\n" in session.text
    assert f"\n  unweave explore runs/{folder.name}\n" in session.text
    assert f"\n  unweave evaluate runs/{folder.name} --metrics study" in session.text
    assert "drawing" not in session.text
    assert COLOUR.search(session.output)

    again = commands.run(["train", "beta_vae", "--preset", "quick", "--steps", "6", *TINY], tmp_path)
    assert again.status == 0
    assert "1 already done: nothing is trained twice." in again.text
    assert "steps/s" not in again.text

    quiet = commands.run(["train", "-q", "beta_vae", "--preset", "quick", "--steps", "6", *TINY], tmp_path)
    assert quiet.status == 0
    assert quiet.text.startswith("beta_vae (beta 16), seed 0: finished after 6 steps")
    assert quiet.text.endswith(f"-> runs/{folder.name}")


def test_several_seeds_of_which_one_is_done_at_200_columns(commands: CommandServer, tmp_path: Path) -> None:
    data = f"{write_plugin(tmp_path).name}:squares"  # so small that measuring takes no time
    arguments = ["train", "beta_vae", "--data", data, "--steps", "3", "--no-pictures", *TINY]
    first = commands.run([*arguments, "--seed", "1", "--no-scores"], tmp_path, columns=200)
    assert first.status == 0, first.text
    session = commands.run([*arguments, "--seeds", "0-1", "-v"], tmp_path, columns=200)
    assert session.status == 0, session.text
    assert "2 runs of beta_vae on my_squares, 3 steps, into runs/" in session.text
    assert "1 already done" in session.text
    assert "device cpu, data made up" in session.text  # --verbose
    assert any("measuring and drawing run" in frame for frame in session.frames)
    assert any("1/2 runs trained" in frame for frame in session.frames)
    line = next(line for line in session.text.splitlines() if "━" in line)
    assert re.search(r"3/3 steps  2/2 runs trained .* elapsed  reconstruction \d+, kl ", line)
    assert session.text.count("finished after 3 steps") == 2
    assert "\n  unweave report runs" in session.text
    assert (tmp_path / "runs" / "results.parquet").exists()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_plain_terminals(name: str, value: str, commands: CommandServer, tmp_path: Path) -> None:
    session = commands.run(["train", "vae", "--steps", "4", *TINY, *PLAIN], tmp_path, **{name: value})
    assert session.status == 0, session.text
    assert not COLOUR.search(session.output)
    if name == "TERM":
        assert b"\x1b" not in session.output
        assert re.search(r"step 1 of 4: .*\n(.*\n)*step 4 of 4: reconstruction \d+, kl", session.text)
    else:
        assert re.search(r"━ +4/4 steps", session.text)


def test_a_window_that_is_resized(commands: CommandServer, tmp_path: Path) -> None:
    session = commands.start(["train", "vae", "--steps", "100000", *TINY, *PLAIN], tmp_path, 200)
    session.wait_for(r"steps/s .* reconstruction \d+")
    session.resize(60, 50)
    session.wait_for(r"(?m)^━.{0,58}/100,000 steps  \S+ left")
    session.frames.clear()
    session.wait_for(r"(?m)^reconstruction \d+, kl \S+$")
    session.resize(120, 50)
    session.wait_for(r"(?m)^━.*/100,000 steps .* steps/s  0:\d\d elapsed")
    session.type(b"\x03")
    assert session.finish() == 130
    assert "Traceback" not in session.text


def test_ctrl_c_says_how_to_resume_and_the_same_command_resumes(
    commands: CommandServer, tmp_path: Path
) -> None:
    arguments = ["train", "vae", "--steps", "40", *TINY, *PLAIN]
    session = commands.start(arguments, tmp_path)
    session.wait_for(r" [2-9]/40 steps")
    session.type(b"\x03")
    assert session.finish() == 130
    stopped = re.search(r"after step (\d+): run the same command again to resume\.$", session.text)
    assert stopped, session.text
    assert session.text.count("resume") == 1
    assert "Traceback" not in session.text

    again = commands.run(arguments, tmp_path)
    assert again.status == 0, again.text
    steps = [int(step) for step in re.findall(r" (\d+)/40 steps  0:\d\d left", "\n".join(again.frames))]
    assert min(steps) > int(stopped[1])
    assert "finished after 40 steps" in again.text
