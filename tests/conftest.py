"""What holds for every test: it reads and writes nothing of whoever runs it, nor of another test."""

from __future__ import annotations

import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Each run checks the same examples: what is red is red again. To look further: pytest --hypothesis-profile default.
settings.load_profile("ci")

# Settings of a person, a terminal or a job that would change what is said.
_PERSONAL = (
    "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "SSH_TTY",
    "SSH_CONNECTION", "CUDA_VISIBLE_DEVICES", "PHASETRACK_DEBUG",
)  # fmt: skip
# A job in the background, or under nohup, is started to ignore these, and so would be all that it starts.
_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
_numbers = count(1)


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home without settings; processes that a test starts inherit it, and are known by it."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(home))
        for name in _PERSONAL:
            environment.delenv(name, raising=False)
        yield home


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """What a test starts hears every signal; a handler, unlike being deaf, is not inherited."""
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)  # noqa: ARG005 - the job itself goes on ignoring it


@pytest.fixture(autouse=True)
def state_home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own: no test knows the history of another."""
    home = own_home / f"state{next(_numbers)}"
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home
