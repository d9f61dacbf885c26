"""Runs and tables that are dropped onto the page: what opens, and above all what does not."""

import http.client
import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from explore.browser import Browser
from explore.conftest import Serve
from explore.test_server import ask, error
from report.test_published import made_up
from unweave.errors import UnweaveError
from unweave.explore.dropped import MOST_RECORD, open_dropped, read_dropped
from unweave.explore.server import MOST_DROPPED_BYTES, ExploreServer
from unweave.results import COLUMNS

RUN_FILES = ("spec.json", "result.json", "weights.safetensors")
TABLE = pd.DataFrame(
    [["own", "a", "dsprites", "beta_vae", "beta=1", 1.0, 0, "mean", "mig", "mig[bins20,mean]", 0.25]],
    columns=list(COLUMNS),
)


def body_of(files: dict[str, bytes], name: str = "dropped") -> bytes:
    """What a page sends."""
    header = {"name": name, "files": [[file, len(content)] for file, content in files.items()]}
    return json.dumps(header).encode() + b"\n" + b"".join(files.values())


def drop(server: ExploreServer, body: bytes, **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Send a body as the server's own page does."""
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = {"Content-Type": "application/octet-stream", "Origin": f"http://127.0.0.1:{port}"} | headers
    try:
        connection.request("POST", "/api/drop", body, sent)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def described(server: ExploreServer) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(ask(server, "/api/subject")[1])
    return record


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of results that is explored first."""
    TABLE.to_csv(tmp_path / "first.csv", index=False)
    return tmp_path / "first.csv"


def run_files(run_folder: Path) -> dict[str, bytes]:
    return {name: (run_folder / name).read_bytes() for name in RUN_FILES}


def test_a_dropped_run_opens_and_one_goes_back(run_folder: Path, table: Path, serve: Serve) -> None:
    with serve(table) as server:
        assert drop(server, body_of(run_files(run_folder), run_folder.name))[0] == 200
        subject = described(server)
        assert (subject["kind"], subject["name"], subject["before"]) == ("run", run_folder.name, "first.csv")
        run = json.loads(ask(server, f"/api/run/{subject['run']}")[1])
        assert (run["method"], run["data"]) == ("beta_vae", "dsprites")
        kept = server.subject.path
        assert ask(server, "/api/back", {}, Origin=f"http://127.0.0.1:{server.server_address[1]}")[0] == 200
        assert (described(server)["name"], described(server)["before"]) == ("first.csv", None)
        assert not kept.exists()


def test_dropped_tables_open_as_a_study(table: Path, serve: Serve, tmp_path: Path) -> None:
    made_up().to_csv(tmp_path / "published.csv")
    published = (tmp_path / "published.csv").read_bytes()
    with serve(table) as server:
        assert (
            drop(server, body_of({"results_cars3d.csv": published, "own.csv": table.read_bytes()}))[0] == 200
        )
        records = json.loads(ask(server, "/api/study")[1])
    assert records["runs"] == 3
    assert records["words"]["source"]["names"] == ["own", "published"]


def test_only_the_own_page_on_this_machine_may_send_files(table: Path, serve: Serve) -> None:
    body = body_of({"a.csv": table.read_bytes()})
    with serve(table) as server:
        own = server.subject
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
            assert error(drop(server, body, **headers))[0] == 403
        assert error(ask(server, "/api/drop", {"name": "a", "files": []}))[0] == 403  # no Origin at all
        assert error(ask(server, "/api/back", {}))[0] == 403
        too_long = drop(server, b"", **{"Content-Length": str(MOST_DROPPED_BYTES + 1)})
        assert error(too_long) == (413, f"send at most {MOST_DROPPED_BYTES} bytes.")
        # A page of another site cannot make the server read a large body.
        foreign = drop(server, b"", Origin="http://evil.example", **{"Content-Length": str(2 << 20)})
        assert error(foreign)[0] == 413
        assert server.subject is own
    with serve(table, "0.0.0.0") as server:  # noqa: S104  refused to visitors of the network
        answer = drop(server, body, Cookie=f"{server.cookie}={server.token}")
        assert error(answer) == (403, "files are opened only on the machine that serves the page.")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "does not begin with a list of files"),
        (b"\x80\x81\n", "does not begin with a list of files"),
        (b"[1]\n", "does not begin with a list of files"),
        (b'{"name": "a", "files": {"a.csv": 3}}\nabc', "does not begin with a list of files"),
        (b"[" * 100_000 + b"\n", "does not begin with a list of files"),
        (b'{"name": "a", "files": [["a.csv", 9]]}\nabc', "have not arrived whole"),
        (b'{"name": "a", "files": [["a.csv", -1], ["b.csv", 4]]}\nabc', "have not arrived whole"),
        (body_of({f"{i}.csv": b"" for i in range(65)}), "have not arrived whole"),
        (body_of({}), "dropped cannot be opened. Drop the folder of a finished run"),
        (body_of({"page.html": b"<p>"}), "dropped cannot be opened"),
        (body_of({"spec.json": b"{}"}), "dropped cannot be opened"),
        (body_of(dict.fromkeys(RUN_FILES, b"{")), "spec.json is not JSON"),
        (body_of(dict.fromkeys(RUN_FILES, b"[1]")), "spec.json is not that of a run"),
        (
            body_of(dict.fromkeys(RUN_FILES, b'"' + b"a" * MOST_RECORD + b'"')),
            "at most 4,194,304 are read",
        ),
        (body_of({"a.csv": b"x,y\n1,2\n"}), "a.csv cannot be shown: a table of results has the columns"),
        (body_of({"a.csv": b"\x00\xff\xfe"}), "a.csv cannot be shown: "),
        (body_of({"../../a.csv": b""}), "a.csv cannot be shown: a.csv cannot be read as a .csv file"),
    ],
)
def test_malformed_files_are_refused_in_a_sentence(body: bytes, sentence: str, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    with pytest.raises(UnweaveError) as refused:
        open_dropped(read_dropped(body), folder, "cpu", None)
    assert sentence in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(folder)]
    assert outside == []


def test_a_malformed_run_leaves_the_page_as_it_was(run_folder: Path, table: Path, serve: Serve) -> None:
    files = run_files(run_folder)
    with serve(table) as server:
        own = server.subject
        before = set(Path(tempfile.gettempdir()).glob("unweave-*"))
        for changed in ({"spec.json": b"{}"}, {"spec.json": b'{"spec": 3, "image_shape": 1}'}):
            assert error(drop(server, body_of(files | changed)))[0] == 409
        assert server.subject is own
        assert drop(server, body_of(files | {"weights.safetensors": b"no tensors"}))[0] == 200
        status, _ = error(ask(server, f"/api/run/{described(server)['run']}"))
        assert status == 409
    assert set(Path(tempfile.gettempdir()).glob("unweave-*")) <= before


def test_a_run_with_a_plugin_executes_nothing(run_folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    code = tmp_path / "own.py"
    code.write_text(f"open({str(mark)!r}, 'w')\n")
    files = run_files(run_folder)
    for key in ("method", "likelihood", "data", "architecture"):
        spec = json.loads(files["spec.json"])
        spec["spec"][key] = f"{code}:Name"
        spec["spec"]["plugins"] = [{"kind": "method", "from": f"{code}:Name", "file": str(code), "hash": "0"}]
        with pytest.raises(UnweaveError, match="this run uses a plug-in, whose code would be executed"):
            open_dropped(
                read_dropped(body_of(files | {"spec.json": json.dumps(spec).encode()})), tmp_path, "cpu", None
            )
    assert not mark.exists()


def test_the_place_of_own_data_is_forgotten(run_folder: Path, tmp_path: Path) -> None:
    files = run_files(run_folder)
    spec = json.loads(files["spec.json"]) | {"data_reference": {"kind": "folder", "path": "/etc"}}
    dropped = read_dropped(body_of(files | {"spec.json": json.dumps(spec).encode()}, "../a b"))
    subject = open_dropped(dropped, tmp_path, "cpu", None)
    assert subject.path == tmp_path / "ab"
    assert "data_reference" not in json.loads((subject.path / "spec.json").read_text())


DROP = """(() => {
  const data = new DataTransfer();
  for (const [name, text] of %s) data.items.add(new File([text], name));
  window.dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}));
})()"""


def test_a_table_dropped_onto_the_page_is_shown(table: Path, serve: Serve, browser: Browser) -> None:
    text = TABLE.assign(run="b", method="factor_vae", setting="gamma=10").to_csv(index=False)
    with serve(table) as server:
        browser.open(server.url)
        browser.wait_for("document.getElementById('where').textContent === 'first.csv'")
        browser.evaluate(DROP % json.dumps([["second.csv", text]]))
        browser.wait_for("document.getElementById('where').textContent === 'second.csv'")
        browser.evaluate("document.querySelector('#dropped button').click()")
        browser.wait_for("document.getElementById('where').textContent === 'first.csv'")
        assert browser.errors == []
        browser.evaluate(DROP % json.dumps([["third.csv", "x,y"]]))
        browser.wait_for(
            "document.querySelector('[role=alert]')?.textContent.includes('third.csv cannot be shown')"
        )


def test_a_run_folder_dropped_onto_the_page_is_shown(
    run_folder: Path, table: Path, serve: Serve, browser: Browser
) -> None:
    with serve(table) as server:
        browser.open(server.url)
        browser.wait_for("document.querySelector('main canvas')")  # a request for the study is answered
        data = {"items": [], "files": [str(run_folder)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver"):
            browser.send("Input.dispatchDragEvent", type=kind, x=200, y=200, data=data)
        browser.wait_for("document.body.classList.contains('dropping')")
        browser.send("Input.dispatchDragEvent", type="drop", x=200, y=200, data=data)
        browser.wait_for("document.querySelector('.traversal canvas')?.dataset.drawn")
        assert not browser.evaluate("document.body.classList.contains('dropping')")
        assert browser.evaluate("document.getElementById('where').textContent") == run_folder.name
    assert browser.errors == []
