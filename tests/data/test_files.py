"""Official files are found where they may be, and taken only if they are right."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from unweave.data import files
from unweave.data.files import OfficialFile, find, locate, verify
from unweave.errors import ChecksumError, MissingFileError, UnweaveError

# Of the six bytes "hello\n": the outputs of sha256sum, md5sum and git hash-object.
HELLO = b"hello\n"
SHA256 = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
MD5 = "md5:b1946ac92492d2347c6235b4d2611184"
GIT = "git:ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("UNWEAVE_CACHE", str(folder))
    return folder


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    path = tmp_path / "hello.txt"
    path.write_bytes(HELLO)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were really read, in order."""
    read: list[Path] = []
    digest = files._digest

    def counted(path: Path, kind: str, size: int) -> str:
        read.append(path)
        return digest(path, kind, size)

    monkeypatch.setattr(files, "_digest", counted)
    return read


def put(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_find_prefers_folders_to_the_root_and_names_in_order(tmp_path: Path) -> None:
    in_root = put(tmp_path / "a.npz")
    assert find(tmp_path, ["one", "two"], ["b.npz", "a.npz"]) == in_root
    in_two = put(tmp_path / "two" / "a.npz")
    assert find(tmp_path, ["one", "two"], ["b.npz", "a.npz"]) == in_two
    first_name = put(tmp_path / "two" / "b.npz")
    assert find(tmp_path, ["one", "two"], ["b.npz", "a.npz"]) == first_name
    in_one = put(tmp_path / "one" / "a.npz")
    assert find(tmp_path, ["one", "two"], ["b.npz", "a.npz"]) == in_one


def test_find_takes_exact_names_patterns_and_only_files(tmp_path: Path) -> None:
    put(tmp_path / "a.mat.gz")
    (tmp_path / "b.mat").mkdir()
    assert find(tmp_path, [], ["a.mat", "b.mat"]) is None
    put(tmp_path / "cars" / "car_2.mat")
    put(tmp_path / "cars" / "car_1.mat")
    assert find(tmp_path, ["cars"], ["*.mat"]) == tmp_path / "cars" / "car_1.mat"


def test_find_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert find(tmp_path / "nowhere", ["sub"], ["a.npz"]) is None


def test_find_says_when_it_cannot_look(tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"cannot look into .*: File name too long"):
        find(tmp_path / ("x" * 300), [], ["a.npz"])


def test_locate_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as caught:
        locate("shapes3d", tmp_path, ["shapes3d"], ["3dshapes.h5", "shapes.h5"])
    assert str(caught.value) == (
        f"shapes3d needs the file 3dshapes.h5 or shapes.h5, which is not in {tmp_path}/shapes3d, {tmp_path}. "
        "Run `unweave data fetch shapes3d`, or point --data-root or UNWEAVE_DATA to the folder that has it."
    )
    here = put(tmp_path / "3dshapes.h5")
    assert locate("shapes3d", tmp_path, ["shapes3d"], ["3dshapes.h5"]) == here


def test_locate_refuses_files_that_are_half_unpacked(tmp_path: Path) -> None:
    put(tmp_path / "cars" / "car_1.mat")
    (tmp_path / "cars" / "cars.tar.gz.unpacking").mkdir()
    with pytest.raises(MissingFileError, match=r"only in part unpacked. Run `unweave data fetch cars3d`"):
        locate("cars3d", tmp_path, ["cars"], ["*.mat"])


@pytest.mark.parametrize("checksum", [SHA256, MD5, GIT])
@pytest.mark.parametrize("size", [None, 6])
def test_verify_accepts_the_official_file(hello: Path, checksum: str, size: int | None) -> None:
    assert verify(hello, OfficialFile("hello.txt", checksum, size)) == f"hello.txt ({checksum})"


def test_verify_without_a_published_checksum_gives_sha256(hello: Path) -> None:
    assert verify(hello, OfficialFile("hello.txt")) == f"hello.txt ({SHA256})"


@pytest.mark.parametrize("right", [SHA256, MD5, GIT])
def test_verify_refuses_other_content(hello: Path, right: str) -> None:
    wrong = right[:-1] + "f"
    with pytest.raises(ChecksumError) as caught:
        verify(hello, OfficialFile("hello.txt", wrong, 6))
    assert str(caught.value) == (
        f"{hello} is not the published file: expected {wrong}, got {right}. "
        "Delete it and fetch it again with `unweave data fetch`."
    )


def test_verify_names_a_wrong_size_without_reading(hello: Path, hashed: list[Path]) -> None:
    with pytest.raises(ChecksumError, match=r"hello.txt is cut short: it has 6 of 7,000 bytes. Delete it"):
        verify(hello, OfficialFile("hello.txt", SHA256, 7000))
    with pytest.raises(ChecksumError, match=r"is too long: it has 6 bytes, and 5 were expected. Delete it"):
        verify(hello, OfficialFile("hello.txt", SHA256, 5))
    assert hashed == []


def test_verify_of_nothing_and_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"there is no file .*a.npz"):
        verify(tmp_path / "a.npz", OfficialFile("a.npz", MD5))
    with pytest.raises(UnweaveError, match=r"cannot read .*: Is a directory"):
        verify(tmp_path, OfficialFile("a.npz", MD5))


@pytest.mark.parametrize("checksum", ["5891b5", "sha1:" + "0" * 40, "md5:" + "0" * 31, MD5.upper()])
def test_a_checksum_must_be_well_formed(checksum: str) -> None:
    with pytest.raises(UnweaveError, match=r"checksum of a.npz must be"):
        OfficialFile("a.npz", checksum)


@pytest.mark.parametrize("name", ["", "../a.npz", "folder/a.npz", "/a.npz", ".."])
def test_a_name_has_no_folders(name: str) -> None:
    with pytest.raises(UnweaveError, match="name without folders"):
        OfficialFile(name)


def test_a_file_is_hashed_once(hello: Path, hashed: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    official = OfficialFile("hello.txt", SHA256)
    first = verify(hello, official)
    assert verify(hello, official) == verify(hello, OfficialFile("hello.txt")) == first
    monkeypatch.chdir(hello.parent)
    assert verify(Path("hello.txt"), official) == first
    assert hashed == [hello]
    verify(hello, OfficialFile("hello.txt", MD5))  # another kind of checksum is not known yet
    assert hashed == [hello, hello]


def test_a_changed_file_is_hashed_again(hello: Path, hashed: list[Path]) -> None:
    official = OfficialFile("hello.txt", SHA256, 6)
    verify(hello, official)
    hello.write_bytes(b"jello\n")
    os.utime(hello, ns=(0, time.time_ns() + 1_000_000_000))
    with pytest.raises(ChecksumError, match=hashlib.sha256(b"jello\n").hexdigest()):
        verify(hello, official)
    assert len(hashed) == 2


def test_the_record_keeps_other_files_and_drops_those_that_are_gone(tmp_path: Path, cache: Path) -> None:
    one, two, three = (put(tmp_path / name) for name in ("one", "two", "three"))
    for path in (one, two):
        verify(path, OfficialFile(path.name))
    one.unlink()
    verify(three, OfficialFile("three"))
    assert set(json.loads((cache / "verified.json").read_text())) == {str(two), str(three)}
    assert [path.name for path in cache.iterdir()] == ["verified.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1, 2]",
        b"[" * 100_000,
        b'{"PATH": 3}',
        b'{"PATH": [6]}',
        b'{"PATH": [6, MTIME, 5]}',
        b'{"PATH": [6, MTIME, "sha256:"]}',
        b'{"PATH": [6, MTIME, "md5:b1946ac92492d2347c6235b4d2611184"]}',
        b'{"PATH": [7, MTIME, "sha256:%s"]}' % (b"0" * 64),
        b'{"PATH": [6, 1, "sha256:%s"]}' % (b"0" * 64),
    ],
)
def test_a_corrupt_record_is_ignored(hello: Path, cache: Path, hashed: list[Path], content: bytes) -> None:
    content = content.replace(b"PATH", str(hello).encode())
    content = content.replace(b"MTIME", str(hello.stat().st_mtime_ns).encode())
    put(cache / "verified.json", content)
    for _ in range(2):
        assert verify(hello, OfficialFile("hello.txt", SHA256)) == f"hello.txt ({SHA256})"
    assert hashed == [hello]  # and it has been replaced by a good one


def test_the_record_is_believed(hello: Path, cache: Path, hashed: list[Path]) -> None:
    # The control of the test above: an entry that fits is used, even though it is a lie here.
    lie = "sha256:" + "0" * 64
    put(cache / "verified.json", json.dumps({str(hello): [6, hello.stat().st_mtime_ns, lie]}).encode())
    assert verify(hello, OfficialFile("hello.txt", lie)) == f"hello.txt ({lie})"
    assert hashed == []


def test_an_unwritable_record_is_ignored(hello: Path, cache: Path, hashed: list[Path]) -> None:
    cache.write_text("a file where the folder should be")
    for _ in range(2):
        assert verify(hello, OfficialFile("hello.txt", SHA256)) == f"hello.txt ({SHA256})"
    assert len(hashed) == 2
