"""The history with real processes: many at once, killed, on a full disk, in a home that cannot be written."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from phasetrack.core.past import remembered
from phasetrack.edges.history import Store
from tests.e2e.command import inside
from tests.launches import BEGAN_S, Launch, Took
from tests.talk import FIXTURES, ROOT, hear, recording

PHASETRACK = str(Path(sys.executable).with_name("phasetrack"))
PLAIN, EAGLE = FIXTURES / "01-plain-file" / "server.log", FIXTURES / "03a-eagle3-file-coldjit" / "server.log"

# Writes boots for as long as it lives, and tells each one only after it was committed.
WRITER = """
import sys
from dataclasses import replace
from tests.talk import hear, recording
from phasetrack.core.past import remembered
from phasetrack.edges.history import Store
first, many, store = int(sys.argv[1]), int(sys.argv[2]), Store()
boot = remembered(hear(recording("03a-eagle3-file-coldjit")).snapshot)
print("go", flush=True)
for k in range(first, first + many):
    store.remember([replace(boot, uid=f"{k:032d}", past=replace(boot.past, began_s=1.7e9 + k))], now_s=1.7e9)
    print(f"{k:032d}", flush=True)
"""


def phasetrack(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [PHASETRACK, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]


def writer(first: int, many: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(first), str(many)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def uids() -> set[str]:
    return {boot.uid for boot in Store().boots()}


def is_whole() -> bool:
    with sqlite3.connect(Store().path) as base:
        return base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- writers ----------------------------------------------------------------------------------------


def test_eight_processes_record_at_once_and_nothing_is_lost():
    with ExitStack() as running:
        writers = [running.enter_context(writer(100 * k, 12)) for k in range(8)]
        said = [process.communicate(timeout=120)[0].split() for process in writers]
    assert [process.returncode for process in writers] == [0] * 8
    told = {uid for uids in said for uid in uids if uid != "go"}
    assert len(told) == 96
    assert uids() == told
    assert is_whole()


def test_a_history_that_several_make_at_once_is_made_once(tmp_path):
    boot = remembered(hear(recording("01-plain-file")).snapshot)
    for turn in range(20):
        store, start = Store(tmp_path / f"{turn}.db"), Barrier(8)

        def remember(number: int, store: Store = store, start: Barrier = start) -> int:
            start.wait()
            return store.remember([replace(boot, uid=str(number))], now_s=1.7e9)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(remember, range(8))) == [1] * 8
        assert len(store.boots()) == 8


@pytest.mark.parametrize("after", [1, 5, 17])
def test_what_was_committed_outlives_a_kill_in_the_middle(after):
    with writer(0, 100_000) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(after + 1)][1:]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split()
    assert set(told) <= uids()
    assert len(uids()) <= len(told) + 1
    assert is_whole()
    assert phasetrack("history", "import", PLAIN).returncode == 0


# --- a file system that will not have it ------------------------------------------------------------


def test_a_full_disk_costs_one_warning_and_nothing_that_was_written():
    assert phasetrack("history", "import", PLAIN).returncode == 0
    size = Store().path.stat().st_size

    def no_more_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    ran = phasetrack("wait", EAGLE, "--timeout", "5s", preexec_fn=no_more_space)
    assert ran.stdout.startswith("STOPPED")
    (warning,) = [line for line in ran.stderr.splitlines() if "history" in line]
    assert "this start will not be remembered" in warning
    assert len(Store().boots()) == 1
    assert is_whole()
    assert phasetrack("history", "import", EAGLE).returncode == 0
    assert len(Store().boots()) == 2


def as_no_one(*args: object) -> subprocess.CompletedProcess[str]:
    """Run without the right to write everywhere that root has."""
    if os.geteuid() != 0:
        return phasetrack(*args)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    command = [*drop, PHASETRACK, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root can write everywhere")
def test_a_home_that_cannot_be_written_costs_one_warning(state_home):
    state_home.chmod(0o500)
    ran = as_no_one("wait", EAGLE, "--timeout", "5s")
    state_home.chmod(0o700)
    assert ran.stdout.startswith("STOPPED")
    (warning,) = [line for line in ran.stderr.splitlines() if "history" in line]
    assert "Permission denied" in warning
    assert "this start will not be remembered" in warning


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root can write everywhere")
def test_a_history_that_can_only_be_read_is_read(state_home):
    launches = [Launch(Took(silent=60), tp=2, shards=12, began_s=BEGAN_S + 86400 * k) for k in range(2)]
    for name, launch, end in (("first.log", launches[0], launches[0].ready_s), ("second.log", launches[1], 200)):
        (state_home / name).write_bytes(launch.until(end))
    assert phasetrack("history", "import", state_home / "first.log").returncode == 0
    Store().path.chmod(0o400)
    Store().path.parent.chmod(0o500)
    ran = as_no_one("status", state_home / "second.log")
    listed = as_no_one("history", "list")
    Store().path.parent.chmod(0o700)
    assert "1 like boot and public starts" in ran.stdout
    assert ran.stderr == ""
    assert len(listed.stdout.splitlines()) == 2


# --- the commands -----------------------------------------------------------------------------------


def test_a_boot_that_was_waited_for_is_known_the_next_time(tmp_path):
    first, second = (Launch(Took(silent=60), tp=2, shards=12, began_s=BEGAN_S + 86400 * k) for k in range(2))
    log = tmp_path / "server.log"
    log.write_bytes(first.until(first.ready_s))
    assert phasetrack("wait", log, "--timeout", "20s").returncode == 0
    log.write_bytes(second.until(300))
    said = phasetrack("status", log).stdout
    assert "ready in" in said
    assert "(1 like boot and public starts" in said
    assert "public starts" in phasetrack("status", log, "--no-history").stdout
    told = json.loads(phasetrack("status", log, "--json").stdout)
    assert told["eta"]["runs"] == 1
    assert told["eta"]["low_s"] <= first.ready_s - 300 <= told["eta"]["high_s"] + 30


def test_no_history_keeps_nothing(state_home):
    assert phasetrack("wait", PLAIN, "--timeout", "5s", "--no-history").stdout.startswith("STOPPED")
    with PLAIN.open("rb") as log:
        assert phasetrack("tail", "-", "--no-history", stdin=log).returncode == 5
    assert not (state_home / "phasetrack").exists()


def test_a_start_that_is_piped_in_is_kept():
    with PLAIN.open("rb") as log:
        phasetrack("tail", "-", stdin=log)
    assert [boot.past.outcome for boot in Store().boots()] == ["ready"]


def test_a_report_and_a_status_only_read():
    inside("report", PLAIN)
    inside("status", PLAIN)
    assert Store().boots() == []


def test_a_report_tells_what_is_usual():
    inside("history", "import", FIXTURES)
    said = inside("report", EAGLE, "--ascii").stdout
    assert "Usually (" in said
    assert "like boots of this machine):" in said
    assert "perhaps cold cache" in said


def test_logs_and_casts_of_the_same_boots_are_learned_once():
    said = inside("history", "import", FIXTURES)
    assert said.returncode == 0
    again = inside("history", "import", FIXTURES)
    assert ", 0 new to the history" in again.stdout
    boots = Store().boots()
    assert len({boot.past.began_s for boot in boots}) >= len(boots) - 1  # two were started in one second
    outcomes = {boot.past.outcome for boot in boots}
    assert outcomes == {"ready", "failed", "starting"}


def test_a_file_with_many_boots_teaches_each(tmp_path):
    log = tmp_path / "server.log"
    launches = [Launch(Took(silent=60), tp=2, shards=12, began_s=BEGAN_S + 86400 * k) for k in range(3)]
    log.write_bytes(b"".join(launch.until(launch.ready_s) for launch in launches))
    assert "3 boots in them, 3 new" in inside("history", "import", log).stdout


def test_the_history_moves_to_another_machine(tmp_path, monkeypatch):
    inside("history", "import", PLAIN, EAGLE)
    here = {boot.uid: Store().boot(boot.number).past for boot in Store().boots()}
    assert inside("history", "export", "-o", tmp_path / "boots.ndjson").returncode == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert "2 new to the history" in inside("history", "import", tmp_path / "boots.ndjson").stdout
    assert {boot.uid: Store().boot(boot.number).past for boot in Store().boots()} == here


def test_another_machines_export_cannot_act_on_this_terminal(tmp_path):
    inside("history", "import", PLAIN)
    export = inside("history", "export").stdout
    for bad in ("\\u001b]0;owned\\u0007", "\\u009b31m", "\x9b31m", "\\nready", "\\u202e"):
        (tmp_path / "boots.ndjson").write_text(export.replace("Llama", f"{bad}Llama").replace('"uid":"', '"uid":"x'))
        inside("history", "import", tmp_path / "boots.ndjson")
        for words in (("list",), ("show", 2)):
            said = inside("history", *words).stdout
            assert all(char.isprintable() or char == "\n" for char in said)
        assert len(inside("history", "list").stdout.splitlines()) == 3


def test_boots_are_listed_shown_and_forgotten():
    inside("history", "import", PLAIN, EAGLE)
    listed = inside("history", "list").stdout.splitlines()
    assert "Llama-3.1-rand-64shard, draft EAGLE3" in listed[2]
    (newest, _) = json.loads(inside("history", "list", "--json").stdout)["boots"]
    assert newest["startup_s"] == 40
    shown = inside("history", "show", newest["boot"]).stdout
    assert "Target weights" in shown
    assert inside("history", "show", newest["boot"], "--json").stdout.startswith("{")
    assert inside("history", "forget", newest["boot"]).stdout == "1 boots forgotten\n"
    assert inside("history", "show", newest["boot"]).returncode == 2
    assert inside("history", "forget").returncode == 2
    assert inside("history", "forget", "--all").stdout == "1 boots forgotten\n"
    assert "no boots yet" in inside("history", "list").stdout


def test_what_is_no_log_is_passed_over_and_named(tmp_path):
    (tmp_path / "noise.log").write_bytes(os.urandom(4096))
    (tmp_path / "empty.log").touch()
    (tmp_path / "weights.safetensors").write_bytes(b"x" * 100)
    shutil.copy(PLAIN, tmp_path / "server.log")
    said = inside("history", "import", tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith("3 files read, 1 boots in them, 1 new to the history")
    assert inside("history", "import", tmp_path / "missing").returncode == 2
    (tmp_path / "other.ndjson").write_text('{"schema": "something else"}\n')
    assert "is no boot of 'phasetrack history export'" in inside("history", "import", tmp_path / "other.ndjson").stderr


# --- odd numbers and odd files ----------------------------------------------------------------------


def test_a_number_beyond_all_boots_is_one_of_no_boot():
    assert phasetrack("history", "import", PLAIN).returncode == 0
    most = "9" * 26
    assert phasetrack("history", "list", "-n", most).stdout.count("\n") >= 2
    assert phasetrack("history", "forget", most).stdout == "0 boots forgotten\n"
    assert len(Store().boots()) == 1


def test_an_empty_file_is_an_empty_history_and_another_database_is_none():
    Store().path.parent.mkdir(parents=True, exist_ok=True)
    Store().path.touch()
    listed = phasetrack("history", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    with sqlite3.connect(Store().path) as base:
        base.execute("CREATE TABLE theirs (x)")
    for words in (("list",), ("import", PLAIN)):
        other = phasetrack("history", *words)
        assert other.returncode == 6
        assert "not a history of phasetrack" in other.stderr
