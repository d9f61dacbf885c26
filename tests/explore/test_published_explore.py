"""Published results and tables of other tools on the study page, from the command line."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from command_line import run_here
from explore.test_server import ask
from report.test_published import made_up
from unweave.commands.explored import Named, subject_named
from unweave.explore.session import Explorer
from unweave.explore.subject import TableInMemory

MAPPING = """
[columns]
seed = "s"

[constants]
data = "dsprites"
method = "their_vae"
source = "theirs"

[settings]
beta = "b"

[scores]
mig = "gap"

[protocols]
mig = "mig[bins20,mean]"
"""


def records_of(named: Named) -> dict[str, Any]:
    subject = subject_named(named)
    assert subject.kind == "study"
    assert isinstance(subject.in_memory, TableInMemory)
    found: dict[str, Any] = json.loads(subject.in_memory.records)
    return found


def test_published_results_are_a_study(tmp_path: Path) -> None:
    made_up().to_csv(tmp_path / "results_cars3d.csv")
    records = records_of(Named(published=tmp_path))
    assert records["id"] == ["published-cars3d-9300", "published-cars3d-9650"]
    assert records["here"] == [0, 0]
    assert records["words"]["method"]["names"] == ["factor_vae", "dip_vae_i"]
    assert records["scores"]["mig"] == [0.5, 0.5]
    opened = Explorer(subject_named(Named(published=tmp_path)))
    try:
        assert json.loads(ask(opened.server, "/api/study")[1])["runs"] == 2
        assert json.loads(ask(opened.server, "/api/subject")[1])["name"] == tmp_path.name
    finally:
        opened.close()


def test_a_table_of_another_tool_is_read_by_its_columns(tmp_path: Path) -> None:
    made_up().to_csv(tmp_path / "results_cars3d.csv")
    pd.DataFrame({"s": [0, 1], "b": [1, 4], "gap": [0.1, 0.2]}).to_csv(tmp_path / "theirs.csv", index=False)
    (tmp_path / "columns.toml").write_text(MAPPING)
    alone = Named((tmp_path / "theirs.csv",), mapping=tmp_path / "columns.toml")
    assert records_of(alone)["scores"]["mig"] == [0.1, 0.2]
    both = Named((tmp_path / "theirs.csv",), published=tmp_path, mapping=tmp_path / "columns.toml")
    assert records_of(both)["runs"] == 4


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    pd.DataFrame({"s": [0]}).to_csv(tmp_path / "theirs.csv")
    (tmp_path / "columns.toml").write_text(MAPPING)
    mistakes: list[tuple[list[object], str]] = [
        (["--published", tmp_path], "has no file of published results"),
        ([tmp_path / "theirs.csv", "--columns", tmp_path / "columns.toml"], 'settings names "b"'),
        ([tmp_path / "theirs.csv"], "Tables of another form need a mapping: --mapping FILE"),
    ]
    for words, sentence in mistakes:
        done = run_here("explore", *words, "--no-open")
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
