"""Finds what is shipped along and loads it: packs (the user's and those given too), and the demo recording.

TOML is read by pure Python, and a pack is large: 75 ms of the 300 that ``status`` may take. So what the parser gave
is kept as JSON in ``$XDG_CACHE_HOME/phasetrack``, under the file's size and time and our version. It is data, and goes
through the same validation; where it cannot be written, is not ours, or does not fit, the TOML is read.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasetrack import __version__
from phasetrack.core.patterns import merge, parse, read_table
from phasetrack.edges.folders import cache_folder, config_folder
from phasetrack.edges.outlet import moved_there
from phasetrack.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from phasetrack.core.model import PatternSet

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped() -> list[Path]:
    """The packs of this installation: in the wheel, or where the checkout keeps them."""
    inside = _PACKAGE / "_patterns"
    folder = inside if inside.is_dir() else _PACKAGE.parent / "patterns"
    return sorted(folder.glob("*.toml"))


def demo_log() -> Path:
    """The log of the demo recording; its cast lies beside it."""
    inside = _PACKAGE / "_demo"
    folder = inside if inside.is_dir() else _PACKAGE.parent / "fixtures" / "07b-tp2-eagle3-pipe"
    return folder / "server.log"


def of_user() -> list[Path]:
    """Packs in ``$XDG_CONFIG_HOME/phasetrack/patterns``."""
    return sorted((config_folder() / "patterns").glob("*.toml"))


def given(paths: Iterable[Path]) -> list[Path]:
    """Pack files named on the command line; a folder stands for the packs in it.

    Raises:
        PatternError: a path holds no pack.
    """
    found: list[Path] = []
    for path in paths:
        files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise PatternError(str(path), "", "no pattern file here", "give a .toml file or a folder of them")
        found += files
    return found


def load(extra: Iterable[Path] = ()) -> PatternSet:
    """Load every pack: shipped, the user's, and ``extra``.

    Raises:
        PatternError: a file is wrong in form or cannot be read; the message names it.
    """
    packs = [_read(path, trusted=True) for path in shipped()]
    packs += [_read(path, trusted=False) for path in [*of_user(), *given(extra)]]
    return merge(packs)


def _read(path: Path, *, trusted: bool) -> PatternSet:
    try:
        facts = path.stat()
        shelf, key = _shelf(path), [__version__, facts.st_size, facts.st_mtime_ns]
        table = _kept(shelf, key)
        if table is None:
            table = _parsed(path)
            _keep(shelf, key, table)
    except OSError as fault:
        raise PatternError(str(path), "", f"cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise PatternError(str(path), "", "is not UTF-8 text") from None
    return read_table(table, str(path), trusted=trusted)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except RecursionError:
        raise PatternError(str(path), "", "is nested too deeply") from None


def _shelf(path: Path) -> Path:
    return cache_folder() / f"pack-{zlib.crc32(os.fsencode(path.resolve())):08x}.json"


def _kept(shelf: Path, key: list[object]) -> dict[str, Any] | None:
    """What was kept of a pack, if it is this very one's and nobody else could have put it there."""
    try:
        with shelf.open("rb") as stored:
            facts = os.fstat(stored.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                return None
            found = json.load(stored)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("key") != key or not isinstance(found.get("table"), dict):
        return None
    table: dict[str, Any] = found["table"]
    return table


def _keep(shelf: Path, key: list[object], table: Mapping[str, Any]) -> None:
    """Keep a pack for the next time; where that fails it is only slower."""
    try:
        text = json.dumps({"key": key, "table": table})
        shelf.parent.mkdir(parents=True, exist_ok=True)
        with moved_there(str(shelf)) as fresh:
            os.fchmod(fresh.fileno(), 0o600)
            fresh.write(text.encode())
    except (OSError, TypeError, ValueError, RecursionError):
        return
