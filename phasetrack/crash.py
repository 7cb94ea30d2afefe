"""A report of an error of ours, written to a file: a terminal that was just given back is no place for it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack import __version__
from phasetrack.core.redact import redact
from phasetrack.edges.folders import state_folder

if TYPE_CHECKING:
    from phasetrack.core.model import Snapshot

_NAMED = ("textual", "rich", "typer", "psutil", "regex", "watchfiles")
_SURROUNDINGS = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL", "NO_COLOR", "SSH_CONNECTION", "TMUX")


def write_report(fault: BaseException, known: Snapshot | None) -> Path | None:
    """Write what broke, where, and what was known of the log; None where nothing can be written.

    Nothing is sent. The file holds no values of variables, and secrets are masked as everywhere.
    """
    text = redact(report_text(fault, known))
    for folder in (state_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder, text=True)
            with open(number, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a descriptor
                file.write(text)
        except OSError:
            continue
        return Path(name)
    return None


def report_text(fault: BaseException, known: Snapshot | None) -> str:
    """What the file holds."""
    from phasetrack.views.jsonl import dumps, snapshot_json

    seen = [f"{name} {_version(name)}" for name in _NAMED]
    around = [f"{name}={os.environ[name]}" for name in _SURROUNDINGS if name in os.environ]
    parts = [
        f"phasetrack {__version__}, Python {platform.python_version()}, {platform.platform()}",
        ", ".join(seen),
        ", ".join(["ssh" if item.startswith("SSH_CONNECTION") else item for item in around]),
        " ".join(sys.argv),
        "",
        "".join(traceback.format_exception(fault)),
    ]
    if known is not None:
        parts.append(dumps(snapshot_json(known), indent=1))
    return "\n".join(parts) + "\n"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
