"""A start that pays only for what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.command import home, phasetrack
from tests.talk import FIXTURES

LOG = str(FIXTURES / "01-plain-file" / "server.log")
# What turns texts into values, screens, and what looks outside a log.
HEAVY = {"pydantic", "rich", "textual", "psutil", "watchfiles", "regex"}
TELL = """
import sys
from phasetrack.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["status", "--log-only", LOG],
        ["report", LOG],
        ["report", "--format", "json", LOG],
        ["report", "--boot", "1", LOG],
    ],
)
def test_a_short_command_imports_nothing_heavy(tmp_path, arguments):
    done = subprocess.run(
        [sys.executable, "-c", TELL, *arguments], env=home(tmp_path), capture_output=True, text=True, check=False
    )
    allowed = {"pydantic"} if "--boot" in arguments else set()  # a number is made of a text
    assert HEAVY & set(done.stderr.split()) <= allowed, done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["status"], "Missing argument 'LOG'"),
        (["status", LOG, "--at-line", "x"], "Invalid value for '--at-line'"),
        (["status", LOG, "--at-line", "-1"], "Invalid value for '--at-line'"),
        (["status", LOG, "--probe", "x"], "Invalid value for '--probe'"),
        (["tail", "--output"], "--output"),
        (["report", "--format", "JSON", LOG], "Invalid value for '--format'"),
    ],
)
def test_what_is_missing_or_wrong_is_still_refused(tmp_path, arguments, words):
    done = phasetrack(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
