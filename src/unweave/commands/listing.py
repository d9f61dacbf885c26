"""Tables of commands that stay readable in a narrow terminal."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

ANY_WIDTH = 10_000
INDENT = 4


class Listing:
    """A table without rules, in which the first column and those in `whole` keep their words on one line.

    Where it does not fit the terminal, the column `below` moves below each row, and gets the whole width.
    """

    def __init__(self, *columns: str, below: str | None = None, whole: Collection[str] = ()) -> None:
        self.columns, self.below, self.whole = columns, below, whole
        self.rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        """Add a row of texts in the markup of rich."""
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement

        table = self._table()
        natural = Measurement.get(console, options.update(max_width=ANY_WIDTH), table).maximum
        if self.below in self.columns and console.is_terminal and natural > options.max_width:
            yield from self._stacked(self.columns.index(self.below))
        else:
            yield table

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None)
        for place, column in enumerate(self.columns):
            table.add_column(column, no_wrap=place == 0 or column in self.whole, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def _stacked(self, moved: int) -> RenderResult:
        """Rows of columns that are as wide as in a table, each with the moved column below it."""
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        columns = [place for place in range(len(self.columns)) if place != moved]
        lines = [self.columns, *self.rows]
        widths = [max(Text.from_markup(line[place]).cell_len for line in lines) for place in columns]
        for number, line in enumerate(lines):
            row = Table.grid(padding=(0, 2, 0, 0))
            for width, place in zip(widths, columns, strict=True):
                row.add_column(width=width if place != columns[-1] else None, overflow="fold")
            row.add_row(*(line[place] for place in columns), style="bold" if number == 0 else "")
            yield row
            if line[moved]:
                yield Padding(Text.from_markup(line[moved], style="dim"), (0, 0, 0, INDENT))
