"""`unweave explore`: serve the page of a run or a study, or write a run's page into one file."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from unweave.errors import UnweaveError
from unweave.explore.server import ExploreServer
from unweave.explore.subject import Subject
from unweave.results import read_table

WAITING_VARIABLE = "OMP_WAIT_POLICY"  # OpenMP reads it when PyTorch is imported, which the first page needs


def serve(subject: Subject, host: str, port: int, open_page: bool) -> None:
    """Serve until interrupted; a file that is no table of results is refused before a page is served."""
    if subject.in_memory is None and subject.path.is_file():
        read_table(subject.path)
    # The browser uses the same cores. PyTorch's threads would else wait for each other in busy loops: on two
    # busy cores, encoding the images of a page then takes four times as long.
    os.environ.setdefault(WAITING_VARIABLE, "PASSIVE")
    with ExploreServer(subject, host, port) as server:
        print(f"{subject.path.name}: {server.url} (Ctrl-C ends it)", flush=True)
        if server.token is not None:
            print("Anyone who has this address can see these runs.", flush=True)
        if open_page:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # the usual way to stop the server, not an error
            sys.exit(130)


def write_page(subject: Subject, target: Path) -> None:
    """Write a run's page, with its decoder inside."""
    from unweave.explore.export import export_page  # here, because it needs torch

    run_id = subject.describe()["run"]
    if run_id is None:
        several = (
            "these are several runs" if subject.compared or subject.models else f"{subject.path} is a study"
        )
        raise UnweaveError(f"{several}; --export writes the page of one run. Give a run's folder.")
    export_page(subject.view(run_id), target)
