"""`equivariance`: how well linear maps predict the codes of images in which one factor was shifted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.cpu_settings import one_blas_thread
from unweave.data.collection import Collection
from unweave.data.grid import GroundTruth
from unweave.errors import UnweaveError, did_you_mean
from unweave.evaluation.arrays import ArraySource
from unweave.evaluation.circular import circular_obstacle, columns_of_kind, periods_of_source
from unweave.evaluation.effort import Effort
from unweave.evaluation.evaluate import open_subject, source_of
from unweave.evaluation.parts import Part
from unweave.evaluation.scores import save_figure
from unweave.evaluation.sources import GroundTruthSource, Source
from unweave.metrics.equivariance import ORBITS, ShiftFit, mean_gain, shift_fits
from unweave.metrics.kinds import KindLike
from unweave.metrics.orbits import numbers_of_values, orbits_of
from unweave.metrics.representation import check_count
from unweave.progress import Progress
from unweave.streams import Stream

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Okabe and Ito: distinct for colour-blind readers; solid lines are maps, broken ones are baselines.
LINES = {
    "linear": ("#0072B2", "-"),
    "rotation": ("#D55E00", "-"),
    "identity": ("#009E73", "--"),
    "chance": ("#999999", ":"),
}
SHOWN = 7  # rows of the printed table at most, from the smallest shift to the largest


@dataclass(frozen=True)
class EquivarianceCurve:
    """R^2 of shifted codes against the shift, by linear maps, rotations and two baselines."""

    subject: str
    data: str
    factor: str
    circular: bool
    rows: tuple[ShiftFit, ...]
    orbits: tuple[int, int]  # fitted on, and tested on

    def __getitem__(self, shift: int) -> ShiftFit:
        """The numbers of one shift."""
        for row in self.rows:
            if row.shift == shift:
                return row
        raise KeyError(f"shifts go from 1 to {len(self.rows)}; got {shift!r}.")

    @property
    def gain(self) -> float:
        """The gain of linear maps over all shifts, 0 to 1; see `unweave.metrics.equivariance`."""
        return mean_gain([row.linear for row in self.rows], self.rows)

    def __str__(self) -> str:
        kind = "circular" if self.circular else "not circular"
        lines = [
            f"{self.factor} ({kind}) of {self.data}: gain {self.gain:.3f}; R2 on {self.orbits[1]} "
            "held-out orbits",
            f"shift  {'  '.join(f'{name:>8}' for name in LINES)}      gain",
        ]
        for place in np.unique(np.linspace(0, len(self.rows) - 1, SHOWN).round().astype(int)):
            row = self.rows[place]
            numbers = [row.linear, row.rotation, row.identity, row.chance, row.gain]
            lines.append(f"{row.shift:5}  {'  '.join(f'{number:8.3f}' for number in numbers)}")
        return "\n".join(lines)

    def frame(self) -> pd.DataFrame:
        """The numbers as a table, one row a shift."""
        import pandas as pd

        return pd.DataFrame([{"factor": self.factor, **row._asdict()} for row in self.rows])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the curves; with a path, write the picture there too."""
        from unweave.display.inline_figure import InlineFigure

        figure = InlineFigure(figsize=(5.2, 3.2), layout="constrained")
        axes: Any = figure.subplots()
        shifts = [row.shift for row in self.rows]
        for name, (colour, line) in LINES.items():
            values = [getattr(row, name) for row in self.rows]
            axes.plot(shifts, values, line, color=colour, label=name, linewidth=1.5)
        axes.set(xlabel=f"shift of {self.factor}", ylabel="R2 of shifted codes")
        axes.set_ylim(top=1.05)
        axes.set_title(f"{Path(self.subject).name}, {self.data}", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        if path is not None:
            save_figure(figure, path)
        return figure


def equivariance(
    subject: Any,
    factors: Any = None,
    *,
    factor: str | None = None,
    data: str | Path | GroundTruth | Collection | None = None,
    on: Part = "training",
    kinds: Mapping[str, KindLike] | None = None,
    orbits: int = ORBITS,
    seed: int | Stream = 0,
    tell: Progress | None = None,
) -> EquivarianceCurve:
    """Measure how well one linear map predicts the codes of images in which a factor was shifted.

    The subject is a run, an encoder on `data`, or codes with their `factors`, as for `unweave.evaluate`. An
    orbit is the mean codes of all values of the factor with the other factors fixed; `orbits` of them are
    drawn. For each shift s, maps from the code z of a value to the code z' of s values later are fitted on
    one half of the combinations of the other factors, and tested on the other half. A circular factor wraps
    around. Of another factor, only values that stay in range are shifted.

    - linear: z' = A z + b. rotation: the same with an orthogonal A.
    - identity: z' = z. chance: a linear map that was fitted to codes in random order.
    - R2 = 1 - sum |z' - prediction|^2 / sum |z' - mean z'|^2, over all codes and held-out orbits.
    - gain: the share of the error of the better of two guesses, z and the mean of z', that the linear map
      removes. It shows what a map explains beyond codes that do not depend on the factor.

    Without `factor`, the only circular factor is measured. Categories have no shifts.
    """
    check_count("orbits", orbits, 2)
    opened = open_subject(subject, None)
    source = source_of(opened, Effort(seed=seed), factors=factors, data=data, on=on, kinds=kinds, tell=tell)
    if source.restricted:
        raise UnweaveError(
            'equivariance needs all combinations of factors, and some are held out. Pass on="all".'
        )
    column = _column(source, factor)
    name, stream = source.names[column], Stream.of(seed).child("equivariance curve")
    representation = source.interventions("mean", many=False)
    bases = stream.child("bases").integers(orbits, representation.sizes)
    circular = column in columns_of_kind(source, "circular")
    values = periods_of_source(source).get(column, numbers_of_values(representation)[column])
    drawn = orbits_of(representation, column, values, bases, stream.child("codes"))
    fit, test = drawn.split(stream.child("halves"))
    with one_blas_thread():
        fits = tuple(shift_fits(fit, test, circular, stream))
    return EquivarianceCurve(
        str(opened.path) if hasattr(opened, "spec") else type(opened).__name__,
        source.truth.name if isinstance(source, GroundTruthSource) else "codes",
        name,
        circular,
        fits,
        (len(fit.bases), len(test.bases)),
    )


def _column(source: Source, factor: str | None) -> int:
    """The number of the factor, or of the only circular one."""
    circular = periods_of_source(source)
    if factor is None:
        if len(circular) == 1:
            return next(iter(circular))
        names = [source.names[j] for j in circular]
        raise UnweaveError(
            f"name a factor: factor=...; the circular ones are {', '.join(names) if names else 'none'}, and "
            f"all factors are {', '.join(source.names)}."
        )
    if factor not in source.names:
        raise UnweaveError(f'there is no factor "{factor}". {did_you_mean(factor, source.names)}')
    column = source.names.index(factor)
    if column in columns_of_kind(source, "categorical"):
        raise UnweaveError(
            f'"{factor}" is categorical, so its values cannot be shifted. Name another factor.'
        )
    obstacle = circular_obstacle(source) if column in circular and isinstance(source, ArraySource) else None
    if obstacle is not None:
        raise UnweaveError(f"equivariance cannot be measured here: {obstacle}.")
    return column
