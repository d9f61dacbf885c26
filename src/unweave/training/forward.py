"""The forward pass through the shared autoencoder, computed once for a whole population.

Each group of runs, those with the same method, gets its part of the pass. A method may change the posteriors
that codes are drawn from (`Method.merged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.methods.step import Batch, Forward, LabelledCodes, network_of
from unweave.nn.distributions.gaussian import Gaussian, sample_and_divergence
from unweave.nn.networks.vae import Decoder, Encoder
from unweave.training.population import Group, PlayerState, Population

NOISE, SECOND_NOISE = "noise", "other noise"  # the purposes of a run's streams


class SharedPasses(NamedTuple):
    """One pass of each group, and, on a GPU, the event at which all but the decoder is done."""

    passes: list[Forward]
    encoded: torch.cuda.Event | None


def shared_passes(population: Population, autoencoder: PlayerState, batches: Sequence[Batch]) -> SharedPasses:
    """One pass of each group: the first batch is for all runs, each further one for a group that needs it.

    The decoder comes last. So its gradient comes first, and does not wait for those of the groups' losses.
    """
    batch, spec = batches[0], population.specs[0]
    encoder = network_of(autoencoder.networks, "encoder", Encoder)
    decoder = network_of(autoencoder.networks, "decoder", Decoder)
    merged = _merged(encoder(batch.images), population.groups, batch.labels)
    noise = population.draws.normal(NOISE, batch.images.shape[1], spec.latents)
    sample, divergence = sample_and_divergence(merged, noise, population.noise_scale)
    labelled = _labelled_codes(batch, encoder, population.label_sizes)
    rest = iter(batches[1:])
    second_samples = [
        _second_sample(population, group, next(rest), encoder) if group.method.second_batch_needed else None
        for group in population.groups
    ]
    # One split of each tensor makes its backward pass one launch, instead of several for each group.
    sizes = [group.last - group.first for group in population.groups]
    split = [tensor.split(sizes) for tensor in (merged.mean, merged.log_var, sample)]
    parts = zip(*split, _numbers_of_groups(divergence, sizes), strict=True)
    encoded = _event(population.device)
    losses = decoder.reconstruction(sample, batch.images, spec.likelihood)
    reconstructions = _numbers_of_groups(losses, sizes)
    decoded = _event(population.device)
    groups = zip(population.groups, reconstructions, parts, second_samples, strict=True)
    passes = [
        Forward(
            reconstruction_loss=reconstruction,
            posterior=Gaussian(mean, log_var),
            sample=group_sample,
            second_sample=second_sample,
            labelled=None if labelled is None else labelled.of_runs(group.runs),
            known_kl=group_kl,
            decoded=decoded,
        )
        for group, reconstruction, (mean, log_var, group_sample, group_kl), second_sample in groups
    ]
    return SharedPasses(passes, encoded)


def _numbers_of_groups(numbers: Tensor, sizes: Sequence[int]) -> Sequence[Tensor]:
    """(P,) as the numbers of each group. A single group gets them as they are: its gradient needs no copy."""
    return numbers.split(sizes) if len(sizes) > 1 else [numbers]


def _event(device: torch.device) -> torch.cuda.Event | None:
    """What has been launched up to now, on a GPU."""
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


def _labelled_codes(batch: Batch, encoder: Encoder, sizes: tuple[int, ...]) -> LabelledCodes | None:
    if batch.labelled is None:
        return None
    return LabelledCodes(encoder(batch.labelled.images), batch.labelled.labels, sizes)


def _second_sample(population: Population, group: Group, batch: Batch, encoder: Encoder) -> Tensor:
    draws = population.draws.of_runs(group.first, group.last)
    noise = draws.normal(SECOND_NOISE, batch.images.shape[1], population.specs[0].latents)
    with torch.no_grad():  # used by other players only, which do not train the encoder
        weights = {name: weight[group.runs] for name, weight in encoder.named_parameters()}
        sample: Tensor = torch.func.functional_call(encoder, weights, batch.images).sample(noise)
    return sample


def _merged(posterior: Gaussian, groups: Sequence[Group], labels: Tensor | None) -> Gaussian:
    """The posteriors that codes are drawn from; nothing is copied if no method changes them."""
    before = [posterior[group.runs] for group in groups]
    after = [
        group.method.merged(unmerged, None if labels is None else labels[group.runs])
        for group, unmerged in zip(groups, before, strict=True)
    ]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return posterior
    return Gaussian(torch.cat([part.mean for part in after]), torch.cat([part.log_var for part in after]))
