"""The supervised loss on labels that a semi-supervised run was not trained on.

[1] Locatello, Tschannen, Bauer, Rätsch, Schölkopf, Bachem: Disentangling factors of variation using few
labels, ICLR 2020.
"""

from __future__ import annotations

import torch
from torch import nn

from unweave.data.grid import GroundTruth
from unweave.methods.method import Blueprint, LabelledCodes
from unweave.methods.semi_supervised import LABEL_MAP, SemiSupervised
from unweave.nn.distributions.gaussian import certain
from unweave.runs.run import Run
from unweave.streams import Stream


def held_out_scores(run: Run, truth: GroundTruth) -> dict[str, float]:
    """Minus the supervised loss R of a run on its held-out labels; empty if it held none out.

    The name of the score is that of the loss: `few_labels.xent`. Higher is better. [1] trains on 90% of the
    labels and computes R on the other 10%.
    """
    method = run.spec.method
    if not isinstance(method, SemiSupervised):
        return {}
    points = method.held_out_points(truth, run.spec.seed)
    if not len(points):
        return {}
    images = truth.observe(points.factors, Stream.of(run.spec.seed).child("held-out labels"))
    mean = torch.from_numpy(run.encode(images))[None]
    labelled = LabelledCodes(certain(mean), torch.from_numpy(points.labels)[None], points.sizes)
    loss = method.supervised_loss_on(labelled, _label_map(run))
    return {f"few_labels.{method.supervised_loss}": -float(loss.detach())}


def _label_map(run: Run) -> dict[str, nn.Module]:
    """What the run learned about the map from codes to labels; empty if its loss learns nothing about it."""
    prefix = f"{LABEL_MAP}."
    weights = {
        name.removeprefix(prefix): tensor[None]
        for name, tensor in run.folder.weights().items()
        if name.startswith(prefix)
    }
    sizes = tuple(run.folder.origin.get("label_sizes", ()))
    plan = Blueprint([Stream.of(0)], run.shape, run.spec.latents, label_sizes=sizes)
    networks = {
        player.name: player.build(plan) for player in run.spec.method.players if player.name == LABEL_MAP
    }
    for network in networks.values():
        network.load_state_dict(weights)
    return networks
