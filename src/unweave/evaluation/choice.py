"""Which of the metrics that were asked for can be measured.

A metric that is asked for by name is measured or refused. One that is only part of a suite is left out where
it cannot be measured, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unweave.errors import UnweaveError
from unweave.evaluation.requests import obstacle_of
from unweave.evaluation.sources import Source, columns_of_blocks
from unweave.metrics.factor_kinds import for_kinds
from unweave.metrics.lookup import Asked, metrics_named, named_singly
from unweave.metrics.metric import COUNTS, WIDE, Metric, Variant

BLOCKS = "blocks"  # the suite for codes of tokens


@dataclass(frozen=True)
class Wanted:
    """Metrics that were asked for, and the names of those that were asked for by name."""

    metrics: tuple[Metric, ...]
    by_name: frozenset[str]

    @classmethod
    def of(cls, metrics: Asked) -> Wanted:
        """What names of metrics and suites stand for; a wrong name is refused."""
        return cls(metrics_named(metrics), named_singly(metrics))

    @property
    def lenient(self) -> bool:
        """Whether only suites were asked for, so that nothing has to be refused."""
        return not self.by_name

    def possible(self, source: Source) -> Choice:
        """The metrics that a source can give; of tokens, those of blocks if no other can be measured."""
        chosen, left_out = [], {}
        for metric in self.metrics:
            reason = obstacle_of(metric.needs, source)
            if reason is not None and metric.name in self.by_name:
                raise UnweaveError(f"{metric.name} cannot be measured here: {reason}.")
            if reason is None and metric.name not in self.by_name and _says_nothing(metric, source):
                reason = "there is only one factor, and nothing to compare it with"
            if reason is None:
                chosen.append(for_kinds(metric, source.kinds, source.missing) if source.kinds else metric)
            else:
                left_out[metric.name] = reason
        if not chosen and source.tokens is not None and not _any_of_blocks(self.metrics):
            return replace(Wanted.of(BLOCKS).possible(source), left_out=left_out)
        return Choice(tuple(chosen), self.by_name, left_out)


@dataclass(frozen=True)
class Choice:
    """The metrics to measure, and the reason for each that is left out."""

    metrics: tuple[Metric, ...]
    by_name: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)
    approximate: bool = False  # whether slow metrics of a suite may be approximated for wide codes

    def for_codes(self, count: int) -> Choice:
        """The choice for so many codes: above `WIDE`, with approximations where they are allowed."""
        if count <= WIDE or not self.approximate:
            return self
        changed = (
            metric if metric.name in self.by_name else _replaced(metric, metric.for_wide_codes)
            for metric in self.metrics
        )
        return replace(self, metrics=tuple(changed))

    def for_representation(self, representation: str, *sources: Source) -> Choice:
        """The choice for this representation of all sources: codes of a few values are counted.

        Samples of q(z|x) have many values even where the means have few.
        """
        if representation != "mean" or not all(source.discrete for source in sources):
            return self
        changed = (_replaced(metric, metric.for_discrete_codes) for metric in self.metrics)
        return replace(self, metrics=tuple(changed))


def _replaced(metric: Metric, variant: Variant | None) -> Metric:
    """The metric as the variant computes it; unchanged without one."""
    return metric if variant is None else replace(metric, **variant._asdict())


def _any_of_blocks(metrics: Sequence[Metric]) -> bool:
    return any("blocks" in metric.inputs.arguments for metric in metrics)


def _says_nothing(metric: Metric, source: Source) -> bool:
    return bool(source.names) and len(source.names) < metric.least_factors


def approximation_notes(asked: Sequence[Metric], measured: Sequence[Metric]) -> tuple[str, ...]:
    """A note on the metrics that were approximated because there are many codes."""
    exact = {metric.name: metric.estimator for metric in asked}
    names = [metric.name for metric in measured if metric.estimator != exact[metric.name]]
    if not names:
        return ()
    return (
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} approximate, because there are more than "
        f"{WIDE} codes; see the protocol. Ask for it by name for the exact score, which takes minutes.",
    )


def block_notes(metrics: Sequence[Metric], source: Source) -> tuple[str, ...]:
    """A note on the factors that blocks should hold, if scores depend on it."""
    if not any("blocks" in metric.inputs.uses for metric in metrics):
        return ()
    held = [
        f"{block} should hold {listed([source.names[j] for j in factors])}"
        for block, factors in columns_of_blocks(source).items()
        if factors
    ]
    return (f"For scores of blocks, {listed(held)}.",)


def left_out_notes(left_out: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each reason, with the names of all metrics that it concerns."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason.rstrip("."), []).append(name)
    return tuple(
        f"{listed(names)} {'was' if len(names) == 1 else 'were'} left out: {reason}."
        for reason, names in by_reason.items()
    )


def meaningless_notes(metrics: Sequence[Metric], *sources: Source) -> tuple[str, ...]:
    """Notes on the numbers that were left out of metrics, because they mean nothing for the codes."""
    names = {metric.name for metric in metrics}
    left_out = {
        name: reason
        for source in sources
        for name, reason in source.meaningless.items()
        if name.partition(".")[0] in names
    }
    return left_out_notes(left_out)


def listed(names: Sequence[str]) -> str:
    """Names with commas and "and" between them.

    >>> listed(["mig", "sap", "dci"])
    'mig, sap and dci'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def small_code_notes(numbers: Mapping[str, float], codes: int | None) -> tuple[str, ...]:
    """A note if metrics counted some codes only, which is wrong if their scale has no meaning."""
    counted = {name: int(value) for name, value in numbers.items() if name.endswith(".active")}
    return tuple(
        f"{name.removesuffix('.active')} counted {value} of {codes} codes; the others vary too little. If no "
        "prior sets the scale of the codes, use standardise=True, or --standardise."
        for name, value in counted.items()
        if codes is not None and value < codes
    )


def one_factor_notes(metrics: Sequence[Metric], scores: Sequence[str]) -> tuple[str, ...]:
    """A note on the scores that say nothing where there is only one factor."""
    known = {metric.name: metric for metric in metrics}
    empty = []
    for name in scores:
        metric, part = known[name.partition(".")[0]], name.rpartition(".")[2]
        if part in metric.compares_factors or (metric.least_factors > 1 and part not in COUNTS):
            empty.append(name)
    if not empty:
        return ()
    verb = "compares" if len(empty) == 1 else "compare"
    return (f"{listed(empty)} {verb} factors with each other, and with one factor that says nothing.",)
