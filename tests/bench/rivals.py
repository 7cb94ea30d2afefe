"""Screens to compare ours with: ``python -m tests.bench.rivals NAME LOG``.

``one``    one static widget, nothing more: what Textual itself costs
``clocks`` as many static rows as our screen has, of which the three with a clock change once a second
``rows``   the same, all of them changing four times a second
``slow``   the same, all of them changing once a second
``stock``  the same content from stock widgets: DataTable, ProgressBar, RichLog, Header with a clock, Footer
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Footer, Header, ProgressBar, RichLog, Static

ROWS = 20
HZ = 4.0


class One(App[None]):
    """One widget."""

    def compose(self) -> ComposeResult:
        yield Static("one widget")


class Rows(App[None]):
    """Rows of text, one static widget each."""

    def __init__(self, changing: int, hz: float) -> None:
        super().__init__()
        self._changing, self._hz = changing, hz

    def compose(self) -> ComposeResult:
        for number in range(ROWS):
            yield Static(f"row {number}", id=f"row{number}")

    def on_mount(self) -> None:
        self.set_interval(1 / self._hz, self.tick)

    def tick(self) -> None:
        spent = time.monotonic()
        for number in range(self._changing):
            self.query_one(f"#row{number}", Static).update(f"row {number}  {spent:.1f} s  {'#' * 70}")


class Stock(App[None]):
    """What one would build first."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._path = log
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Header(show_clock=True)
        yield DataTable()
        yield ProgressBar(total=64)
        yield RichLog()
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("phase", "elapsed", "progress", "ranks")
        for number in range(12):
            table.add_row(f"phase {number}", "0 s", "0/64", "0/2", key=str(number))
        self.set_interval(1 / HZ, self.tick)

    def tick(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        rich_log = self.query_one(RichLog)
        for line in data.decode("utf-8", "replace").splitlines():
            rich_log.write(line)
        table = self.query_one(DataTable)
        column = list(table.columns)[1]
        table.update_cell("4", column, f"{time.monotonic():.1f} s")
        self.query_one(ProgressBar).update(progress=time.monotonic() % 64)


if __name__ == "__main__":
    name, log = sys.argv[1], Path(sys.argv[2])
    rivals = {
        "one": One, "clocks": lambda: Rows(3, 1.0), "rows": lambda: Rows(ROWS, HZ), "slow": lambda: Rows(ROWS, 1.0),
        "stock": lambda: Stock(log),
    }  # fmt: skip
    rivals[name]().run()
