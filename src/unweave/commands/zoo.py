"""`unweave zoo`: the trained models that can be opened by name."""

from __future__ import annotations

import json
from typing import Any

from unweave.commands.command_app import command_app
from unweave.commands.console import console, say_next
from unweave.commands.listing import Listing
from unweave.layout import SCORES_FILE, SPEC_FILE
from unweave.zoo import PREFIX, zoo_file, zoo_files, zoo_folder

SHOWN = {"mig": "MIG", "dci.disentanglement": "DCI", "factor_vae_score.eval_accuracy": "FactorVAE score"}
SETTINGS = "method and settings"

zoo_app = command_app("zoo", "Trained models, which are opened by name: zoo:NAME instead of a folder.")


@zoo_app.command(name="list")
def list_models() -> None:
    """List the trained models: data, method and settings, and scores of the mean codes."""
    from unweave.results import setting_text

    zoo = zoo_folder()
    names = [f"{PREFIX}{name}" for name in zoo_files(zoo)]
    table = Listing("name", "data", "steps", *SHOWN.values(), SETTINGS, below=SETTINGS)
    for name in names:
        model = name.removeprefix(PREFIX)
        spec = json.loads(zoo_file(zoo, model, SPEC_FILE))["spec"]
        scores = _mean_scores(json.loads(zoo_file(zoo, model, SCORES_FILE)))
        settings = {key: value for key, value in spec["method"].items() if key != "name"}
        shown = [f"{scores[score]:.3f}" if score in scores else "" for score in SHOWN]
        method = f"{spec['method']['name']}: {setting_text(settings).replace(',', ', ')}"
        table.add_row(name, spec["data"], f"{spec['steps']:,}", *shown, method)
    console().print(table)
    say_next([("look at a model in the browser", f"unweave explore {names[0]}")])


def _mean_scores(record: Any) -> dict[str, float]:
    """The scores of the mean codes in a file of scores."""
    return {
        score["name"]: score["value"]
        for evaluation in record["evaluations"]
        if evaluation["representation"] == "mean"
        for score in evaluation["scores"]
    }
