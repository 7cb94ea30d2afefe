"""Benchmarks against named peers: ``python -m tests.bench [NAME…] [--mib 1024] [--rounds 5]``.

Each makes its own inputs in a temporary folder, runs phasetrack and its peers in turn, and prints medians and ratios.
Peers that are not installed (ripgrep, lnav) are left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import live, logs
from tests.bench.literals import literals
from tests.bench.measure import PHASETRACK, in_turn, table, verdict

if TYPE_CHECKING:
    from argparse import Namespace


def a_gigabyte(folder: Path, options: Namespace) -> None:
    """Report on a gigabyte of serving lines behind five boots, beside ripgrep with the pack's literals."""
    log = logs.served(folder / "served.log", options.mib * logs.MIB)
    commands = {"phasetrack report": [*PHASETRACK, "report", "--format", "json", str(log)]}
    if shutil.which("rg"):
        words = folder / "literals"
        words.write_text("\n".join(literals()) + "\n")
        commands["rg -a -f literals"] = ["rg", "-a", "-f", str(words), str(log)]
    found = in_turn(commands, options.rounds)
    table(f"(a) report --format json on {options.mib} MiB", found, list(commands)[-1])
    if "rg -a -f literals" in found:
        verdict("CPU beside rg", found["phasetrack report"].median_s / found["rg -a -f literals"].median_s, 1.5)
    verdict("MiB of memory", max(found["phasetrack report"].rss_mib), 64)
    _status(folder, log, options)


def _status(folder: Path, log: Path, options: Namespace) -> None:
    empty = folder / "empty.log"
    empty.touch()
    found = in_turn({
        "status": [*PHASETRACK, "status", "--log-only", str(log)],
        "status on an empty log": [*PHASETRACK, "status", "--log-only", str(empty)],
    }, options.rounds)  # fmt: skip
    table(f"(d) status on the same {options.mib} MiB", found, "status on an empty log")
    more_s = found["status"].median_s - found["status on an empty log"].median_s
    verdict("s CPU more for each GiB", more_s * 1024 / options.mib, 1.0)


def a_long_line(folder: Path, options: Namespace) -> None:
    """A bar of 20 MiB on one line, beside lnav."""
    log = logs.one_long_line(folder / "line.log")
    _beside_lnav("(b) 64 MiB with one line of 20 MiB", log, options)


def many_boots(folder: Path, options: Namespace) -> None:
    """20,000 boots in one file, beside lnav; and memory that does not grow with them."""
    log = logs.many_boots(folder / "boots.log")
    few = logs.many_boots(folder / "few.log", boots=2000)
    _beside_lnav("(c) 20,000 boots", log, options)
    found = in_turn({"2,000 boots": _report(few), "20,000 boots": _report(log)}, 1)
    each = (max(found["20,000 boots"].rss_mib) - max(found["2,000 boots"].rss_mib)) * 1024 / 18000
    verdict("KiB of memory for each boot", each, 1.0)


def _report(log: Path) -> list[str]:
    return [*PHASETRACK, "report", "--format", "json", str(log)]


def _beside_lnav(title: str, log: Path, options: Namespace) -> None:
    commands = {"phasetrack report": _report(log)}
    if shutil.which("lnav"):
        commands["lnav -n"] = ["lnav", "-n", str(log)]
    found = in_turn(commands, options.rounds)
    table(title, found, list(commands)[-1])
    if "lnav -n" in found:
        verdict("CPU beside lnav", found["phasetrack report"].median_s / found["lnav -n"].median_s, 1.0)


def following(folder: Path, options: Namespace) -> None:
    """Eight logs followed in one loop: how soon an appended line is told, and what waiting costs."""
    delays_s, idle = live.follow_many(folder, logs_count=8, appends=40 * options.rounds, idle_s=10.0)
    print("\n(e) 8 logs followed in one loop")
    verdict("ms from append to event, 95 %", 1000 * delays_s[int(0.95 * len(delays_s))], 120)
    print(f"     median {1000 * delays_s[len(delays_s) // 2]:.0f} ms, worst {1000 * delays_s[-1]:.0f} ms")
    verdict("% of a core while all are silent", 100 * idle, 0.5)


def starting(folder: Path, options: Namespace) -> None:
    """The smallest commands beside an empty typer command."""
    empty = folder / "empty_typer.py"
    empty.write_text("import typer\napp = typer.Typer()\n@app.command()\ndef main(): ...\napp()\n")
    log = folder / "small.log"
    log.write_bytes((Path(__file__).parent.parent.parent / "fixtures" / "01-plain-file" / "server.log").read_bytes())
    found = in_turn({
        "phasetrack --version": [*PHASETRACK, "--version"],
        "phasetrack status": [*PHASETRACK, "status", "--log-only", str(log)],
        "an empty typer command": [sys.executable, str(empty)],
    }, 4 * options.rounds)  # fmt: skip
    table("(f) start-up", found, "an empty typer command")
    base = found["an empty typer command"].median_s
    verdict("--version beside typer", found["phasetrack --version"].median_s / base, 1.3)
    verdict("status beside typer", found["phasetrack status"].median_s / base, 1.6)


BENCHES = {
    "gigabyte": a_gigabyte, "line": a_long_line, "boots": many_boots, "follow": following, "start": starting
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="which; all of them unless given")
    parser.add_argument("--mib", type=int, default=1024, help="size of the largest input")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in options.names or BENCHES:
        with tempfile.TemporaryDirectory() as folder:
            BENCHES[name](Path(folder), options)


main()
