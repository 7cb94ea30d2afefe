"""A newcomer: a fresh environment with nothing but the wheel and what it declares, and the README to go by.

How a README says what a newcomer may run:

- Fenced blocks of ``sh`` hold commands, one a line (``\\`` goes on), with comments; ``console`` blocks hold commands
  behind ``$ `` and, below them, output that is not looked at.
- A comment in front of a block, ``<!-- needs: docker -->``, names what a machine may lack. Its commands are not run:
  their syntax is checked, and every ``phasetrack`` in them against the options that there are.
- Commands run in a folder with ``server.log`` (two boots, the second is ready), ``old.log`` and ``new.log`` (two
  starts), ``start.cast``, ``server.log.gz``, ``node0.log`` and ``node1.log``, ``logs/``, ``mine.toml`` (the README's
  own), ``bench.sh``, ``serve.sh``; what one command writes, the next ones find.
- A command that follows a log for ever is ended by Ctrl-C once it has said something.
"""

from __future__ import annotations

import gzip
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import venv
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from tests.talk import FIXTURES, ROOT, recording

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^(?P=ticks)\s*$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"<!--\s*needs:\s*(?P<what>[^>]*?)\s*-->\s*\Z")
_INLINE = re.compile(r"(?<!`)`(phasetrack [^`\n]+)`(?!`)")
_FOLLOWS = re.compile(r"\bphasetrack (?:tail|run)\b|\btail -f\b| --new\b")
# What status, wait and tail say of a log by their exit code (README, "Exit codes").
_ANSWERS = {0, 3, 5}
_ANSWERING = re.compile(r"phasetrack (?:status|wait|tail|run)\b")
PATIENCE_S = 120.0
# What follows a log for ever is done with what there is when it has been silent, and all asleep, for so long.
_STILL_S, _LOOK_S = 1.5, 0.1


README = (ROOT / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Command:
    """One command of the README."""

    text: str
    needs: str = ""


def commands_of(text: str) -> list[Command]:
    """All commands of fenced blocks, in order."""
    found = []
    for block in _FENCE.finditer(text):
        if block["kind"] in {"sh", "bash", "shell", "console"}:
            needs = _NEEDS.search(text, 0, block.start())
            lines = list(_lines(block["body"], console=block["kind"] == "console"))
            found += [Command(line, needs["what"] if needs else "") for line in lines]
    return found


def blocks_of(text: str, kind: str) -> list[str]:
    """The bodies of the fenced blocks of a kind."""
    return [block["body"] for block in _FENCE.finditer(text) if block["kind"] == kind]


def _lines(body: str, *, console: bool) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", body).splitlines()
    if console:
        return [line[2:] for line in joined if line.startswith("$ ")]
    return [line.strip() for line in joined if line.strip() and not line.lstrip().startswith("#")]


def mentions_of(text: str) -> list[str]:
    """Commands named in running text."""
    return _INLINE.findall(_FENCE.sub("", text))


@dataclass
class Newcomer:
    """Somebody with a fresh environment in a folder of their own."""

    folder: Path
    python: Path
    _helps: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "PYTHON", "VIRTUAL_ENV"))}
        path = f"{self.python.parent}:{os.environ['PATH']}"
        return kept | {"HOME": str(self.folder), "PATH": path, "LC_ALL": "C.UTF-8", "PIP_NO_INDEX": "1"}

    def run(self, command: str) -> str:
        """Run it as printed; answer what is wrong, or nothing."""
        started = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        said = _listen(started, follows=_FOLLOWS.search(command) is not None)
        code = started.returncode
        allowed = (
            {*_ANSWERS, 130, -signal.SIGINT} if re.search(r"phasetrack (?:status|wait|tail|run)", command) else {0}
        )
        return "" if code in allowed and "Traceback" not in said else f"{command}\n  gave {code}: {said[-800:]}"

    def check(self, command: str) -> str:
        """Check a command without running it: its syntax, and every phasetrack in it."""
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
        if done.returncode:
            return f"{command}\n  is no shell: {done.stderr.decode()[-300:]}"
        plain = re.sub(r"<\([^)]*\)", "FILE", command)  # another command's output
        calls = re.findall(r"\bphasetrack ((?:[a-z-]+ ?)*[^|;&)\n]*)", plain)
        return "\n".join(filter(None, (self._check_call(call, command) for call in calls)))

    def _check_call(self, call: str, command: str) -> str:
        words = call.split(" -- ", maxsplit=1)[0].split()
        name = words[0] if words else ""
        if name.startswith("-") or not name:
            return ""
        group = name in {"history", "patterns"} and len(words) > 1
        path = f"{name} {words[1]}" if group else name
        said = self._help(path)
        lacking = [w for w in words if re.match(r"--?[a-z]", w) and w.split("=")[0] not in re.split(r"[\s,/]+", said)]
        return (
            f"{command}\n  '{path}' has no {', '.join(lacking)}"
            if lacking
            else ""
            if said
            else f"{command}\n  no '{path}'"
        )

    def _help(self, path: str) -> str:
        if path not in self._helps:
            done = subprocess.run(
                [self.python.with_name("phasetrack"), *path.split(), "--help"],
                env=self.environment, capture_output=True, check=False,
            )  # fmt: skip
            self._helps[path] = done.stdout.decode() if done.returncode == 0 else ""
        return self._helps[path]


def _listen(started: subprocess.Popen[bytes], *, follows: bool) -> str:
    """Hear a command out; one that follows is told to end when it has nothing more to say."""
    assert started.stdout is not None
    said, end = b"", time.monotonic() + PATIENCE_S
    lively_s = time.monotonic()
    while True:
        now = time.monotonic()
        if select.select([started.stdout], [], [], _LOOK_S if follows else max(end - now, 0))[0]:
            data = os.read(started.stdout.fileno(), 65536)
            if not data:
                break
            said, lively_s = said + data, now
        elif now >= end:
            os.killpg(started.pid, signal.SIGKILL)
            end += PATIENCE_S
        elif follows and not _sleeps(started.pid):
            lively_s = now
        elif follows and now - lively_s > _STILL_S:
            os.killpg(started.pid, signal.SIGINT)
            follows = False
    started.wait()
    started.stdout.close()
    return said.decode("utf-8", "replace")


def _sleeps(pid: int) -> bool:
    """Whether nothing of a command is at work, or wants to be: a busy machine is no silence."""
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        return all(process.status() == psutil.STATUS_SLEEPING for process in [root, *root.children(recursive=True)])
    return False


# --- the environment --------------------------------------------------------------------------------


def build_wheel(folder: Path) -> Path:
    """Build the wheel as a release would."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("phasetrack-*.whl"))


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """Make a virtual environment that holds the wheel and its declared dependencies, and nothing else.

    The dependencies are links to this environment's own: nothing is fetched.
    """
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "-q", "--python", python, "install", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, capture_output=True)
    site = next((folder / "lib").glob("python3*")) / "site-packages"
    for name in sorted(_closure("phasetrack", set())):
        _link(name, site)
    return python


def _closure(name: str, seen: set[str]) -> set[str]:
    """What a distribution declares to need, and what that needs."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        key = wanted.name.lower().replace("_", "-")
        if key not in seen and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            seen.add(key)
            _closure(wanted.name, seen)
    return seen


def _link(name: str, site: Path) -> None:
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__"}}:
        target = site / top
        if not target.exists():
            target.symlink_to(Path(str(found.locate_file(top))))


def furnish(folder: Path) -> None:
    """Put into a folder what the README's commands may name."""
    ready = recording("01-plain-file")
    ready = ready[: ready.index(b"\n", ready.index(b"ready to roll")) + 1]
    cold, warm = recording("03a-eagle3-file-coldjit"), recording("03b-eagle3-pipe")
    logs = {"server.log": cold + ready, "old.log": cold, "new.log": warm}
    logs |= {"node0.log": recording("07a-tp2-file"), "node1.log": recording("07b-tp2-eagle3-pipe")}
    for name, data in logs.items():
        (folder / name).write_bytes(data)
    (folder / "server.log.gz").write_bytes(gzip.compress(cold + ready))
    shutil.copy(FIXTURES / "07b-tp2-eagle3-pipe" / "server.cast", folder / "start.cast")
    (folder / "mine.toml").write_text("".join(blocks_of(README, "toml")))
    (folder / "logs").mkdir()
    (folder / "logs" / "yesterday.log").write_bytes(recording("16b-plain-file"))
    for script in ("bench.sh", "serve.sh"):
        (folder / script).write_text("#!/bin/sh\necho done\n")
        (folder / script).chmod(0o755)
