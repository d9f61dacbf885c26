"""What the server says while a run is opened."""

import json
from pathlib import Path

from explore.conftest import Serve
from explore.test_server import ask, run_address
from unweave.explore.run_view import open_run


def test_each_stage_of_opening_a_run_is_reported(run_folder: Path) -> None:
    reports: list[tuple[int, int, str]] = []

    def tell(done: int, total: int, what: str = "", /) -> None:
        reports.append((done, total, what))

    view = open_run(run_folder, tell=tell)
    assert [what for _, _, what in reports] == [
        "Reading weights",
        "Reading dsprites",
        "Reading images of dsprites",
    ]
    assert view.description["points"] == 200
    assert reports[3:] == [(0, 200, "Encoding images"), (200, 200, "Encoding images")]


def test_the_server_gives_the_last_report(run_folder: Path, serve: Serve) -> None:
    with serve(run_folder) as server:
        assert json.loads(ask(server, "/api/opening")[1]) is None
        ask(server, run_address(server))
        state = json.loads(ask(server, "/api/opening")[1])
    assert state == {"what": "Encoding images", "done": 200, "total": 200}
