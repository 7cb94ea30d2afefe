"""Finds what is shipped along and loads it: packs (the user's and those given too), and the demo recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.core.patterns import load_pack, merge
from phasetrack.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    home = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return sorted((Path(home) / "phasetrack" / "patterns").glob("*.toml"))


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
        text = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise PatternError(str(path), "", f"cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise PatternError(str(path), "", "is not UTF-8 text") from None
    return load_pack(text, str(path), trusted=trusted)
