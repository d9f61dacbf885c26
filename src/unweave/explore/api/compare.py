"""What the comparison page asks of the server: 2 to 8 runs on the same data set, aligned."""

from __future__ import annotations

from unweave.explore.api.answer import Answer, json_answer
from unweave.explore.api.request import Request, Routes
from unweave.explore.compared import check_comparable, check_count
from unweave.explore.subject import Subject


def compare(subject: Subject, request: Request) -> Answer:
    """?runs=id,id,... -> aligned latents, settings that differ, scores."""
    run_ids = [run_id for run_id in request.query.get("runs", "").split(",") if run_id]
    if subject.models:
        check_count(len(run_ids))
    else:
        check_comparable([subject.run_path(run_id) for run_id in run_ids])
    from unweave.explore.comparison import comparison  # here, because it needs torch

    views = [subject.view(run_id) for run_id in run_ids]
    return json_answer(comparison(views, subject.opening))


ROUTES: Routes = {("GET", "/api/compare"): compare}
