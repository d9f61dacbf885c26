"""Learning curves of abstract reasoning: accuracies on held-out matrices, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from unweave.errors import UnweaveError
from unweave.reasoning.matrices import ANSWERS
from unweave.reasoning.spec import ReasoningSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CHANCE = 1 / ANSWERS
LEGEND = 12  # curves whose names a legend can show
QUANTILE = 1.959963984540054  # of the normal distribution, for 95% intervals


class Check(NamedTuple):
    """The accuracy after so many training steps: how many of the held-out matrices were solved."""

    steps: int
    matrices: int  # seen in training
    right: int
    tests: int

    @property
    def accuracy(self) -> float:
        """The share of held-out matrices that were solved; 1/6 is chance."""
        return self.right / self.tests

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the accuracy over fresh matrices."""
        return wilson_interval(self.right, self.tests)


@dataclass(frozen=True)
class Curve:
    """The accuracies of one subject, in the order of training steps."""

    subject: str
    data: str
    spec: ReasoningSpec
    checks: tuple[Check, ...]

    @property
    def complete(self) -> bool:
        """Whether the training reached its end."""
        return bool(self.checks) and self.checks[-1].steps >= self.spec.steps

    def after(self, matrices: int) -> Check:
        """The check after so many matrices; an error lists those that there are."""
        for check in self.checks:
            if check.matrices == matrices:
                return check
        known = ", ".join(f"{check.matrices:,}" for check in self.checks)
        raise UnweaveError(f"there is no check after {matrices:,} matrices; there are checks after {known}.")


@dataclass(frozen=True)
class Reasoning:
    """Learning curves, one for each subject, and notes on subjects that were left out."""

    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = sorted({check.matrices for curve in self.curves for check in curve.checks})
        width = max((len(curve.subject) for curve in self.curves), default=0)
        lines = [f"{'matrices':{width}}" + "".join(f"  {count:>9,}" for count in counts)]
        for curve in self.curves:
            accuracies = {check.matrices: f"{check.accuracy:.3f}" for check in curve.checks}
            cells = "".join(f"  {accuracies.get(count, ''):>9}" for count in counts)
            lines.append(f"{curve.subject:{width}}{cells}")
        return "\n".join((*lines, *self.notes))

    def frame(self) -> pd.DataFrame:
        """One row for each check: subject, data, steps, matrices, accuracy and its 95% interval."""
        import pandas as pd

        columns = ["subject", "data", "steps", "matrices", "accuracy", "low", "high"]
        rows = [
            (curve.subject, curve.data, check.steps, check.matrices, check.accuracy, *check.interval)
            for curve in self.curves
            for check in curve.checks
        ]
        return pd.DataFrame(rows, columns=columns)

    def plot(self) -> Figure:
        """The accuracies against the number of training matrices, with 95% intervals, as a figure."""
        from matplotlib.ticker import LogFormatter

        from unweave.display.inline_figure import InlineFigure

        figure = InlineFigure(figsize=(6.4, 3.2), dpi=110, layout="constrained")
        axes = figure.add_subplot()
        for curve in self.curves:
            matrices = [check.matrices for check in curve.checks]
            low, high = zip(*(check.interval for check in curve.checks), strict=True)
            name = curve.subject.replace("$", r"\$")  # no formula begins here
            [line] = axes.plot(matrices, [check.accuracy for check in curve.checks], ".-", label=name)
            axes.fill_between(matrices, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.axhline(CHANCE, color="0.5", linestyle=":", linewidth=1)
        axes.set_xscale("log")
        # Within a decade there may be no power of ten, so the ticks between have numbers.
        axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1, 0.4)))
        axes.set_xlabel("training matrices")
        axes.set_ylabel("accuracy")
        if len(self.curves) <= LEGEND:
            figure.legend(loc="outside right upper", fontsize=7, frameon=False)
        return figure


def wilson_interval(right: int, tests: int) -> tuple[float, float]:
    """The 95% interval of a probability of which `right` of `tests` trials succeeded [1].

    [1] Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.

    >>> [round(end, 4) for end in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    if not 0 <= right <= tests or tests < 1:
        raise UnweaveError(f"an interval needs 0 <= right <= tests and a test; got {right} of {tests}.")
    share, square = right / tests, QUANTILE**2
    centre = (share + square / (2 * tests)) / (1 + square / tests)
    reach = math.sqrt(share * (1 - share) / tests + square / (4 * tests**2)) / (1 + square / tests)
    return max(centre - QUANTILE * reach, 0.0), min(centre + QUANTILE * reach, 1.0)
