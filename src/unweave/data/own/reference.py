"""How to open a user's data again: plain data that a run or a study records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from unweave.data.own.sizing import Fit
from unweave.errors import UnweaveError

ReferenceKind: TypeAlias = Literal["folder", "file", "plugin"]


@dataclass(frozen=True)
class Reference:
    """A folder of pictures, a file of arrays or a plug-in, and the options with which it was opened.

    `path` is absolute; of a plug-in, it is `/path/to/file.py:Name` or `package.module:Name`. `table` is the
    table of factors of a folder: relative to the folder where it lies inside, else absolute; None means
    factors.csv (or .tsv, .parquet, .jsonl) in the folder. `source` is that of the data without the
    `condition`, a fingerprint of pixels and factors: what is opened again must have the same.
    """

    kind: ReferenceKind
    path: str
    name: str
    size: tuple[int, int]
    fit: Fit
    channels: int
    source: str
    table: str | None = None
    names: tuple[str, ...] | None = None
    kinds: tuple[tuple[str, str], ...] | None = None
    grid: bool = True
    condition: str = ""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image, (c, h, w)."""
        return (self.channels, *self.size)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the options that were not given."""
        plain = dataclasses.asdict(self)
        plain["kinds"] = None if self.kinds is None else dict(self.kinds)
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {name: value for name, value in plain.items() if value != defaults[name]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Reference:
        """The reference that `to_dict` wrote."""
        try:
            fields = dict(plain)
            fields["size"] = tuple(fields["size"])
            if fields.get("names") is not None:
                fields["names"] = tuple(fields["names"])
            if fields.get("kinds") is not None:
                fields["kinds"] = tuple(fields["kinds"].items())
            return cls(**fields)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UnweaveError(
                f"this record of a data set cannot be read: {plain!r} ({error}). Name the data set again."
            ) from error
