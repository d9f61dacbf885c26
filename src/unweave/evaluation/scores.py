"""The result of an evaluation: scores by name, and what is needed to understand and compare them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unweave.display.notebook import heading, paragraph, table
from unweave.errors import UnweaveError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# The version of what is written to files; a reader refuses what is newer.
SCHEMA = 1
TITLES = {
    "mutual_information": "mutual information (nats)",
    "importance": "importance (DCI)",
    "accuracy": "accuracy of one code (SAP)",
    "fairness_trees.unfairness": "unfairness (boosted trees)",
    "fairness_logistic.unfairness": "unfairness (logistic regression)",
}


@dataclass(frozen=True)
class Score:
    """One number. `low` and `high` are its 95% interval, where there were repeats.

    The interval covers the mean of the score over fresh samples of as many points; see
    `unweave.evaluation.intervals`.
    """

    name: str
    protocol: str
    representation: str  # mean, sampled, or "" for scores of the run and not of its codes
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def metric(self) -> str:
        """The metric that it is a number of."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, eq=False)
class Scores(Mapping[str, float]):
    """Scores by name, as a dictionary: scores["mig"], dict(scores).

    `matrices` are (d, k), rows codes and columns factors: mutual_information; importance where DCI was asked
    for; accuracy where SAP was. Unfairness, such as fairness_trees.unfairness, is (k, k): rows are predicted
    factors, columns sensitive ones. `matrix` gives one as a data frame. `seconds` has the cost of encoding
    apart from that of each metric, `images` how many images were encoded. `notes` say what could not be
    measured, how points to test on were held out, and which scores to read with care.
    """

    subject: str
    representation: str
    scores: tuple[Score, ...]
    matrices: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    factors: tuple[str, ...] = ()  # their names
    codes: tuple[str, ...] = ()  # their names, where they have some
    asked: tuple[int, int] = (0, 0)  # points to train and to test on that were asked for
    points: tuple[int, int] = (0, 0)  # those that there were
    repeats: int = 0
    seed: int | None = 0
    images: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.score(name).value

    def __iter__(self) -> Iterator[str]:
        return iter(score.name for score in self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{score.name} {score.value:.3f}" for score in self.scores)
        return f"Scores({self.subject!r}, {self.representation}: {numbers})"

    def __str__(self) -> str:
        width = max((len(score.name) for score in self.scores), default=0)
        lines = [f"{score.name:{width}}  {score.value:.4f}{_interval(score)}" for score in self.scores]
        return "\n".join([*lines, *self.notes])

    def score(self, name: str) -> Score:
        """A score with its protocol and interval."""
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f'no score "{name}". {did_you_mean(name, list(self)) if self.scores else ""}')

    @property
    def code_names(self) -> tuple[str, ...]:
        """The names of the codes; z0, z1, ... where they have none."""
        of_codes = (matrix for name, matrix in self.matrices.items() if not _has_factor_rows(name))
        rows = max(map(len, of_codes), default=0)
        return self.codes or tuple(f"z{i}" for i in range(rows))

    def matrix(self, name: str = "mutual_information") -> pd.DataFrame:
        """A matrix with the names of codes or predicted factors (rows) and of factors (columns)."""
        import pandas as pd

        return pd.DataFrame(self._matrix(name), index=list(self._rows_of(name)), columns=list(self.factors))

    def _rows_of(self, name: str) -> tuple[str, ...]:
        """The names of the rows of a matrix."""
        return self.factors if _has_factor_rows(name) else self.code_names

    def _matrix(self, name: str) -> NDArray[np.float64]:
        if name not in self.matrices:
            known = did_you_mean(name, self.matrices) if self.matrices else "There is none."
            raise UnweaveError(f'these scores have no matrix "{name}". {known}')
        return self.matrices[name]

    def _repr_html_(self) -> str:
        """The scores as a table for notebooks, with the notes below it."""
        columns = ["score", "value", "95% interval", "protocol"]
        repeated = any(score.low is not None for score in self.scores)
        rows = [
            [score.name, f"{score.value:.4f}", _interval(score).strip(" ()"), score.protocol]
            for score in self.scores
        ]
        if not repeated:
            columns, rows = [columns[0], columns[1], columns[3]], [[r[0], r[1], r[3]] for r in rows]
        train, test = self.points
        title = f"{self.subject}, {self.representation} codes, {train:,} + {test:,} points"
        return "".join([heading(title), table(columns, rows), *(paragraph(note) for note in self.notes)])

    def table(self) -> pd.DataFrame:
        """One row a score: name, value, low, high, protocol."""
        import pandas as pd

        columns = ["name", "value", "low", "high", "protocol"]
        frame = pd.DataFrame([asdict(score) for score in self.scores], columns=columns)
        return frame if frame["low"].notna().any() else frame.drop(columns=["low", "high"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `to_json` writes it."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "representation": self.representation,
            "scores": [asdict(score) for score in self.scores],
            "matrices": {name: matrix.tolist() for name, matrix in self.matrices.items()},
            "factors": list(self.factors),
            "codes": list(self.codes),
            "asked": list(self.asked),
            "points": list(self.points),
            "repeats": self.repeats,
            "seed": self.seed,
            "images": self.images,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=1) + "\n"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Scores:
        """What `to_dict` gave."""
        try:
            if record["schema"] > SCHEMA:
                raise UnweaveError(
                    f"these scores were written in format {record['schema']} by a newer unweave; this one "
                    f"reads formats up to {SCHEMA}. Upgrade unweave."
                )
            return cls(
                record["subject"],
                record["representation"],
                tuple(Score(**score) for score in record["scores"]),
                {name: np.array(matrix) for name, matrix in record["matrices"].items()},
                tuple(record["factors"]),
                tuple(record.get("codes", ())),
                (record["asked"][0], record["asked"][1]),
                (record["points"][0], record["points"][1]),
                record["repeats"],
                record["seed"],
                record["images"],
                dict(record["seconds"]),
                tuple(record["notes"]),
            )
        except (KeyError, TypeError, IndexError) as error:
            raise UnweaveError(f"these are not scores that unweave wrote: {error!r}.") from error

    def plot(self, path: str | Path | None = None, matrix: str | None = None) -> Figure:
        """Draw one of the matrices, or all there are; with a path, write the picture there too."""
        from unweave.display.inline_figure import InlineFigure

        names = [matrix] if matrix else list(self.matrices)
        for name in names:
            self._matrix(name)
        if not names:
            raise UnweaveError("these scores have no matrix to draw: measure mig, dci or sap.")
        rows = max(len(self.matrices[name]) for name in names)
        figure = InlineFigure(figsize=(0.8 + 3.2 * len(names), 1.6 + 0.28 * rows), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            _draw(axes, self.matrices[name], self.factors, self._rows_of(name), TITLES.get(name, name))
        figure.suptitle(f"{Path(self.subject).name}, {self.representation} codes", fontsize=10)
        if path is not None:
            save_figure(figure, path)
        return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure; the format follows the ending."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UnweaveError(f"cannot write the picture {path}: {error}") from error


def _interval(score: Score) -> str:
    return "" if score.low is None or score.high is None else f"  ({score.low:.4f} to {score.high:.4f})"


def _has_factor_rows(matrix: str) -> bool:
    """Whether the rows of a matrix are factors and not codes: names of such matrices start with a metric."""
    return "." in matrix


def _draw(
    axes: Any, matrix: NDArray[np.float64], factors: Sequence[str], rows: Sequence[str], title: str
) -> None:
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=max(float(matrix.max()), 1e-12), aspect="auto")
    axes.set_xticks(range(matrix.shape[1]), factors or range(matrix.shape[1]), rotation=30, fontsize=8)
    axes.set_yticks(range(matrix.shape[0]), rows, fontsize=8)
    axes.set_title(title, fontsize=9)
    for (i, j), value in np.ndenumerate(matrix):
        dark = value > 0.6 * matrix.max()
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if dark else "0.25")
