"""The installed command, as a shell would run it, in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PHASETRACK = [sys.executable, "-m", "phasetrack"]


def home(folder: Path) -> dict[str, str]:
    """An environment that keeps everything of a run in one folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "NO_COLOR", "COLUMNS", "LINES"))}
    names = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME")
    return kept | {name: str(folder / name.lower()) for name in names} | {"LC_ALL": "C.UTF-8"}


def phasetrack(*arguments: str | Path, folder: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    done = subprocess.run(
        [*PHASETRACK, *map(str, arguments)],
        env=home(folder),
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback (most recent call last)" not in err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)
