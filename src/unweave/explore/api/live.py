"""What the page of runs in training asks: what changed since it asked last, and the traversals of a run."""

from __future__ import annotations

import re

from unweave.errors import UnweaveError
from unweave.explore.api.answer import Answer, json_answer
from unweave.explore.api.request import Request, Routes
from unweave.explore.live.pictures import newest_traversals
from unweave.explore.subject import Subject

SHOWN = re.compile(r"([0-9a-f]{1,64})~([0-9]{1,20}-[0-9]{1,20})?")


def changes(subject: Subject, request: Request) -> Answer | None:
    """?since=VERSION&shown=KEY~CURSOR,...: what `LiveFolder.changes` returns; both may be missing."""
    if not subject.has_logs:
        return None
    since = request.query.get("since", "0")
    if not since.isascii() or not since.isdigit() or len(since) > 20:
        raise UnweaveError(f"since must be the version of the last answer; got {since!r:.40}.")
    return json_answer(subject.live.changes(int(since), _shown(request.query.get("shown", ""))))


def traversals(subject: Subject, request: Request) -> Answer | None:
    """?run=KEY: the traversals of a run's newest weights as a PNG."""
    if not subject.has_logs:
        return None
    run = subject.live.run(request.query.get("run", ""))
    return Answer(newest_traversals(run, subject.data_root, subject.data), "image/png")


def _shown(text: str) -> dict[str, str]:
    """The cursors of the runs that are shown, by their keys."""
    matches = {part: SHOWN.fullmatch(part) for part in text.split(",") if part}
    for part, match in matches.items():
        if match is None:
            raise UnweaveError(f"shown must be keys and cursors of runs, as in KEY~CURSOR; got {part!r:.40}.")
    return {match[1]: match[2] or "" for match in matches.values() if match is not None}


ROUTES: Routes = {("GET", "/api/live"): changes, ("GET", "/api/live/traversals"): traversals}
