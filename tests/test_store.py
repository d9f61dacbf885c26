"""Run folders: every file whole or not there, and a sentence for each that is damaged."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import UnweaveError
from unweave.files import write_json, write_text
from unweave.methods import VAE, BetaVAE
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder, read_tensors, write_tensors

SPEC = RunSpec(BetaVAE(4.0), data="tiny", steps=10)
ORIGIN = {
    "unweave": "0.1.0",
    "torch": "2.9",
    "python": "3.11",
    "image_shape": [1, 32, 32],
    "data_source": "made up",
    "data_drawn": "uniformly",
    "data_licence": "CC0",
    "data_citation": "@misc{tiny}",
    "device": "a CPU",
}
RESULT: dict[str, Any] = {
    "outcome": "finished",
    "steps": 10,
    "seconds": 1.5,
    "runs_beside": 3,
    "terms": {"kl": 12.5, "elbo": None},
}
WEIGHTS = {"encoder.w": torch.arange(6.0).view(2, 3), "steps": torch.tensor(3)}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "runs" / "run")
    made.create(SPEC, ORIGIN)
    return made


def names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def refused(message: str) -> Any:
    return pytest.raises(UnweaveError, match=rf"^[^\n]*{message}[^\n]*$")


def test_a_run_from_start_to_end(folder: RunFolder) -> None:
    assert names(folder) == ["spec.json"]
    assert folder.spec == SPEC
    assert folder.origin == ORIGIN
    assert not folder.result
    with refused("has no trained weights: its training has not finished"):
        folder.weights()
    folder.append_log([{"step": 5, "kl": 1.0}])
    folder.save_checkpoint(5, WEIGHTS)
    folder.finish(WEIGHTS, RESULT)
    assert folder.result == RESULT
    assert names(folder) == ["card.md", "log.jsonl", "result.json", "spec.json", "weights.safetensors"]
    assert all(torch.equal(tensor, WEIGHTS[name]) for name, tensor in folder.weights().items())


def test_the_card_says_what_was_trained_and_how_to_use_and_cite_it(folder: RunFolder) -> None:
    folder.finish(WEIGHTS, RESULT)
    card = (folder.path / "card.md").read_text()
    for part in (
        "# beta_vae on tiny",
        "(made up; drawn uniformly)",
        "beta_vae (beta = 4.0)",
        "It was finished after 10 of 10 steps.",
        "| learning rate | 0.0001 |",
        "| gradient clip | none |",
        "| kl | 12.5 |",
        "| elbo | none |",
        "in 2 seconds with 3 other run(s) on a CPU, with unweave 0.1.0,\ntorch 2.9, Python 3.11.",
        "licence of the images: CC0",
        'unweave.load("path/of/this/folder")',
        "(n, 10) means, of (n, 1, 32, 32) images",
        "@inproceedings{higgins2017betavae,",
        "@misc{tiny}",
    ):
        assert part in card
    folder.finish(WEIGHTS, RESULT | {"outcome": "diverged", "steps": 4})
    assert "It diverged after 4 of 10 steps." in (folder.path / "card.md").read_text()


def test_the_folder_of_the_same_run_is_taken_up_again(folder: RunFolder) -> None:
    before = (folder.path / "spec.json").read_bytes()
    folder.create(SPEC, ORIGIN | {"torch": "3.0", "device": "another"})
    assert (folder.path / "spec.json").read_bytes() == before


def test_folders_of_others_are_refused(folder: RunFolder, tmp_path: Path) -> None:
    with refused(r"is the folder of another run \(beta_vae, [0-9a-f]{16}\). Choose another folder"):
        folder.create(RunSpec(VAE()), ORIGIN)
    with refused('other data of the name "tiny": data_source was made up, and is found. Choose another'):
        folder.create(SPEC, ORIGIN | {"data_source": "found"})
    (tmp_path / "mine").mkdir()
    RunFolder(tmp_path / "mine").create(SPEC, ORIGIN)  # an empty folder belongs to no run
    (tmp_path / "file").write_text("keep")
    with refused("has files that are not of a run"):
        RunFolder(tmp_path / "file").create(SPEC, ORIGIN)
    with refused("cannot write .*file/run/spec.json: Not a directory. Fix this"):
        RunFolder(tmp_path / "file" / "run").create(SPEC, ORIGIN)
    assert (tmp_path / "file").read_text() == "keep"


DAMAGED = [
    (b"", "cannot read .*spec.json: Expecting value.*delete it and train again"),
    (b'{"spec": {"ver', "cannot read .*spec.json: Unterminated string"),
    (b"\xff\xfe\x00", "cannot read .*spec.json: .*can't decode"),
    (b"[1, 2]", "spec.json is not of a run: it must have spec, image_shape"),
    (b'{"name": "a package"}', "spec.json is not of a run: it must have spec, image_shape"),
    (b'{"spec": "text", "image_shape": 3}', "cannot use the run in .*: a spec must be a dict of fields"),
    (b'{"spec": {"version": 9}, "image_shape": 3}', "cannot use the run in .*: this spec is of version 9"),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_a_damaged_or_foreign_spec(folder: RunFolder, content: bytes, message: str) -> None:
    (folder.path / "spec.json").write_bytes(content)
    with refused(message):
        _ = folder.spec
    with refused(message):
        folder.create(SPEC, ORIGIN)


def test_a_spec_that_is_not_there_or_no_file(folder: RunFolder) -> None:
    (folder.path / "spec.json").unlink()
    with refused("is not the folder of a run: it has no spec.json"):
        _ = folder.spec
    (folder.path / "spec.json").mkdir()
    with refused("cannot read .*spec.json: .*Is a directory"):
        _ = folder.spec


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "cannot read .*result.json"), ("{}", "result.json is not of a run: it must have outcome, steps")],
)
def test_a_damaged_result(folder: RunFolder, content: str, message: str) -> None:
    folder.finish(WEIGHTS, RESULT)
    (folder.path / "result.json").write_text(content)
    with refused(message):
        _ = folder.result


def test_a_run_whose_weights_are_lost_is_not_finished(folder: RunFolder) -> None:
    folder.finish(WEIGHTS, RESULT)
    (folder.path / "weights.safetensors").unlink()
    assert folder.result is None


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x00" * 100, b"\xff" * 100, b"{}" * 50])
def test_weights_that_are_no_weights(folder: RunFolder, content: bytes) -> None:
    folder.finish(WEIGHTS, RESULT)
    (folder.path / "weights.safetensors").write_bytes(content)
    with refused("cannot read the weights in .*weights.safetensors: .* Delete this file and run the same"):
        folder.weights()
    with refused("there is no file .*checkpoint-7.safetensors"):
        folder.load_checkpoint(7)


@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_truncated_or_altered_weights_never_give_another_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    write_tensors(path, WEIGHTS)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        with refused("cannot read the weights"):
            read_tensors(path)
        return
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        read_tensors(path)
    except UnweaveError as error:
        assert "cannot read the weights" in str(error)  # noqa: PT017  a changed byte of a weight is no error


def test_the_log_ends_before_a_line_that_was_cut(folder: RunFolder) -> None:
    assert folder.log() == []
    folder.append_log([{"step": 1, "kl": 1.5}, {"step": 2, "kl": None}])
    folder.append_log([{"step": 3, "kl": 0.5}])
    path = folder.path / "log.jsonl"
    whole = path.read_bytes()
    for cut in range(whole.index(b'{"step": 3'), len(whole) - 2):
        path.write_bytes(whole[:cut])
        assert [line["step"] for line in folder.log()] == [1, 2]
    for odd in (b"3\n", b"{}\n", b"\xff\xff\n"):
        path.write_bytes(odd + whole)
        assert folder.log() == []


def test_a_log_can_be_cut(folder: RunFolder) -> None:
    folder.append_log([{"step": step} for step in (10, 20, 30)])
    with (folder.path / "log.jsonl").open("a") as file:
        file.write('{"step": 4')
    folder.cut_log(20)
    assert (folder.path / "log.jsonl").read_text() == '{"step": 10}\n{"step": 20}\n'
    folder.cut_log(0)
    assert folder.log() == []


def test_odd_names_are_no_checkpoints(folder: RunFolder) -> None:
    for step in (200, 30):
        folder.save_checkpoint(step, WEIGHTS)
    for name in ("checkpoint-x.safetensors", "checkpoint-007.safetensors", "checkpoint-5.safetensors.old"):
        (folder.path / name).write_text("")
    (folder.path / ".checkpoint-6.safetensors.1.2.part").write_text("")
    assert folder.checkpoints() == [30, 200]
    folder.drop_checkpoints(keep=200)
    assert folder.checkpoints() == [200]
    assert "checkpoint-007.safetensors" in names(folder)


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str
) -> None:
    path = tmp_path / "record.json"
    write_json(path, {"a": 1})

    def fails(*_arguments: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os if breaks == "fsync" else Path, breaks, fails)
    with refused("cannot write .*record.json: Input/output error. Fix this and run the same command again"):
        write_text(path, "other")
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]
