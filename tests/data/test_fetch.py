"""Downloads against a server of our own that misbehaves on request."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from unweave.data import fetch as fetch_module
from unweave.data.fetch import fetch
from unweave.data.files import OfficialFile, locate, verify
from unweave.errors import MissingFileError, UnweaveError

CONTENT = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(20_000))  # 640,000 bytes
SIZE = len(CONTENT)
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Site:
    """What the server does: contents by path, and how it answers."""

    contents: dict[str, bytes] = field(default_factory=lambda: {"/a.npz": CONTENT})
    etag: str = '"one"'
    ranges: bool = True
    length: bool = True
    cut_after: int | None = None
    status: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    content_range: str = ""
    address: str = ""
    # (path, Range, If-Range, status of the answer)
    requests: list[tuple[str, str | None, str | None, int]] = field(default_factory=list)

    @property
    def seen(self) -> list[tuple[str | None, int]]:
        return [(asked, status) for _, asked, _, status in self.requests]

    def answer(self, path: str, asked: str | None, if_range: str | None) -> tuple[int, dict[str, str], bytes]:
        if path in self.moved:
            return 302, {"Location": self.moved[path]}, b""
        if path in self.status or path not in self.contents:
            return self.status.get(path, 404), {}, b"no"
        content, headers = self.contents[path], {"ETag": self.etag} if self.etag else {}
        if asked is None or not self.ranges or if_range not in (None, self.etag):
            return 200, headers, content
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return 416, headers | {"Content-Range": f"bytes */{len(content)}"}, b""
        sent = self.content_range or f"bytes {start}-{len(content) - 1}/{len(content)}"
        return 206, headers | {"Content-Range": sent}, content[start:]


@pytest.fixture
def site() -> Iterator[Site]:
    state = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked, if_range = self.headers["Range"], self.headers["If-Range"]
            status, headers, body = state.answer(self.path, asked, if_range)
            state.requests.append((self.path, asked, if_range, status))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if state.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.cut_after is None else body[: state.cut_after])

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "toy"


def official(site: Site, checksum: str = SHA256, size: int | None = SIZE) -> OfficialFile:
    return OfficialFile("a.npz", checksum, size, (f"{site.address}/a.npz",))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


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


def test_progress_is_told(site: Site, folder: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    file = official(site)
    fetch("toy", [file], folder, lambda *now: told.append(now))
    assert told[0] == ("a.npz", 0, SIZE)
    assert told[-1] == ("a.npz", SIZE, SIZE)
    done = [now[1] for now in told]
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


def test_a_server_that_ignores_ranges_starts_anew(site: Site, folder: Path) -> None:
    site.ranges = False
    cut(site, official(site), folder, 1000)
    fetch("toy", [official(site)], folder)
    assert site.seen == [("bytes=1000-", 200)]
    assert (folder / "a.npz").read_bytes() == CONTENT


def test_a_file_that_changed_on_the_server_starts_anew(site: Site, folder: Path) -> None:
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
def test_a_part_that_is_too_long_starts_anew(site: Site, folder: Path, size: int | None) -> None:
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
    # The version is told only to the address that gave it.
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


def in_another_process(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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


CARS = {f"data/cars/car_{i}.mat": b"%d" % i * (1000 + i) for i in (2, 0, 1)}


def archive(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return out.getvalue()


def cars(site: Site, content: bytes, unpack: str = "cars/*.mat") -> OfficialFile:
    site.contents["/cars.tar.gz"] = content
    checksum = f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"
    return OfficialFile("cars.tar.gz", checksum, None, (f"{site.address}/cars.tar.gz",), unpack)


def test_an_archive_is_unpacked_once(site: Site, folder: Path) -> None:
    others = {"data/list.txt": b"x", "data/sprites/s.mat": b"x", "data/cars/._car_0.mat": b"x"}
    file = cars(site, archive(others | CARS, {"data/cars/link.mat": "/etc/passwd"}))
    expected = [folder / f"car_{i}.mat" for i in range(3)]
    assert fetch("cars3d", [file], folder) == expected
    assert [path.read_bytes() for path in expected] == [b"0" * 1000, b"1" * 1001, b"2" * 1002]
    assert names(folder) == {"car_0.mat", "car_1.mat", "car_2.mat", "cars.tar.gz.unpacked"}
    assert locate("cars3d", folder.parent, ["toy"], ["*.mat"]) == expected[0]
    assert fetch("cars3d", [file], folder) == expected
    assert len(site.requests) == 1


@pytest.mark.parametrize("damage", ["missing", "cut", "marker", "other"])
def test_what_is_no_longer_whole_is_fetched_again(site: Site, folder: Path, damage: str) -> None:
    file = cars(site, archive(CARS))
    fetch("cars3d", [file], folder)
    marker = folder / "cars.tar.gz.unpacked"
    if damage == "missing":
        (folder / "car_1.mat").unlink()
    elif damage == "cut":
        (folder / "car_1.mat").write_bytes(b"1")
    elif damage == "marker":
        marker.write_text("{")
    else:
        marker.write_text(json.dumps(json.loads(marker.read_text()) | {"checksum": "md5:other"}))
    fetch("cars3d", [file], folder)
    assert (folder / "car_1.mat").read_bytes() == b"1" * 1001
    assert len(site.requests) == 2


@pytest.mark.parametrize("name", ["../x.mat", "../../x.mat", "data/../../x.mat", "/x.mat"])
def test_an_archive_that_points_outside_is_refused(
    site: Site, folder: Path, tmp_path: Path, name: str
) -> None:
    file = cars(site, archive({"data/good.mat": b"good", name: b"bad"}), unpack="*.mat")
    with pytest.raises(UnweaveError, match=r"cars.tar.gz has a member that points outside of it"):
        fetch("cars3d", [file], folder)
    assert list(tmp_path.rglob("*.mat")) == []
    assert names(folder) == {"cars.tar.gz"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"this is no archive", r"cars.tar.gz cannot be unpacked: "),
        (archive(CARS)[:-40], r"cars.tar.gz cannot be unpacked: "),
        (archive({"data/list.txt": b""}), r'cars.tar.gz has no member "cars/\*.mat"'),
        (archive({"a/cars/x.mat": b"1", "b/cars/x.mat": b"2"}), r'has two members "x.mat"'),
    ],
    ids=["no archive", "cut short", "nothing wanted", "one name twice"],  # the bytes hold the time of day
)
def test_an_archive_that_cannot_be_unpacked(site: Site, folder: Path, content: bytes, message: str) -> None:
    with pytest.raises(UnweaveError, match=message):
        fetch("cars3d", [cars(site, content)], folder)
    assert names(folder) == {"cars.tar.gz"}


def test_threads_that_fetch_an_archive_together_unpack_once(site: Site, folder: Path) -> None:
    file = cars(site, archive(CARS))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fetch("cars3d", [file], folder), range(4)))
    assert results == [[folder / f"car_{i}.mat" for i in range(3)]] * 4
    assert len(site.requests) == 1


KILLED = """if True:
    import os, sys, tarfile
    from pathlib import Path
    from unweave.data.fetch import fetch
    from unweave.data.files import OfficialFile
    step, checksum, url, folder = sys.argv[1:]
    real_extract, real_replace = tarfile.TarFile.extractfile, Path.replace
    def extract(tar, member):
        if step == "extract" and member.name.endswith("car_1.mat"):
            os._exit(9)
        return real_extract(tar, member)
    def replace(path, target):
        if path.name == step:
            os._exit(9)
        return real_replace(path, target)
    tarfile.TarFile.extractfile, Path.replace = extract, replace
    fetch("cars3d", [OfficialFile("cars.tar.gz", checksum, None, (url,), "cars/*.mat")], Path(folder))
"""


@pytest.mark.parametrize(
    ("step", "in_place"),
    [("extract", set()), ("car_1.mat", {"car_0.mat"}), ("members", {"car_0.mat", "car_1.mat", "car_2.mat"})],
)
def test_a_killed_extraction_does_not_look_whole(
    site: Site, folder: Path, step: str, in_place: set[str]
) -> None:
    file = cars(site, archive(CARS))
    process = in_another_process(KILLED, step, file.checksum, file.urls[0], str(folder))
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 9, output
    assert names(folder) == {"cars.tar.gz", "cars.tar.gz.unpacking"} | in_place
    with pytest.raises(MissingFileError, match="Run `unweave data fetch cars3d`"):
        locate("cars3d", folder.parent, ["toy"], ["*.mat"])

    paths = fetch("cars3d", [file], folder)
    assert [path.read_bytes() for path in paths] == [b"0" * 1000, b"1" * 1001, b"2" * 1002]
    assert names(folder) == {"car_0.mat", "car_1.mat", "car_2.mat", "cars.tar.gz.unpacked"}
    assert len(site.requests) == 1  # the archive itself was whole


def test_a_full_disk_keeps_the_archive(site: Site, folder: Path) -> None:
    def extract(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = cars(site, archive(CARS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tarfile.TarFile, "extractfile", extract)
        with pytest.raises(
            UnweaveError, match=r"the disk is full: .* has no room for cars.tar.gz. Make room"
        ):
            fetch("cars3d", [file], folder)
    assert names(folder) == {"cars.tar.gz"}
    assert len(fetch("cars3d", [file], folder)) == 3
    assert len(site.requests) == 1


def test_an_archive_put_in_place_by_hand_is_unpacked(site: Site, folder: Path) -> None:
    file = cars(site, archive(CARS))
    folder.mkdir(parents=True)
    (folder / "cars.tar.gz").write_bytes(archive(CARS))
    assert len(fetch("cars3d", [file], folder)) == 3
    assert site.requests == []
