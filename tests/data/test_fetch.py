"""Downloads against a server of our own that misbehaves on request."""

from __future__ import annotations

import errno
import io
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from data.download_site import CONTENT, SHA256, SIZE, Site, in_another_process, names, official
from unweave.data import fetch as fetch_module
from unweave.data.fetch import fetch
from unweave.data.files import OfficialFile, verify
from unweave.errors import UnweaveError

pytestmark = pytest.mark.usefixtures("empty_cache")


def cut(site: Site, file: OfficialFile, folder: Path, after: int) -> None:
    """Download the first bytes only."""
    site.cut_after = after
    with pytest.raises(UnweaveError, match="the connection was cut after"):
        fetch("toy", [file], folder)
    site.cut_after = None
    site.requests.clear()


@pytest.mark.parametrize("checksum", [SHA256, ""])
@pytest.mark.parametrize("size", [SIZE, None])
@pytest.mark.parametrize("length", [True, False])
def test_a_file_is_fetched_once(
    site: Site, folder: Path, checksum: str, size: int | None, length: bool
) -> None:
    site.length = length
    file = official(site, checksum, size)
    assert fetch("toy", [file], folder) == [folder / "a.npz"]
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert names(folder) == {"a.npz"}
    assert verify(folder / "a.npz", file) == f"a.npz ({SHA256})"
    assert fetch("toy", [file], folder) == [folder / "a.npz"]
    assert site.seen == [(None, 200)]


def test_progress_is_reported(site: Site, folder: Path) -> None:
    reports: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, what: str = "") -> None:
        reports.append((done, total, what))

    fetch("toy", [official(site)], folder, progress)
    assert reports[0] == (0, SIZE, "a.npz")
    assert reports[-1] == (SIZE, SIZE, "a.npz")
    done = [report[0] for report in reports]
    assert done == sorted(set(done))


def test_several_files_come_in_order(site: Site, folder: Path) -> None:
    site.contents["/b.npz"] = b"b"
    files = [OfficialFile("b.npz", urls=(f"{site.address}/b.npz",)), official(site)]
    assert fetch("toy", files, folder) == [folder / "b.npz", folder / "a.npz"]
    assert (folder / "b.npz").read_bytes() == b"b"


def test_a_file_address_and_a_redirect(site: Site, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(CONTENT)
    file = OfficialFile("a.npz", SHA256, SIZE, ((tmp_path / "a.npz").as_uri(),))
    assert fetch("toy", [file], folder)[0].read_bytes() == CONTENT
    site.moved["/old"] = f"{site.address}/a.npz"
    moved = OfficialFile("b.npz", SHA256, SIZE, (f"{site.address}/old",))
    assert fetch("toy", [moved], folder)[0].read_bytes() == CONTENT


@pytest.mark.parametrize("checksum", [SHA256, ""])
@pytest.mark.parametrize("etag", ['"one"', 'W/"one"', ""])
def test_a_cut_download_is_resumed_where_that_is_safe(
    site: Site, folder: Path, checksum: str, etag: str
) -> None:
    site.etag = etag
    file = official(site, checksum)
    site.cut_after = 250_000
    with pytest.raises(UnweaveError) as caught:
        fetch("toy", [file], folder)
    assert str(caught.value) == (
        f"a.npz of toy could not be downloaded ({site.address}/a.npz: the connection was cut after 250,000 "
        "of 640,000 bytes). Running the command again continues from the 250,000 bytes that are kept. "
        f"Try again later, or download it by hand into {folder}."
    )
    assert names(folder) == {"a.npz.part", "a.npz.part.origin"}
    assert (folder / "a.npz.part").read_bytes() == CONTENT[:250_000]

    site.cut_after = None
    fetch("toy", [file], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert names(folder) == {"a.npz"}
    # Without a checksum, and without a version that promises equal bytes, nothing vouches for the part.
    safe = bool(checksum) or etag == '"one"'
    assert site.seen[1:] == ([("bytes=250000-", 206)] if safe else [(None, 200)])


def test_a_download_is_cut_again_and_again(site: Site, folder: Path) -> None:
    file = official(site)
    for round_ in range(1, 7):
        cut(site, file, folder, 100_000)
        assert (folder / "a.npz.part").stat().st_size == round_ * 100_000
    fetch("toy", [file], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_restarts(site: Site, folder: Path) -> None:
    site.ranges = False
    cut(site, official(site), folder, 1000)
    fetch("toy", [official(site)], folder)
    assert site.seen == [("bytes=1000-", 200)]
    assert (folder / "a.npz").read_bytes() == CONTENT


def test_a_file_that_changed_on_the_server_restarts(site: Site, folder: Path) -> None:
    file = official(site, checksum="")
    site.contents["/a.npz"] = bytes(SIZE)
    cut(site, file, folder, 1000)
    site.contents["/a.npz"], site.etag = CONTENT, '"two"'
    fetch("toy", [file], folder)
    assert site.requests == [("/a.npz", "bytes=1000-", '"one"', 200)]
    assert (folder / "a.npz").read_bytes() == CONTENT


@pytest.mark.parametrize("size", [SIZE, None])
def test_a_whole_part_is_taken_as_it_is(site: Site, folder: Path, size: int | None) -> None:
    folder.mkdir(parents=True)
    (folder / "a.npz.part").write_bytes(CONTENT)
    fetch("toy", [official(site, size=size)], folder)
    assert names(folder) == {"a.npz"}
    # Without a size only the server can tell that nothing is missing.
    assert site.seen == ([] if size else [(f"bytes={SIZE}-", 416)])


@pytest.mark.parametrize("size", [SIZE, None])
def test_a_part_that_is_too_long_restarts(site: Site, folder: Path, size: int | None) -> None:
    folder.mkdir(parents=True)
    (folder / "a.npz.part").write_bytes(CONTENT + b"more")
    fetch("toy", [official(site, size=size)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert site.seen[-1] == (None, 200)


def test_a_part_of_other_bytes_is_deleted(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "a.npz.part").write_bytes(bytes(1000))
    with pytest.raises(UnweaveError, match=f"what came is not the published file: expected {SHA256}, got"):
        fetch("toy", [official(site)], folder)
    assert names(folder) == set()
    fetch("toy", [official(site)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT


def test_another_range_than_asked_for_is_refused(site: Site, folder: Path) -> None:
    cut(site, official(site), folder, 1000)
    site.content_range = f"bytes 0-{SIZE - 1}/{SIZE}"
    with pytest.raises(UnweaveError, match="another part of the file than was asked for"):
        fetch("toy", [official(site)], folder)
    assert (folder / "a.npz.part").read_bytes() == CONTENT[:1000]


def test_a_wrong_checksum_is_said_and_deleted(site: Site, folder: Path) -> None:
    site.contents["/a.npz"] = bytes(SIZE)
    with pytest.raises(UnweaveError, match=f"expected {SHA256}, got sha256:[0-9a-f]{{64}}, and was deleted"):
        fetch("toy", [official(site)], folder)
    assert names(folder) == set()


def test_a_truncated_file_on_the_server_is_refused(site: Site, folder: Path) -> None:
    site.contents["/a.npz"] = CONTENT[:5000]
    with pytest.raises(UnweaveError, match="it has a file of 5,000 bytes, and 640,000 were expected"):
        fetch("toy", [official(site)], folder)
    assert names(folder) == set()


def test_a_wrong_file_in_place_is_replaced(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "a.npz").write_bytes(CONTENT[:-1])
    fetch("toy", [official(site)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT


def test_mirrors_are_tried_in_order(site: Site, folder: Path) -> None:
    site.contents["/lie.npz"] = bytes(SIZE)
    site.status["/broken.npz"] = 500
    paths = ["/none.npz", "/broken.npz", "/lie.npz", "/a.npz", "/never.npz"]
    urls = tuple(site.address + path for path in paths)
    fetch("toy", [OfficialFile("a.npz", SHA256, SIZE, urls)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert [path for path, *_ in site.requests] == paths[:4]


def test_a_mirror_continues_what_another_began(site: Site, folder: Path) -> None:
    cut(site, official(site), folder, 1000)
    site.contents["/mirror.npz"] = site.contents.pop("/a.npz")
    urls = (f"{site.address}/a.npz", f"{site.address}/mirror.npz")
    fetch("toy", [OfficialFile("a.npz", SHA256, SIZE, urls)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT
    # The version is sent only to the address that gave it.
    assert site.requests[1] == ("/mirror.npz", "bytes=1000-", None, 206)


def test_when_all_addresses_fail_each_is_named(site: Site, folder: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/a.npz"
    site.status["/b.npz"] = 500
    site.moved["/c.npz"] = "ftp://127.0.0.1/c.npz"
    urls = (
        closed,
        f"{site.address}/none.npz",
        f"{site.address}/b.npz",
        f"{site.address}/c.npz",
        "ftp://127.0.0.1/a.npz",
        "data:,hello",
        "nonsense",
        "file:///nowhere/a.npz",
    )
    with pytest.raises(UnweaveError) as caught:
        fetch("toy", [OfficialFile("a.npz", SHA256, SIZE, urls)], folder)
    assert str(caught.value) == (
        f"a.npz of toy could not be downloaded ({closed}: Connection refused; "
        f"{urls[1]}: HTTP status 404, Not Found; {urls[2]}: HTTP status 500, Internal Server Error; "
        f"{urls[3]}: unknown url type: ftp; {urls[4]}: unknown url type: ftp; "
        f"{urls[5]}: unknown url type: data; {urls[6]}: unknown url type: 'nonsense'; "
        f"{urls[7]}: No such file or directory). "
        f"Try again later, or download it by hand into {folder}."
    )
    assert names(folder) == set()


def test_a_silent_server_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.npz"
        with pytest.raises(UnweaveError, match=r"a.npz: no answer for 0 seconds"):
            fetch("toy", [OfficialFile("a.npz", SHA256, SIZE, (url,))], folder)


def test_a_file_without_address_cannot_be_downloaded(folder: Path) -> None:
    with pytest.raises(UnweaveError) as caught:
        fetch("toy", [OfficialFile("a.npz", SHA256, SIZE)], folder)
    assert str(caught.value) == (
        "a.npz of toy cannot be downloaded: no public address is known for it. "
        f"Get it from its makers and put it into {folder}."
    )
    (folder / "a.npz").write_bytes(CONTENT)
    assert fetch("toy", [OfficialFile("a.npz", SHA256, SIZE)], folder) == [folder / "a.npz"]


def test_threads_that_fetch_together_download_once(site: Site, folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fetch("toy", [official(site)], folder), range(4)))
    assert results == [[folder / "a.npz"]] * 4
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert site.seen == [(None, 200)]


def test_processes_that_fetch_together_download_once(site: Site, folder: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from unweave.data.fetch import fetch
        from unweave.data.files import OfficialFile
        checksum, url, folder = sys.argv[1:]
        fetch("toy", [OfficialFile("a.npz", checksum, None, (url,))], Path(folder))
    """
    url = f"{site.address}/a.npz"
    processes = [in_another_process(script, SHA256, url, str(folder)) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert site.seen == [(None, 200)]


class FullDisk(io.FileIO):
    """A file on a disk with room for 300,000 bytes."""

    def write(self, block: Any, /) -> int:
        if self.tell() + len(block) > 300_000:
            super().write(block[: 300_000 - self.tell()])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(block)


def test_a_full_disk_keeps_the_part(site: Site, folder: Path) -> None:
    really_open = Path.open

    def open_(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        return FullDisk(path, mode) if mode == "ab" else really_open(path, mode, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", open_)
        with pytest.raises(UnweaveError) as caught:
            fetch("toy", [official(site)], folder)
    assert str(caught.value) == (
        f"the disk is full: {folder} has no room for a.npz, which has 0.6 MB. Make room and run the command "
        "again, which continues where it stopped, or name another folder by --data-root or UNWEAVE_DATA."
    )
    assert (folder / "a.npz.part").read_bytes() == CONTENT[:300_000]
    fetch("toy", [official(site)], folder)
    assert (folder / "a.npz").read_bytes() == CONTENT
    assert site.seen == [(None, 200), ("bytes=300000-", 206)]


def test_a_folder_that_cannot_be_made(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnweaveError, match=r"cannot put a.npz into .*/file/toy: Not a directory. Check the"):
        fetch("toy", [official(site)], tmp_path / "file" / "toy")
    with pytest.raises(UnweaveError, match=r"cannot put a.npz into .*/file: File exists. Check the folder"):
        fetch("toy", [official(site)], tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(site: Site, folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    with pytest.raises(UnweaveError, match=r"cannot put a.npz into .*: Permission denied"):
        fetch("toy", [official(site)], folder)
    folder.chmod(0o700)
