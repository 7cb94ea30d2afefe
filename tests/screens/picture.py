"""A picture of the real screen: the app without a terminal, fed by hand, exported as SVG by Textual itself.

The SVG is read back into rows of text and runs of style, which stay the same from one release of Textual and
Rich to the next, and can be read in a diff.
"""

from __future__ import annotations

import asyncio
import re
import threading
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from phasetrack.views.tui import prepare
from phasetrack.views.tui.feed import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.model import Snapshot

_SVG = "{http://www.w3.org/2000/svg}"
# What Rich and Textual make of the terminal's own colours when they export.
_NAMES = {
    "#868887": "dim", "#cc555a": "red", "#98a84b": "green", "#fdfdc5": "white", "#4b4e55": "black", "#68a0b3": "cyan",
    "#d0b344": "yellow", "#292929": "back", "#c5c8c6": "plain",
}  # fmt: skip


class Bytes:
    """A log in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def begin(self) -> int:
        return 0

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, count: int) -> bytes:
        return self.data[offset : offset + count]


class Fed:
    """A feed that tells one snapshot, and then nothing more."""

    notice = ""
    replay = None
    pinned = None

    def __init__(self, known: Snapshot, data: bytes = b"", unread: int | None = None) -> None:
        self.known: Snapshot | None = known
        self.pages = Bytes(data)
        self.unread_bytes = unread
        self._closed = threading.Event()

    def next(self) -> Snapshot | None:
        known, self.known = self.known, None
        if known is None:
            self._closed.wait(0.05)
        return known

    def wish(self, wish: object) -> None:
        """Nothing can be wished of what stands still."""

    def close(self) -> None:
        self._closed.set()


def svg(feed: Fed, columns: int, rows: int, keys: Sequence[str] = (), *, path: str = "server.log") -> str:
    """The screen as Textual exports it, after some keys."""
    return asyncio.run(_svg(feed, columns, rows, keys, path))


async def _svg(feed: Fed, columns: int, rows: int, keys: Sequence[str], path: str) -> str:
    prepare()
    from phasetrack.views.tui.app import Screen  # noqa: PLC0415 - after the switches

    known = feed.known
    app = Screen(lambda: feed, Options(path))
    async with app.run_test(size=(columns, rows)) as pilot:
        while app.desk.news.known is not known:
            await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        picture = app.export_screenshot(title=path)
    app.spool.close()
    return picture


def read(picture: str) -> tuple[str, str]:
    """An exported SVG as rows of text, and what of them is not in the default style."""
    root = ET.fromstring(picture)  # noqa: S314 - made here
    looks = _looks("".join(root.itertext()))
    cells: dict[int, list[tuple[int, str, str]]] = {}
    for node in root.iter(f"{_SVG}text"):
        line = re.search(r"line-(\d+)", node.get("clip-path", ""))
        if line is not None:
            column = round(float(node.get("x", "0")) / 12.2)
            text = (node.text or "").replace("\xa0", " ")
            cells.setdefault(int(line[1]), []).append((column, text, looks.get(node.get("class", ""), "")))
    backs = _backgrounds(root)
    rows, styles = [], []
    for y in range(max(cells, default=-1) + 1):
        row = ""
        for column, text, look in sorted(cells.get(y, [])):
            row = row.ljust(column) + text
            look_here = " ".join(part for part in (look, backs.get((y, column), "")) if part)
            if look_here and text.strip():
                styles.append(f"{y:>3} {column:>3} {look_here:<24} {text.strip()[:48]}")
        rows.append(row.rstrip())
    return "\n".join(rows), "\n".join(styles)


def _looks(css: str) -> dict[str, str]:
    """Class to look: its colour where it is not the default one, and its attributes."""
    found = {}
    plain = _default(css)
    for name, body in re.findall(r"\.(terminal-\d+-r\d+|terminal-r\d+|[\w-]*-r\d+) \{([^}]*)\}", css):
        colour = re.search(r"fill: (#\w+)", body)
        words = [_NAMES.get(colour[1], colour[1])] if colour is not None and colour[1] != plain else []
        words += [word for word in ("bold", "underline") if word in body]
        words += ["dim"] if "opacity" in body else []
        found[name] = " ".join(words)
    return found


def _default(css: str) -> str:
    colours = re.findall(r"fill: (#\w+)", css)
    return max(set(colours), key=colours.count) if colours else ""


def _backgrounds(root: ET.Element) -> dict[tuple[int, int], str]:
    found = {}
    for node in root.iter(f"{_SVG}rect"):
        if node.get("shape-rendering") == "crispEdges":
            x, y = float(node.get("x", "0")), float(node.get("y", "0"))
            fill = node.get("fill", "")
            found[round((y - 1.5) / 24.4), round(x / 12.2)] = f"on {_NAMES.get(fill, fill)}"
    return found
