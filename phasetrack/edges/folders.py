"""Our folders in a user's home, where the XDG base directory specification has them. None of them need exist."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """``$XDG_STATE_HOME/phasetrack``: what later runs learn from."""
    return _ours("XDG_STATE_HOME", "~/.local/state")


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/phasetrack``: what can be made anew."""
    return _ours("XDG_CACHE_HOME", "~/.cache")


def config_folder() -> Path:
    """``$XDG_CONFIG_HOME/phasetrack``: what the user wrote."""
    return _ours("XDG_CONFIG_HOME", "~/.config")


def _ours(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or usual).expanduser() / "phasetrack"
