"""What a log may come from: archives, whole, cut or damaged; pipes that nobody writes into; what is no log at all."""

from __future__ import annotations

import gzip
import json
import lzma
import os

import pytest
import zstandard

from tests.e2e.command import inside
from tests.e2e.test_output import shell
from tests.talk import FIXTURES

PLAIN = FIXTURES / "01-plain-file" / "server.log"
WHOLE = PLAIN.read_bytes()
PACKED = {"gz": gzip.compress(WHOLE), "xz": lzma.compress(WHOLE), "zst": zstandard.compress(WHOLE)}
CUT, STANDS_BEHIND, MISNAMED = "cut short", "stands behind", "named like an archive"


def snapshot(path, folder) -> dict:
    return json.loads(inside("report", path, "-f", "json", "--no-history", folder=folder).stdout)


# --- archives ----------------------------------------------------------------------------------------

DAMAGED = {
    "a.gz": (PACKED["gz"][:-4], CUT),
    "b.gz": (PACKED["gz"] + b"garbage\n", STANDS_BEHIND),
    "c.gz": (PACKED["gz"][:-5] + b"\0" + PACKED["gz"][-4:], "is damaged"),
    "d.xz": (PACKED["xz"][:-40], CUT),
    "e.xz": (PACKED["xz"] + b"garbage\n", STANDS_BEHIND),
    "f.zst": (zstandard.compress(WHOLE) + PACKED["zst"][:200], CUT),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_of_a_damaged_archive_the_rest_is_read_and_its_damage_is_told_once(name, tmp_path):
    path = tmp_path / name
    data, said = DAMAGED[name]
    path.write_bytes(data)
    known = snapshot(path, tmp_path)
    assert (known["outcome"], known["startup_s"]) == ("stopped", snapshot(PLAIN, tmp_path)["startup_s"])
    assert [warning["id"] for warning in known["warnings"]].count("log.damaged") == 1
    for words in (("status",), ("report",), ("wait",), ("replay", "--plain"), ("report", "-f", "ndjson")):
        done = inside(words[0], path, *words[1:], "--no-history", folder=tmp_path)
        assert done.stderr.count(said) == (words[0] != "replay"), words
    bundled = inside("report", path, "--bundle", tmp_path / "b.tgz", folder=tmp_path)
    assert said in bundled.stderr


@pytest.mark.parametrize("data", [PACKED["zst"][:-400], PACKED["xz"][:100], b"\x1f\x8b rubbish"])
def test_an_archive_of_which_nothing_can_be_read_is_6_and_never_no_start(data, tmp_path):
    path = tmp_path / "server.log.1"
    path.write_bytes(data)
    done = inside("status", path, "--no-history", folder=tmp_path)
    assert done.returncode == 6
    assert done.stdout.startswith("No engine start-up in what could be read of this log: the archive is ")
    assert "problem" in inside("doctor", path, "--json", folder=tmp_path).stdout


def test_what_is_named_like_an_archive_will_not_grow(tmp_path):
    (tmp_path / "server.log.gz").write_bytes(b"junk\n")
    done = inside("status", tmp_path / "server.log.gz", "--no-history", folder=tmp_path)
    assert done.returncode == 6
    assert MISNAMED in done.stdout
    (tmp_path / "server.log.gz").write_bytes(WHOLE)
    assert snapshot(tmp_path / "server.log.gz", tmp_path)["outcome"] == "stopped"
    assert inside("wait", tmp_path / "server.log.gz", "--no-history", folder=tmp_path).returncode == 5


@pytest.mark.parametrize("form", PACKED)
def test_whole_archives_and_several_in_one_are_read_without_a_word(form, tmp_path):
    half = len(WHOLE) // 2
    pack = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}[form]
    path = tmp_path / "server.log"
    path.write_bytes(pack(WHOLE[:half]) + pack(WHOLE[half:]) + (b"" if form == "zst" else bytes(512)))
    known = snapshot(path, tmp_path)
    assert (known["outcome"], known["sources"][0]["bytes"]) == ("stopped", len(WHOLE))
    assert inside("status", path, folder=tmp_path).stderr == ""


def test_an_archive_comes_through_a_pipe_too(tmp_path):
    for words in ("status -", "tail -", "wait -", "report - -f json", "status <(cat p.gz)"):
        (tmp_path / "p.gz").write_bytes(PACKED["gz"])
        done = shell(f"cat p.gz | PT {words} --no-history", tmp_path)
        assert "stopped" in done.stdout.lower(), words
        cut = shell(f"head -c -4 p.gz | PT {words.replace('cat p.gz', 'head -c -4 p.gz')} --no-history", tmp_path)
        assert cut.stderr.count(CUT) == 1, words


def test_importing_a_damaged_archive_keeps_its_boots_and_tells(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log.gz").write_bytes(PACKED["gz"][:-4])
    done = inside("history", "import", tmp_path / "logs", folder=tmp_path)
    assert "1 new to the history" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "passed over" not in done.stderr


# --- pipes and devices -------------------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    return tmp_path / "pipe.log"


def test_a_named_pipe_that_nobody_writes_into_holds_nobody_up(pipe, tmp_path):
    for command in ("status", "report", "replay"):
        done = inside(command, pipe, folder=tmp_path)
        assert done.returncode == 6
        assert "a named pipe that nobody writes into" in done.stderr
    assert "nobody writes into" in inside("doctor", pipe, folder=tmp_path).stdout
    assert "nobody writes into" in inside("history", "import", pipe, folder=tmp_path).stderr
    waited = shell("PT wait --timeout 1s --log-only pipe.log", tmp_path)
    assert waited.returncode == 124
    logged = inside("run", "--log", pipe, "--", "true", folder=tmp_path)
    assert logged.returncode == 2
    assert "is no regular file" in logged.stderr


@pytest.mark.usefixtures("pipe")
def test_a_named_pipe_is_followed_from_its_first_writer_to_its_last(tmp_path):
    done = shell(f"PT tail pipe.log --no-history & exec 3> pipe.log; cat {PLAIN} >&3; exec 3>&-; wait $!", tmp_path)
    assert done.returncode == 5
    assert "READY" in done.stdout


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/mem"])
def test_a_device_is_no_log(path, tmp_path):
    for command in ("status", "report", "wait", "tail"):
        done = inside(command, path, folder=tmp_path)
        assert (done.returncode, done.stdout) == (6, "")
        assert done.stderr.splitlines()[-1].startswith(f"phasetrack: {path}: ")


def test_a_folder_is_learned_from_its_regular_files_alone(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    os.mkfifo(logs / "a.log")
    (logs / "b.log").symlink_to("/dev/zero")
    none = inside("history", "import", logs, folder=tmp_path)
    assert none.stdout.startswith("0 files read")
    assert "no file in there has a name like a log's" in none.stderr
    (logs / "c.log").symlink_to(PLAIN)
    assert "1 new to the history" in inside("history", "import", logs, folder=tmp_path).stdout
