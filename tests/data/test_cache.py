"""Image tables: atomic, shared by processes, and clear about a full or unwritable disk."""

import errno
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from unweave.data.cache import Table, cached_table, grid_table, table_render
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.errors import UnweaveError
from unweave.streams import Stream

SHAPE = (10, 4)
ROWS = np.arange(40, dtype=np.uint8).reshape(SHAPE)


def chunks() -> Iterator[Table]:
    yield ROWS[:7]
    yield ROWS[7:]


def must_not_run() -> Iterator[Table]:
    raise RuntimeError("the table was there already")


def truth(*, binary: bool = False, stochastic: bool = False) -> GroundTruth:
    def render(factors: Factors, _stream: Stream) -> Images:
        value = 3 * factors[:, 0] + factors[:, 1]
        bits = value[:, None] >> np.arange(8) & 1
        return (bits * (255 if binary else 7)).astype(np.uint8).reshape(-1, 1, 2, 4)

    factors = (Factor("a", 5), Factor("b", 3))
    card = Card("test", "none", "")
    return GroundTruth("test", factors, (1, 2, 4), render, card, "made up", stochastic, binary)


def test_a_table_is_written_once_and_read_only(own_cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    table = cached_table("numbers", SHAPE, chunks, lambda done, total, _="": seen.append((done, total)))
    np.testing.assert_array_equal(table, ROWS)
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, must_not_run), ROWS)
    assert seen == [(7, 10), (10, 10)]
    assert not table.flags.writeable
    assert {path.suffix for path in (own_cache / "tables").iterdir()} == {".npy", ".lock"}


@pytest.mark.parametrize("binary", [False, True])
def test_grid_table_holds_the_grid_in_order(binary: bool) -> None:
    ground_truth = truth(binary=binary)
    table = grid_table(ground_truth)
    assert table.shape == ((15, 1) if binary else (15, 1, 2, 4))
    render = table_render(table, ground_truth.sizes, ground_truth.shape, packed=binary)
    factors = ground_truth.sample_factors(50, 0)
    np.testing.assert_array_equal(render(factors, Stream.of(0)), ground_truth.observe(factors))


def test_a_stochastic_ground_truth_has_no_table() -> None:
    with pytest.raises(UnweaveError, match="cannot be tabled"):
        grid_table(truth(stochastic=True))


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00v\x00{'descr': '|u1'"])
def test_a_damaged_table_is_made_again(own_cache: Path, content: bytes) -> None:
    path = own_cache / "tables" / "numbers.npy"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, chunks), ROWS)


def test_a_truncated_table_is_made_again(own_cache: Path) -> None:
    cached_table("numbers", SHAPE, chunks)
    path = own_cache / "tables" / "numbers.npy"
    path.write_bytes(path.read_bytes()[:-1])
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, chunks), ROWS)


def test_a_full_disk_is_said_and_leaves_nothing_behind(own_cache: Path) -> None:
    cached_table("kept", SHAPE, chunks)

    def full() -> Iterator[Table]:
        yield ROWS[:7]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UnweaveError, match=r"the disk is full: the table .* needs 0 MB"):
        cached_table("numbers", SHAPE, full)
    files = {path.name for path in (own_cache / "tables").iterdir()}
    assert files == {"kept.npy", "kept.lock", "numbers.lock"}
    np.testing.assert_array_equal(cached_table("kept", SHAPE, must_not_run), ROWS)
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, chunks), ROWS)


def test_a_really_full_disk_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("this system has no /dev/full")
    folder = tmp_path / "cache" / "tables"
    folder.mkdir(parents=True)
    (folder / f".numbers.npy.{os.getpid()}.{threading.get_ident()}.part").symlink_to("/dev/full")
    monkeypatch.setattr(Path, "unlink", lambda *_args, **_more: None)  # keep the link to the full device
    with pytest.raises(UnweaveError, match="the disk is full"):
        cached_table("numbers", SHAPE, chunks)


def test_an_unwritable_cache_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UnweaveError, match=r"cannot write the table .* Set UNWEAVE_CACHE to a folder"):
        cached_table("numbers", SHAPE, chunks)


def test_a_source_with_too_few_rows_is_refused(own_cache: Path) -> None:
    with pytest.raises(UnweaveError, match="should have 10 images; its source gave 7"):
        cached_table("numbers", SHAPE, lambda: [ROWS[:7]])
    assert not (own_cache / "tables" / "numbers.npy").exists()


def slowly(count: Path) -> Iterator[Table]:
    with count.open("a") as file:
        file.write("x")
    for row in ROWS:
        time.sleep(0.02)
        yield row[None]


def build(count: Path) -> None:
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, lambda: slowly(count)), ROWS)


def test_two_processes_make_a_table_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=build, args=(tmp_path / "count",)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "x"


def test_a_killed_writer_leaves_nothing_that_looks_whole(tmp_path: Path, own_cache: Path) -> None:
    worker = multiprocessing.get_context("spawn").Process(target=build, args=(tmp_path / "count",))
    worker.start()
    while not list((own_cache / "tables").glob(".*.part")):
        time.sleep(0.005)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    assert not (own_cache / "tables" / "numbers.npy").exists()
    np.testing.assert_array_equal(cached_table("numbers", SHAPE, chunks), ROWS)
    assert not list((own_cache / "tables").glob(".*.part"))
