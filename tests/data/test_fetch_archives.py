"""Archives that are downloaded and unpacked: once, safely, and completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.download_site import Site, in_another_process, names
from unweave.data.fetch import fetch
from unweave.data.files import OfficialFile, locate
from unweave.errors import MissingFileError, UnweaveError

pytestmark = pytest.mark.usefixtures("empty_cache")

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


def test_members_keep_their_folders_where_these_tell_them_apart(site: Site, folder: Path) -> None:
    members = {"set/images_0/00.png": b"a", "set/images_1/00.png": b"bb", "./set/latents.npy": b"c"}
    file = replace(cars(site, archive(members), unpack="*"), tree=True)
    paths = fetch("toy", [file], folder)
    expected = ["set/images_0/00.png", "set/images_1/00.png", "set/latents.npy"]
    assert [path.relative_to(folder).as_posix() for path in paths] == expected
    assert [path.read_bytes() for path in paths] == [b"a", b"bb", b"c"]
    assert names(folder) == {"set", "cars.tar.gz.unpacked"}
    assert fetch("toy", [file], folder) == paths
    assert len(site.requests) == 1
    (folder / "set/images_1/00.png").unlink()
    assert fetch("toy", [file], folder) == paths
    assert len(site.requests) == 2


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
