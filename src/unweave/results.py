"""The table of results: one row for each score of each run, of any tool.

All figures and statistics start from this one form, so that own runs, published ones and those of other
tools can be compared. A missing score has no row. `wide` turns the table into one row a run, and
refuses to put numbers of two estimators into one column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.column_mapping import checked_mapping
from unweave.errors import UnweaveError, did_you_mean

COLUMNS = (
    "source",  # "own", "published", or the name of another tool
    "run",  # id of the run
    "data",
    "method",
    "setting",  # all settings of the method, as `setting_text` writes them
    "strength",  # the main one of them, as a number; NaN for a method that has none
    "seed",
    "representation",  # "mean" or "sampled"; "" for scores of the run itself, such as elbo.kl
    "score",  # "mig", "dci.disentanglement": a record of unweave.metrics.METRICS and a field of it
    "protocol",  # the estimator: "mig[bins20,mean]"
    "value",
)
RUN_COLUMNS = COLUMNS[:7]
# The part of restricted data that a score is from: "training", "all" or "held_out". Tables that lack the
# column are of the first.
PART, TRAINING = "on", "training"
TABLE_COLUMNS = (*COLUMNS, PART)
TEXT_COLUMNS = ("source", "run", "data", "method", "setting", "representation", "score", "protocol", PART)

# What a protocol states about the factors that blocks of codes should hold.
BLOCKS_WORD = re.compile(r",factors:([^,\]]*)")

# Losses on labels that were held out of training, which only methods with labels have.
HELD_OUT_LOSSES = ("few_labels.xent", "few_labels.l2", "few_labels.embed", "few_labels.cov")

# In tables and figures methods have this order, the study's; others follow by name.
METHOD_ORDER = ("beta_vae", "factor_vae", "dip_vae_i", "dip_vae_ii", "beta_tcvae", "annealed_vae")


@dataclass(frozen=True)
class Results:
    """A checked table, and sentences on what is missing in it."""

    table: pd.DataFrame
    notes: tuple[str, ...] = ()


def setting_text(settings: Mapping[str, Any]) -> str:
    """The settings of a method as one text; equal settings give equal texts.

    >>> setting_text({"lambda_od": 5.0, "lambda_d_factor": 10})
    'lambda_od=5,lambda_d_factor=10'
    >>> setting_text({"gamma": 0.1, "second_batch": False})
    'gamma=0.1,second_batch=False'
    """
    return ",".join(f"{name}={_plain(value)}" for name, value in settings.items())


def _plain(value: Any) -> str:
    if isinstance(value, bool | np.bool_ | str):
        return str(value)
    return repr(float(value)).removesuffix(".0")


def read_frame(path: str | Path, **csv_options: Any) -> pd.DataFrame:
    """A CSV or Parquet file as it is."""
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise UnweaveError(f"results are read from a .csv or .parquet file; got {path}.")
    if not path.is_file():
        raise UnweaveError(f"there is no file {path}.")
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, **csv_options)
    except (ValueError, OSError) as error:  # what pyarrow and the reader of CSV raise are kinds of these
        reason = str(error).splitlines()[0]
        raise UnweaveError(f"{path} cannot be read as a {path.suffix} file: {reason}") from error


def read_table(path: str | Path) -> Results:
    """A table of results from a Parquet or CSV file, checked."""
    # An empty cell is a gap where numbers are, and the word "" where words are.
    number_gaps = {name: ["", "nan", "NaN"] for name in ("strength", "seed", "value")}
    words = dict.fromkeys(TEXT_COLUMNS, "category")
    return check_table(read_frame(path, dtype=words, keep_default_na=False, na_values=number_gaps))


def check_table(frame: pd.DataFrame) -> Results:
    """The table with its columns in order and their types right, without values that are no numbers.

    The notes say how many values were left out, and which runs lack scores that others have.
    """
    absent = [name for name in COLUMNS if name not in frame.columns]
    if absent:
        raise UnweaveError(
            f"a table of results has the columns {', '.join(COLUMNS)}; this one lacks {', '.join(absent)}. "
            f"Tables of another form need a mapping: --mapping FILE, or from_columns in Python."
        )
    frame = frame if PART in frame else frame.assign(**{PART: TRAINING})
    table = pd.DataFrame({name: _typed(frame[name]) for name in TABLE_COLUMNS})
    finite = np.isfinite(table["value"].to_numpy())
    notes: tuple[str, ...] = ()
    if not finite.all():
        notes = (f"{(~finite).sum()} of {len(table)} values are missing or infinite and were left out.",)
        table = table[finite]
    table = table.reset_index(drop=True)
    if table.empty:
        raise UnweaveError("the table of results has no row with a number in it.")
    _check_names(table)
    return Results(table, notes + gaps(table))


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    name = str(column.name)
    if name in TEXT_COLUMNS:
        return _words(column)
    values = _numbers(column)
    if name != "seed":
        return values
    whole = np.isfinite(values) & (values == np.rint(values))
    if not whole.all():
        odd = values[~whole].iloc[0]
        raise UnweaveError(f'column "seed" of the results must hold whole numbers; got {odd}.')
    return values.astype(np.int64)


def _words(column: pd.Series[Any]) -> pd.Series[Any]:
    words = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
    if words.isna().any():
        raise UnweaveError(f'column "{column.name}" of the results has empty cells; each must hold a word.')
    other = [value for value in words.cat.categories if not isinstance(value, str)]
    if other:
        raise UnweaveError(f'column "{column.name}" of the results must hold words; got {other[0]!r}.')
    return words


def _check_names(table: pd.DataFrame) -> None:
    taken = set(table["score"].unique()) & set(TABLE_COLUMNS)
    if taken:
        raise UnweaveError(
            f'a score cannot be called "{min(taken)}", which is a column of every table; rename it.'
        )
    runs = table[list(RUN_COLUMNS)].drop_duplicates()
    twice = runs[runs.duplicated(["source", "run"])]
    if len(twice):
        first = twice.iloc[0]
        raise UnweaveError(
            f'run "{first["run"]}" of source "{first["source"]}" stands for runs that differ in data, '
            "method, setting or seed; give each run an id of its own."
        )
    again = table.duplicated(["source", "run", "representation", "score", "protocol", PART])
    if again.any():
        first = table[again].iloc[0]
        raise UnweaveError(
            f'{first["score"]} of run "{first["run"]}" ({first["representation"]}) is in the table twice; '
            "remove one of the two rows."
        )


def gaps(table: pd.DataFrame) -> tuple[str, ...]:
    """One sentence for each method that lacks scores which other runs of the same source have.

    Only scores on training data count: many metrics cannot be measured on a part of the data. Runs without
    labels in training lack no loss on held-out labels.
    """
    table = on_part(table)
    kind = ["source", "method", "data"]
    per_kind = table.drop_duplicates(["source", "run"]).groupby(kind, observed=True).size()
    runs: dict[Any, int] = per_kind.to_dict()
    measured = table.groupby([*kind, "representation", "score"], observed=True).size().to_dict()
    wanted = sorted(
        table[["source", "representation", "score"]].drop_duplicates().itertuples(index=False, name=None)
    )
    lacking: dict[tuple[str, ...], dict[str, int]] = {}
    for (source, method, data), total in runs.items():
        for _, representation, score in (entry for entry in wanted if entry[0] == source):
            lack = total - measured.get((source, method, data, representation, score), 0)
            if lack > 0 and (score not in HELD_OUT_LOSSES or lack < total):
                lacking.setdefault((source, representation, method, score), {})[data] = lack
    sentences = []
    for (source, representation, method, score), where in lacking.items():
        codes = f" of {representation} codes" if representation else ""
        all_runs = sum(runs[source, method, data] for data in where)
        sentences.append(
            f"{source}: {method} has no {score}{codes} for {sum(where.values()):,} of {all_runs:,} runs on "
            f"{', '.join(where)}."
        )
    return tuple(sentences)


def long_table(runs: pd.DataFrame, scores: pd.DataFrame, protocols: Mapping[str, str]) -> pd.DataFrame:
    """The table of n runs, which have the other columns of a table, and of their (n, scores) numbers."""
    n, names = len(runs), [str(name) for name in scores]
    words = {name: "category" for name in runs if name in TEXT_COLUMNS}
    table = runs.astype(words).iloc[np.tile(np.arange(n), len(names))].reset_index(drop=True)
    number = np.repeat(np.arange(len(names)), n)
    table["score"] = pd.Categorical.from_codes(number, pd.Index(names))
    table["protocol"] = pd.Categorical(np.array([protocols[name] for name in names], object)[number])
    table["value"] = scores.to_numpy(float).ravel(order="F")
    return table[table["value"].notna()].reset_index(drop=True)


def from_columns(frame: pd.DataFrame | str | Path, mapping: Mapping[str, Any] | str | Path) -> Results:
    """Results of other tools: a table, or a CSV or Parquet file, with a row a run and a column a score.

    The mapping is a dictionary or a TOML file that says which column is what:

    - `columns`: our name to theirs. data, method and seed are needed; run (else the number of the row),
      representation (else "mean"), setting and strength may be there;
    - `constants`: our name to a word, for what is the same in all rows, such as source (else "other");
    - `settings`: names of settings to columns, in place of setting. Empty cells are left out; if a run has
      one setting only, it is the strength;
    - `scores`: our names of scores to columns;
    - `protocols`: scores to protocols, where the estimator is known to be ours. Else it is "mig[source]".
    """
    frame = frame if isinstance(frame, pd.DataFrame) else read_frame(frame)
    parts = checked_mapping(mapping, [str(name) for name in frame], COLUMNS)
    constants = {"source": "other", "representation": "mean", "setting": "", "strength": np.nan}
    runs = pd.DataFrame(constants | parts["constants"], index=frame.index)
    for name, column in parts["columns"].items():
        runs[name] = frame[column]
    if parts["settings"]:
        runs["setting"], strength = _settings(frame, parts["settings"])
        if "strength" not in parts["columns"] | parts["constants"]:
            runs["strength"] = strength
    if "run" not in runs:
        runs["run"] = [f"{source}-{i}" for i, source in enumerate(runs["source"])]
    words = [name for name in runs if name in TEXT_COLUMNS and not runs[name].isna().any()]
    runs = runs.astype(dict.fromkeys(words, str))
    source = ",".join(sorted(runs["source"].astype(str).unique()))
    protocols = {name: parts["protocols"].get(name, f"{name}[{source}]") for name in parts["scores"]}
    scores = pd.DataFrame({name: _numbers(frame[column]) for name, column in parts["scores"].items()})
    return check_table(long_table(runs, scores, protocols))


def _settings(frame: pd.DataFrame, columns: Mapping[str, str]) -> tuple[list[str], list[float]]:
    """For each row the text of its settings, and their strength."""
    texts, strengths = [], []
    for row in frame[list(columns.values())].itertuples(index=False, name=None):
        known = {name: value for name, value in zip(columns, row, strict=True) if not pd.isna(value)}
        texts.append(setting_text(known))
        only = list(known.values()) if len(known) == 1 else [np.nan]
        strengths.append(np.nan if isinstance(only[0], str) else float(only[0]))
    return texts, strengths


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return column.astype(float)
    except (TypeError, ValueError) as error:
        raise UnweaveError(f'column "{column.name}" of the results must hold numbers; {error}.') from error


def combine(*results: Results) -> Results:
    """Several tables as one."""
    if not results:
        raise UnweaveError("combine needs one table of results or more; got none.")
    tables = [part.table for part in results]
    columns: dict[str, Any] = {}
    for name in TABLE_COLUMNS:
        parts = [table[name] for table in tables]
        if name in TEXT_COLUMNS:  # pandas makes plain objects of categories that differ
            columns[name] = pd.api.types.union_categoricals(
                [part.cat.remove_unused_categories() for part in parts]
            )
        else:
            columns[name] = np.concatenate([part.to_numpy() for part in parts])
    table = pd.DataFrame(columns)
    _check_names(table)
    return Results(table, tuple(note for part in results for note in part.notes))


def on_part(table: pd.DataFrame, part: str = TRAINING) -> pd.DataFrame:
    """The rows of a checked table whose scores are from that part of the data."""
    return table if list(table[PART].cat.categories) == [part] else table[table[PART] == part]


def wide(frame: pd.DataFrame, representation: str = "mean", on: str = TRAINING) -> pd.DataFrame:
    """One row a run: the columns that describe it, and one for each score of a representation and of the run.

    Scores are those on one part of the data: "training", "all" or "held_out".
    Rows are sorted by what they describe (methods in METHOD_ORDER) and scores by name, so the order of the
    table does not matter. A score that a run lacks is NaN. Two protocols under one score name are refused.
    If blocks of codes should hold other factors in some runs of a data set, these have columns of their own,
    such as "block_separation (shape|scale+x)".
    """
    table = on_part(frame if _is_checked(frame) else check_table(frame).table, on)
    known = [name for name in table["representation"].unique() if name]
    if representation and representation not in known:
        raise UnweaveError(
            f'the table has no scores of "{representation}" codes. {did_you_mean(representation, known)}'
        )
    rows = _split_by_blocks(table[table["representation"].isin(["", representation])])
    _refuse_mixtures(rows)
    ids = _run_numbers(rows)
    runs = rows[list(RUN_COLUMNS)].assign(number=ids).drop_duplicates("number")
    runs = runs.astype({name: str for name in RUN_COLUMNS if name in TEXT_COLUMNS})
    place = {name: i for i, name in enumerate(METHOD_ORDER)}
    runs["place"] = runs["method"].map(place).fillna(len(place))
    order = ["source", "data", "place", "method", "strength", "setting", "seed", "run"]
    runs = runs.sort_values(order, ignore_index=True).drop(columns="place")
    row_of_run = np.empty(len(runs), np.int64)
    row_of_run[runs.pop("number").to_numpy()] = np.arange(len(runs))
    scores = rows["score"].cat.remove_unused_categories()
    names = sorted(scores.cat.categories)
    column_of_score = np.array([names.index(name) for name in scores.cat.categories])
    values = np.full((len(runs), len(names)), np.nan)
    values[row_of_run[ids], column_of_score[scores.cat.codes]] = rows["value"]
    return pd.concat([runs, pd.DataFrame(values, columns=names)], axis=1)


def _is_checked(frame: pd.DataFrame) -> bool:
    return tuple(frame.columns) == TABLE_COLUMNS and all(
        isinstance(frame[name].dtype, pd.CategoricalDtype) for name in TEXT_COLUMNS
    )


def _run_numbers(rows: pd.DataFrame) -> NDArray[np.int64]:
    """(n,) the number of the run of each row, from 0 on."""
    source, run = rows["source"].cat, rows["run"].cat
    key = source.codes.astype(np.int64) * len(run.categories) + run.codes
    return pd.factorize(key.to_numpy())[0].astype(np.int64)


def _split_by_blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """Rename scores that a data set has for several assignments of factors to blocks of codes."""
    stated = {
        protocol: f" ({match[1]})"
        for protocol in rows["protocol"].cat.categories
        if (match := BLOCKS_WORD.search(protocol))
    }
    if not stated:
        return rows
    words = rows["protocol"].astype(str).map(stated).fillna("")
    counts = words.groupby([rows["data"], rows["score"]], observed=True).nunique()
    split = counts[counts > 1].index.get_level_values("score")
    names = rows["score"].astype(str)
    renamed = names.where(~names.isin(split), names + words)
    return rows.assign(score=pd.Categorical(renamed))


def _refuse_mixtures(rows: pd.DataFrame) -> None:
    pairs = rows[["data", "score", "protocol"]].drop_duplicates()
    # Codes that no prior gives a scale are standardised; they may be compared with codes that have one. Data
    # sets have different factors; within a data set, scores of different blocks have different names here.
    alike = (
        pairs["protocol"]
        .astype(str)
        .str.replace(",standardised", "")
        .str.replace(BLOCKS_WORD, "", regex=True)
    )
    pairs = pairs.assign(protocol=alike).drop_duplicates()
    mixed = pairs[pairs.duplicated(["data", "score"], keep=False)]
    if mixed.empty:  # restricted data are split by image, and other data sets may not be
        pairs = pairs.assign(protocol=pairs["protocol"].str.replace(",disjoint", ""))
        pairs = pairs[["score", "protocol"]].drop_duplicates()
        mixed = pairs[pairs["score"].duplicated(keep=False)]
    if mixed.empty:
        return
    score = sorted(mixed["score"])[0]
    protocols = sorted(set(mixed.loc[mixed["score"] == score, "protocol"]))
    raise UnweaveError(
        f"{score} was measured under {len(protocols)} protocols, {' and '.join(protocols)}, whose numbers "
        f'cannot be compared. Keep one of them (table[table["protocol"] != "{protocols[-1]}"]), or give one '
        "another score name."
    )
