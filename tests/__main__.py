"""The one check: ``python -m tests``. Exit code 0 only if everything holds.

Runs every check to its end even where one fails, so that one run tells all; prints the output of what failed,
and last of all one line a check.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

# From the quickest to answer to the slowest. Many tests wait for a process or a clock: three at a time on two cores.
CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("ruff", "format", "--check", "--quiet", ".")),
    ("lint", ("ruff", "check", "--output-format", "concise", "--quiet", ".")),
    ("layers", ("lint-imports",)),
    ("types", ("mypy",)),
    ("patterns", ("phasetrack", "patterns", "check")),
    ("tests", ("pytest", "-n", "3", "--dist", "worksteal", "--quiet", "--no-header", "--color=no")),
)


class Result(NamedTuple):
    """How one check ended."""

    name: str
    code: int
    took_s: float
    tail: str  # its last line, which says how much was checked


def run(name: str, command: tuple[str, ...]) -> Result:
    """Run one check; its output is shown only if it failed."""
    print(f"{name} ...", flush=True)
    begin = time.monotonic()
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        print(done.stdout.rstrip(), flush=True)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return Result(name, done.returncode, time.monotonic() - begin, lines[-1].strip("= ")[:80] if lines else "")


def main() -> int:
    """Run all checks; answer the exit code."""
    results = [run(name, command) for name, command in CHECKS]
    print()
    for result in results:
        verdict = "FAILED" if result.code else "ok"
        print(f"{verdict:<6} {result.name:<9} {result.took_s:6.1f} s  {result.tail}")
    failed = [result.name for result in results if result.code]
    print(f"\n{len(failed)} of {len(results)} failed: {', '.join(failed)}" if failed else "\nAll checks passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
