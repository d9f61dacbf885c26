"""The forward pass through the shared autoencoder, computed once for a whole population.

Each group of runs, those with the same method, gets its part of the pass. A method may change the posteriors
that codes are drawn from (`Method.merged`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unweave.methods.step import Batch, Forward, LabelledCodes, network_of
from unweave.nn.distributions.gaussian import Gaussian, sample_and_divergence
from unweave.nn.networks.vae import Decoder, Encoder
from unweave.training.population import Group, PlayerState, Population

NOISE, SECOND_NOISE = "noise", "other noise"  # the purposes of a run's streams


def shared_passes(
    population: Population, autoencoder: PlayerState, batches: Sequence[Batch]
) -> list[Forward]:
    """One pass of each group: the first batch is for all runs, each further one for a group that needs it."""
    batch, spec = batches[0], population.specs[0]
    encoder = network_of(autoencoder.networks, "encoder", Encoder)
    decoder = network_of(autoencoder.networks, "decoder", Decoder)
    merged = _merged(encoder(batch.images), population.groups, batch.labels)
    noise = population.draws.normal(NOISE, batch.images.shape[1], spec.latents)
    sample, divergence = sample_and_divergence(merged, noise, population.noise_scale)
    reconstruction = decoder.reconstruction(sample, batch.images, spec.likelihood)
    labelled = _labelled_codes(batch, encoder, population.label_sizes)
    # One split of each tensor makes its backward pass one launch, instead of several for each group.
    sizes = [group.last - group.first for group in population.groups]
    whole = reconstruction, merged.mean, merged.log_var, sample, divergence
    parts = zip(*(tensor.split(sizes) for tensor in whole), strict=True)
    passes, second_batches = [], iter(batches[1:])
    for group, part in zip(population.groups, parts, strict=True):
        group_reconstruction, mean, log_var, group_sample, group_kl = part
        second_sample = None
        if group.method.second_batch_needed:
            second_sample = _second_sample(population, group, next(second_batches), encoder)
        passes.append(
            Forward(
                reconstruction=group_reconstruction,
                posterior=Gaussian(mean, log_var),
                sample=group_sample,
                second_sample=second_sample,
                labelled=None if labelled is None else labelled.of_runs(group.runs),
                known_kl=group_kl,
            )
        )
    return passes


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
