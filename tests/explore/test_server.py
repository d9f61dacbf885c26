"""The server by plain requests: what it gives, and above all what it does not."""

import http.client
import json
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from explore.conftest import Serve
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.explore import connections
from unweave.explore.run_view import view_of
from unweave.explore.server import PAGES, ExploreServer
from unweave.explore.subject import MOST_OPEN_RUNS, Subject, subject_at
from unweave.methods import AE, BetaVAE
from unweave.runs.spec import RunSpec
from unweave.study.folder import StudyFolder
from unweave.study.spec import StudySpec


def ask(
    server: ExploreServer, path: str, body: Any = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Send a request as it is, without tidying up its path."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    sent = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if sent else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("GET" if sent is None else "POST", path, sent, given)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def error(answer: tuple[int, bytes, http.client.HTTPMessage]) -> tuple[int, str]:
    return answer[0], json.loads(answer[1])["error"]


def run_address(server: ExploreServer) -> str:
    return f"/api/run/{json.loads(ask(server, '/api/subject')[1])['run']}"


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_every_page_is_there_and_asks_for_nothing_from_elsewhere(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server:
        for path, (_, kind) in PAGES.items():
            status, body, headers = ask(server, path)
            assert (status, headers["Content-Type"]) == (200, kind)
            outside = body.replace(b"http://www.w3.org/", b"")  # names of formats, not addresses
            assert b"http://" not in outside
            assert b"https://" not in outside
            assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
            assert headers["Cache-Control"] == "no-store"


def test_no_path_leads_to_a_file(run_folder: Path, serve: Serve) -> None:
    tries = [
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/pages/index.html",
        "//etc/passwd",
        "//[",
        "/spec.json",
        "/api/run/../../spec.json",
        "/api/run/..%2f..%2fetc%2fpasswd",
        "/api/run/" + "a" * 500,
        "/api/study",
        "/api/decode",
        "/style.css/..",
    ]
    with serve(run_folder) as server:
        for path in tries:
            assert error(ask(server, path)) == (404, "there is nothing at this address."), path
        status, body, _ = ask(server, "/api/run/0123456789abcdef")
        assert status == 409
        assert b'there is no run \\"0123456789abcdef\\" in' in body


def test_other_hosts_and_other_sites_are_refused(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1"):
            assert error(ask(server, "/api/subject", Host=host))[0] == 403
        port = server.server_address[1]
        assert ask(server, "/", Host=f"localhost:{port}")[0] == 200
        assert ask(server, "/", Host=f"[::1]:{port}")[0] == 200
        status, sentence = error(ask(server, "/api/subject", Origin="http://evil.example"))
        assert (status, sentence) == (403, "this request comes from another site.")
        assert ask(server, "/api/subject", Origin=f"http://127.0.0.1:{port}")[0] == 200


def test_a_visitor_from_the_network_needs_the_token(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder, "0.0.0.0") as server:  # noqa: S104  that is what is tested
        assert server.token is not None
        assert server.url.endswith(f"/?token={server.token}")
        for path in (
            "/",
            "/api/subject",
            "/?token=",
            "/?token=wrong",
            "/style.css",
            "/api/subject?token=%ff",
        ):
            assert error(ask(server, path)) == (401, "open the address with the token that was printed."), (
                path
            )
        assert ask(server, "/", Cookie=f"{server.cookie}=wrong")[0] == 401
        status, _, headers = ask(server, f"/?token={server.token}")
        assert (status, headers["Location"]) == (303, "/")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert ask(server, "/api/subject", Cookie=cookie.split(";")[0])[0] == 200
        assert ask(server, "/", Cookie=cookie.split(";")[0])[0] == 200
    with serve(run_folder) as server:
        assert server.token is None
        assert ask(server, "/?token=any")[0] == 200


def test_cookies_of_other_programs_do_not_hide_the_token(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder, "0.0.0.0") as server:  # noqa: S104  that is what is tested
        own = f"{server.cookie}={server.token}"
        for odd in ('session={"a b": [1, 2]}', "=nameless", "two words=3", 'unclosed="x', "é=ü", ";"):
            for cookies in (f"{odd}; {own}", f"{own}; {odd}"):
                assert ask(server, "/api/subject", Cookie=cookies)[0] == 200, cookies
        assert ask(server, "/api/subject", Cookie=f"x{own}")[0] == 401


def test_slow_connections_leave_room_for_others(
    run_folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 16)
    before = threading.active_count()
    slow: list[socket.socket] = []
    with serve(run_folder) as server:
        for _ in range(100):
            slow.append(socket.create_connection(("127.0.0.1", server.server_address[1])))
            slow[-1].sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert ask(server, "/")[0] == 200, "a new visitor is answered"
        wait_until(lambda: threading.active_count() <= before + 1 + 16)
        monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.05)
        wait_until(lambda: len(server.connections) == 0)
        monkeypatch.setattr(connections, "REQUEST_SECONDS", 30.0)
        assert ask(server, "/")[0] == 200
    for visitor in slow:
        visitor.close()
    assert capfd.readouterr().err == ""


def test_a_connection_that_is_reset_prints_nothing(
    run_folder: Path, serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    with serve(run_folder) as server:
        for sent in (b"POST /api/subject HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{", b"GET / HT"):
            visitor = socket.create_connection(("127.0.0.1", server.server_address[1]))
            visitor.sendall(sent)
            wait_until(lambda: len(server.connections) == 1)
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            visitor.close()  # with this option, by a reset
            wait_until(lambda: len(server.connections) == 0)
        assert ask(server, "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_run_is_described(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server:
        described = json.loads(ask(server, run_address(server))[1])
    assert (described["method"], described["data"], described["seed"]) == ("beta_vae", "dsprites", 0)
    assert described["settings"] == {"beta": 1.0}
    assert described["shape"] == [1, 64, 64]
    kl = described["kl"]
    assert [kl[i] for i in described["order"]] == sorted(kl, reverse=True)
    assert described["dead"] == [value < 0.01 for value in kl]
    assert described["spans"] == [[-2, 2]] * 4
    assert all(low == -high and high >= 3 for low, high in described["ranges"])
    assert [factor["size"] for factor in described["factors"]] == [3, 6, 40, 32, 32]
    assert np.array(described["information"]).shape == (4, 5)


def test_codes_without_a_prior_have_no_divergence_from_it(tmp_path: Path) -> None:
    run = unweave.train(AE(), TINY, out=tmp_path, device="cpu", steps=2, batch=4, latents=4)
    described = view_of(run).description
    assert described["kl"] is None
    codes = run.encode(TINY.observe(TINY.sample_factors(500, 0)))
    assert described["order"][0] == int(codes.std(axis=0).argmax())
    for (low, high), column in zip(described["spans"], codes.T, strict=True):
        assert column.min() - 1e-4 <= low < high <= column.max() + 1e-4
    for (least, most), (low, high) in zip(described["ranges"], described["spans"], strict=True):
        assert least < low < high < most
    assert described["dead"] == [False] * 4


def test_codes_and_factors_become_what_the_run_makes_of_them(run_folder: Path, serve: Serve) -> None:
    run = unweave.load(run_folder)
    codes = np.array([[0.5, -1, 2, 0], [0, 0, 0, 0]], np.float32)
    truth = run.data
    assert isinstance(truth, unweave.data.GroundTruth)
    factors = [[2, 3, 4, 5, 6], [0, 0, 0, 31, 31]]
    with serve(run_folder) as server:
        at = run_address(server)
        status, body, headers = ask(server, f"{at}/decode", {"codes": codes.tolist()})
        assert (status, headers["X-Shape"]) == (200, "2,1,64,64")
        decoded = np.frombuffer(body, np.uint8).reshape(2, 1, 64, 64)
        assert decoded == pytest.approx(run.decode(codes) * 255, abs=0.501)
        observed = ask(server, f"{at}/observe", {"factors": factors})[1]
        assert observed == truth.observe(factors).tobytes()
        encoded = json.loads(ask(server, f"{at}/encode", {"factors": factors[0]})[1])
        posterior = run.posterior(truth.observe(factors[:1]))
        assert encoded["mean"] == pytest.approx(posterior.mean[0].tolist(), abs=1e-4)
        assert encoded["log_var"] == pytest.approx(posterior.log_var[0].tolist(), abs=1e-4)
        moved = json.loads(ask(server, f"{at}/intervene", {"factors": factors[0], "factor": 0})[1])
    along = np.array([[value, 3, 4, 5, 6] for value in range(3)])
    assert moved["values"] == [0, 1, 2]
    assert np.array(moved["mean"]) == pytest.approx(run.encode(truth.observe(along)), abs=1e-4)


@pytest.mark.parametrize(
    ("action", "body", "sentence"),
    [
        ("decode", {}, "codes must be rows of 4 numbers."),
        ("decode", {"codes": [[1, 2, 3]]}, "codes must be rows of 4 numbers."),
        ("decode", {"codes": [[1, 2, 3, "4"]]}, "codes must be numbers between -1e+06 and 1e+06."),
        ("decode", {"codes": [[1, 2, 3, float("nan")]]}, "codes must be numbers between -1e+06 and 1e+06."),
        ("decode", {"codes": [[1, 2, 3, 10**400]]}, "codes must be numbers between -1e+06 and 1e+06."),
        ("decode", {"codes": [[0, 0, 0, 0]] * 513}, "at most 512 rows of codes can be asked for at once"),
        ("encode", {"factors": [3, 0, 0, 0, 0]}, 'factor "shape" of dsprites must lie in 0 .. 2'),
        ("encode", {"factors": [0.5, 0, 0, 0, 0]}, "factors must be whole numbers"),
        ("observe", {"factors": {}}, "factors must be rows of 5 numbers."),
        (
            "intervene",
            {"factors": [0, 0, 0, 0, 0], "factor": 5},
            "factor must be a number from 0 to 4; got 5.",
        ),
        ("intervene", {"factors": [0, 0, 0, 0, 0]}, "factor must be a number from 0 to 4; got None."),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    action: str, body: Any, sentence: str, run_folder: Path, serve: Serve
) -> None:
    with serve(run_folder) as server:
        status, said = error(ask(server, f"{run_address(server)}/{action}", body))
    assert status == 409
    assert said.startswith(sentence)


def test_requests_that_are_no_requests(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server:
        at = f"{run_address(server)}/decode"
        assert ask(server, at, {"codes": []}, Content_Type="text/plain")[0] == 415
        assert ask(server, at, [1])[0] == 400
        assert ask(server, at, Content_Length="1048577")[0] == 413
        assert ask(server, at, Content_Length="-1")[0] == 413
        assert ask(server, f"{run_address(server)}/nothing", {"a": 1})[0] == 404
        with socket.create_connection(("127.0.0.1", server.server_address[1])) as visitor:
            visitor.sendall(b"POST /api/subject HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert visitor.recv(1000).startswith(b"HTTP/1.1 415")
        with socket.create_connection(("127.0.0.1", server.server_address[1])):
            pass  # a visitor who says nothing and goes
        assert ask(server, "/")[0] == 200


def test_a_failure_of_the_server_is_told_to_the_page(
    run_folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_self: Subject) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(Subject, "describe", fail)
    with serve(run_folder) as server:
        assert error(ask(server, "/api/subject")) == (500, "the server failed: KeyError('odd').")
    assert "KeyError: 'odd'" in capfd.readouterr().err


def test_runs_that_cannot_be_shown(run_folder: Path, serve: Serve, tmp_path: Path) -> None:
    training = Path(shutil.copytree(run_folder, tmp_path / "training"))
    (training / "result.json").unlink()
    with serve(training) as server:
        status, said = error(ask(server, run_address(server)))
        assert (status, said) == (
            409,
            "the run training has not finished: it still trains, or was stopped. Look again when it has.",
        )
        shutil.copy(run_folder / "result.json", training)
        assert ask(server, run_address(server))[0] == 200, "a run that has finished meanwhile is shown"
    broken = Path(shutil.copytree(run_folder, tmp_path / "broken"))
    (broken / "weights.safetensors").write_bytes(b"not weights")
    with serve(broken) as server:
        assert "cannot read the weights" in error(ask(server, run_address(server)))[1]
    result = json.loads((broken / "result.json").read_text())
    (broken / "result.json").write_text(json.dumps(result | {"outcome": "diverged"}))
    with serve(broken) as server:
        assert "is diverged, so there is nothing to see" in error(ask(server, run_address(server)))[1]
    (broken / "spec.json").write_text("{")
    with serve(broken) as server:
        assert "cannot read" in error(ask(server, "/api/subject"))[1]


def test_links_out_of_the_folder_are_not_followed(run_folder: Path, serve: Serve, tmp_path: Path) -> None:
    linked = Path(shutil.copytree(run_folder, tmp_path / "linked"))
    (linked / "weights.safetensors").unlink()
    (linked / "weights.safetensors").symlink_to(run_folder / "weights.safetensors")
    with serve(linked) as server:
        said = error(ask(server, run_address(server)))[1]
    assert said == f"linked/weights.safetensors leads out of {linked}, and is not opened."


def test_only_the_last_few_runs_are_held(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("unweave.explore.run_view.open_run", lambda path, *_: opened.append(path.name))
    ids = [str(i) for i in range(MOST_OPEN_RUNS + 1)]
    folders = {one: run_folder / one for one in ids}
    monkeypatch.setattr("unweave.explore.subject._folders_in", lambda *_: folders)
    subject = Subject(run_folder, "study")
    for one in [*ids[:MOST_OPEN_RUNS], ids[0], ids[MOST_OPEN_RUNS], ids[0], ids[1]]:
        subject.view(one)
    assert opened == [*ids, ids[1]], "the one that was not seen longest made room"


def test_runs_that_a_study_gets_later_are_found(tmp_path: Path) -> None:
    first, second = (RunSpec(BetaVAE(beta)) for beta in (1.0, 2.0))
    StudyFolder.create(tmp_path, StudySpec("grows", (first,), "mig"))
    subject = subject_at(tmp_path)
    assert subject.run_path(first.id).parent == tmp_path / "runs"
    with pytest.raises(UnweaveError, match="there is no run"):
        subject.run_path(second.id)
    StudyFolder.create(tmp_path, StudySpec("grows", (second,), "mig"))
    assert subject.run_path(second.id).name.endswith(second.id)
    with pytest.raises(UnweaveError, match="has not finished"):
        subject.view(second.id)


def test_what_can_be_explored(tmp_path: Path, run_folder: Path) -> None:
    with pytest.raises(
        UnweaveError, match=r"neither the folder of a run \(it has no spec.json\) nor of a study"
    ):
        subject_at(tmp_path)
    assert subject_at(run_folder).kind == "run"
    (tmp_path / "study.json").write_text("{}")
    assert subject_at(tmp_path).kind == "study"
    (tmp_path / "results.parquet").touch()
    table = subject_at(tmp_path / "results.parquet")
    with pytest.raises(UnweaveError, match=r'there is no run "1" in results.parquet'):
        table.view("1")


def test_a_port_that_is_taken(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server, pytest.raises(UnweaveError, match=r"cannot serve on 127.0.0.1, port"):
        ExploreServer(subject_at(run_folder), port=server.server_address[1])
    with pytest.raises(UnweaveError, match=r"from 0 to 65535; got 99999\."):
        ExploreServer(subject_at(run_folder), port=99999)


def test_many_visitors_at_once(run_folder: Path, serve: Serve) -> None:
    codes = [[[0.1 * i, 1, -1, 0]] for i in range(8)]
    with serve(run_folder) as server, ThreadPoolExecutor(8) as visitors:
        at = f"{run_address(server)}/decode"
        together = list(visitors.map(lambda code: ask(server, at, {"codes": code})[:2], codes))
        alone = [ask(server, at, {"codes": code})[:2] for code in codes]
    assert together == alone
    assert {status for status, _ in together} == {200}
