"""The README's recipes, as printed: each in a real shell, beside a fake server that ``python`` starts.

tmux, nohup and pipes are the real ones. What a machine for tests lacks (a second host, Docker's daemon, a cluster,
Slurm) is stood for by a script of the same name that gives a command the same ends: no terminal, an own environment,
a pipe that stays open.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.e2e.command import home
from tests.e2e.servers import PATIENCE_S, eventually, fake_command
from tests.talk import recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAUNCH = "python -m sglang.launch_server --model-path M"
FAILED = recording("06a1-mem-fraction-too-small")

# What stands for programs of other machines; $1 and so on are what the recipe gave.
_STAND_INS = {
    "ssh": 'shift; exec env -i HOME="$HOME" PATH="$PATH" sh -c "$*"',
    "docker": "exec tail -c +1 -F server.log",
    "kubectl": """case $1 in
        logs) exec tail -c +1 -F server.log;;
        exec) shift 3; exec env -i PATH="$PATH" "$@" < /dev/null;;
    esac""",
    "sbatch": 'SLURM_JOB_ID=17 setsid bash "$1" > job-17.log 2>&1 < /dev/null &',
}


class Shell:
    """A user's shell in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        self.env = home(folder) | {"PATH": f"{self._bin}:{os.environ['PATH']}", "TMUX_TMPDIR": str(folder)}
        self.env.pop("TMUX", None)
        self._program("phasetrack", f'exec {shlex.quote(sys.executable)} -m phasetrack "$@"')
        self.server()
        for name, does in _STAND_INS.items():
            self._program(name, does)

    def server(self, *options: str) -> None:
        """What ``python -m sglang.launch_server`` does from now on."""
        self._program("python", f"exec {shlex.join([*fake_command(), *options])}")

    def _program(self, name: str, does: str) -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/bash\n{does}\n")
        path.chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, as a job without a terminal."""
        return subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    def leftovers(self) -> Iterator[psutil.Process]:
        """What was started here and still runs."""
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.cwd() == str(self.folder):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue


@pytest.fixture
def shell(tmp_path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    for process in found.leftovers():
        process.kill()


def test_a_server_under_nohup_is_waited_for_over_ssh(shell):
    done = shell.run(f"""
        ssh gpu 'nohup {LAUNCH} > server.log 2>&1 < /dev/null &'
        ssh gpu phasetrack wait server.log --timeout 45m
    """)
    assert "READY" in done.stdout.splitlines()[-1], done


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_server_in_tmux_has_its_screen_in_the_pane_below(shell):
    shell.server("--until", "Load weight begin", "--go", str(shell.folder / "go"))
    done = shell.run(f"""
        tmux new-session -d -x 100 -y 50 -s sglang '{LAUNCH} 2>&1 | tee server.log'
        tmux split-window -t sglang 'phasetrack tail server.log'
    """)
    assert done.returncode == 0, done
    below = "tmux capture-pane -p -t sglang:0.1"
    try:
        eventually(lambda: "Target weights" in shell.run(below).stdout, "the screen")
        (shell.folder / "go").touch()
        so_far = "tmux capture-pane -p -J -S - -t sglang:0.0 | phasetrack report - --format json"
        eventually(lambda: json.loads(shell.run(so_far).stdout)["outcome"] == "ready", "ready")
    finally:
        shell.run("tmux kill-server")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_server_that_runs_in_tmux_gets_a_log_from_now_on(shell):
    shell.server("--until", "Load weight begin", "--go", str(shell.folder / "go"))
    shell.run(f"tmux new-session -d -x 200 -y 50 -s sglang '{LAUNCH}'")
    try:
        eventually(lambda: "Load weight begin" in shell.run("tmux capture-pane -p -t sglang").stdout)
        done = shell.run("""
            tmux pipe-pane -t sglang 'cat >> server.log'
            touch go
            phasetrack wait server.log --timeout 45m
        """)
        assert done.returncode == 0, done
    finally:
        shell.run("tmux kill-server")


@pytest.mark.parametrize("logs", ["docker logs -f sglang 2>&1", "kubectl logs -f sglang-0"])
def test_a_container_that_is_ready_and_then_quiet_ends_the_wait(shell, logs):
    done = shell.run(f"""
        {LAUNCH} > server.log 2>&1 &
        phasetrack wait <({logs}) --timeout 45m
    """)
    assert (done.returncode, done.stdout[:5]) == (0, "READY"), done


def test_a_container_is_told_through_a_pipe_over_a_rotation(shell):
    log = recording("01-plain-file")
    cut = log.index(b"Load weight end")
    cut = log.rindex(b"\n", 0, cut) + 1
    (shell.folder / "server.log").write_bytes(log[:cut])
    (shell.folder / "rest.log").write_bytes(log[cut:])
    done = shell.run("""
        docker logs -f sglang 2>&1 | phasetrack tail - > told 2> said &
        until grep -q 'Target weights' told; do sleep 0.05; done
        mv server.log server.log.1 && mv rest.log server.log
        until grep -q READY told; do sleep 0.05; done
    """)
    assert done.returncode == 0, done


def test_a_probe_inside_a_container_needs_neither_home_nor_terminal(shell):
    (shell.folder / "server.log").write_bytes(FAILED[: FAILED.index(b"Load weight end")])
    ask = "kubectl exec sglang-0 -- phasetrack status"
    assert shell.run(f"{ask} server.log").stdout.startswith("PROGRESSING")
    assert shell.run(f"{ask} --startup-probe server.log").returncode == 0
    (shell.folder / "server.log").write_bytes(FAILED)
    assert shell.run(f"{ask} --startup-probe server.log").returncode == 1


_JOB = f"""#!/bin/bash
#SBATCH --output=job-%j.log
{LAUNCH} > server-$SLURM_JOB_ID.log 2>&1 &
trap 'kill %1' EXIT
phasetrack wait server-$SLURM_JOB_ID.log --timeout 45m || exit
echo benchmark
"""


def test_a_batch_job_goes_on_when_its_server_is_ready(shell):
    (shell.folder / "job.sh").write_text(_JOB)
    shell.run("sbatch job.sh")
    out = shell.folder / "job-17.log"
    eventually(lambda: out.exists() and "benchmark" in out.read_text(), "the benchmark")
    assert "READY" in out.read_text()


@pytest.mark.parametrize(("log", "code"), [("01-plain-file", 0), ("06a1-mem-fraction-too-small", 1)])
def test_a_ci_job_passes_or_leaves_a_report(shell, log, code):
    (shell.folder / "said.log").write_bytes(recording(log))
    launch = LAUNCH if code == 0 else "cat said.log"
    done = shell.run(f"""
        {launch} > server.log 2>&1 &
        phasetrack wait server.log --timeout 45m || {{
            code=$?; phasetrack report server.log --format md >> summary.md; exit $code; }}
    """)
    assert done.returncode == code, done
    assert code == 0 or "failed" in (shell.folder / "summary.md").read_text().lower()


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_an_agent_looks_again_when_it_is_worth_it(shell):
    shell.server("--until", "Load weight begin", "--go", str(shell.folder / "go"))
    done = shell.run(f"""
        {LAUNCH} > server.log 2>&1 &
        until [ -s server.log ]; do sleep 0.05; done
        sleep() {{ echo "again in $1"; touch go; until grep -q 'to roll' server.log; do command sleep 0.05; done; }}
        until phasetrack status server.log --json > status.json; do
            [ $? -eq 3 ] || break
            sleep "$(jq .next_check_s status.json)"
        done
    """)
    again = done.stdout.split()
    assert again[:2] == ["again", "in"], done
    assert float(again[2]) > 0
    assert json.loads((shell.folder / "status.json").read_text())["outcome"] == "ready"
