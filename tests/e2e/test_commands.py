"""The installed commands on bad input, at points in the past, in pipes and poor locales: codes, one-line answers."""

from __future__ import annotations

import gzip
import json
import os
import pty
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

from phasetrack.beside import _ANSWER_S
from tests.e2e.command import PHASETRACK, home, inside, phasetrack
from tests.talk import FIXTURES, ROOT, args, log, recording

PLAIN = FIXTURES / "01-plain-file" / "server.log"
FAILED = FIXTURES / "06a1-mem-fraction-too-small" / "server.log"
CUT = FIXTURES / "06i-sigterm-in-boot-pty" / "server.log"
DRAFT = FIXTURES / "07b-tp2-eagle3-pipe" / "server.log"
READY_LINE = 54  # of PLAIN


def until(name: str, line: int) -> bytes:
    """The first lines of a recording."""
    return b"".join(part + b"\n" for part in recording(name).split(b"\n")[:line])


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n")


# --- logs that cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_missing_log_is_6_and_says_so_in_a_line(command, tmp_path):
    done = phasetrack(command, tmp_path / "no.log", folder=tmp_path)
    assert (done.returncode, done.stdout) == (6, "")
    assert one_line(done.stderr)
    assert "no.log: no such file" in done.stderr


@pytest.mark.parametrize("command", ["status", "report", "wait", "tail"])
def test_a_directory_is_6_and_says_so_in_a_line(command, tmp_path):
    done = inside(command, tmp_path, folder=tmp_path)
    assert (done.returncode, done.stdout) == (6, "")
    assert "is a directory" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_log_that_may_not_be_read_is_6_and_says_so_in_a_line(command, tmp_path):
    """Root may read everything unless it gives up the right to."""
    shut = tmp_path / "shut.log"
    shut.write_bytes(b"x")
    shut.chmod(0)
    drop = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if drop and shutil.which(drop[0]) is None:
        pytest.skip("this machine runs the tests as root and has no setpriv")
    done = subprocess.run(
        [*drop, *PHASETRACK, command, str(shut)], env=home(tmp_path), capture_output=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (6, b"")
    assert b"permission denied" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_of_a_failed_server_nothing_is_asked_and_no_answer_waited_for(tmp_path):
    began = time.monotonic()
    done = inside("status", FAILED, "--url", "http://127.0.0.1:9", "--no-history", "--json", folder=tmp_path)
    assert done.returncode == 1
    assert time.monotonic() - began < _ANSWER_S


# --- logs that say nothing ---------------------------------------------------------------------------

NOTHING = {
    "empty": b"",
    "of something else": b"2026-11-30 15:42:22 nginx started\nGET / 200\n" * 50,
    "binary": bytes(range(256)) * 400,
    "one endless line": b"x" * 300_000,
    "terminal codes": b"\x1b]0;t\x07\x1b[31m\x1b[2J\x1b[A" * 999,
    "NUL": b"\0" * 100_000,
    "source code": (ROOT / "phasetrack" / "core" / "machine.py").read_bytes(),
}


@pytest.mark.parametrize("what", NOTHING)
def test_a_log_without_an_engine_has_no_start_up(what, tmp_path):
    path = tmp_path / "other.log"
    path.write_bytes(NOTHING[what])
    known = json.loads(inside("report", path, "-f", "json", "--no-history", folder=tmp_path).stdout)
    assert (known["outcome"], known["boots"], known["phases"], known["failure"]) == ("none", [], [], None)
    asked = inside("status", path, "--no-history", folder=tmp_path)
    assert asked.returncode == 3
    assert one_line(asked.stdout)
    assert "\x1b" not in asked.stdout


def test_the_end_of_a_pipe_without_an_engine_is_5(tmp_path):
    piped = phasetrack("status", "-", folder=tmp_path, stdin=NOTHING["terminal codes"])
    assert (piped.returncode, piped.stdout) == (5, "No engine start-up in this log.\n")
    said = phasetrack("report", "-", folder=tmp_path, stdin=NOTHING["binary"])
    assert (said.returncode, said.stdout.splitlines()[-1]) == (0, "No engine start-up in this log.")


# --- exit codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "line", "code"),
    [(PLAIN, READY_LINE, 0), (PLAIN, 92, 5), (FAILED, 57, 1), (PLAIN, 20, 5), (CUT, 10, 5)],
)
def test_status_answers_by_its_code(path, line, code, tmp_path):
    name = path.parent.name
    assert phasetrack("status", "-", folder=tmp_path, stdin=until(name, line)).returncode == code


def test_a_report_is_0_whatever_the_log_says(tmp_path):
    for path in (PLAIN, FAILED, CUT):
        assert inside("report", path, "--no-history", folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "LOG"),
        (("status", str(PLAIN), "--at", "teatime"), "not a time"),
        (("status", str(PLAIN), "--boot", "7"), "no such boot"),
        (("status", str(PLAIN), "--boot", "0"), "--boot"),
        (("status", str(PLAIN), "--at-line", "-1"), "--at-line"),
        (("report", str(PLAIN), "--format", "pdf"), "pdf"),
        (("report", str(PLAIN), "-o", "/no/such/folder/x"), "cannot be written"),
        (("report", str(PLAIN), "--patterns", "/no/such/file.toml"), "no pattern file here"),
        (("patterns", "explain", "no.such.rule"), "no such rule"),
        (("brew",), "brew"),
        (("status", str(FAILED), "--url", "http://[::1"), "not an HTTP URL"),
        (("compare", f"{PLAIN}#0", str(PLAIN)), "no such boot"),
        (("compare", "9" * 26, str(PLAIN)), "no such boot"),
        (("history", "show", "9" * 26), "no boot 999"),
    ],
)
def test_a_wrong_command_line_is_2(arguments, said, tmp_path):
    done = inside(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


# --- points in the past ------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [0, 20, 31, 54, 5000])
def test_the_answer_at_a_line_is_that_of_the_log_until_there(line, tmp_path):
    then = inside("report", PLAIN, "--at-line", line, "-f", "json", "--no-history", folder=tmp_path)
    alone = inside("report", "-", "-f", "json", "--no-history", folder=tmp_path, stdin=until("01-plain-file", line))
    at_line, until_there = json.loads(then.stdout), json.loads(alone.stdout)
    for known in (at_line, until_there):
        known.pop("sources")
    assert at_line == until_there


def test_the_answer_at_a_time_knows_nothing_of_later(tmp_path):
    known = json.loads(
        inside("status", PLAIN, "--at", "2026-11-30T15:42:29", "--json", "--no-history", folder=tmp_path).stdout
    )
    assert (known["outcome"], known["phase"], known["ready_at"]) == ("starting", "target_graph", None)
    known = json.loads(inside("status", PLAIN, "--at", "15:42:25", "--json", "--no-history", folder=tmp_path).stdout)
    assert (known["outcome"], known["phase"], known["progress"]["done"]) == ("starting", "target_load", 48)


def test_the_status_of_a_moment_does_not_know_that_the_log_ends_there(tmp_path):
    """A healthy start, asked for in the middle of its captures, is no start that was cut short."""
    cold = FIXTURES / "03a-eagle3-file-coldjit" / "server.log"
    at_line = inside("status", DRAFT, "--at-line", 40, "--no-history", folder=tmp_path)
    silent = inside("status", cold, "--at", "15:40:00", "--no-history", folder=tmp_path)
    assert (at_line.returncode, silent.returncode) == (3, 3)
    assert at_line.stdout.startswith("PROGRESSING: Target CUDA graphs")
    assert "silent for 33 s; normal here" in silent.stdout
    assert "ready in" in at_line.stdout


def test_an_earlier_boot_can_be_asked_for(tmp_path):
    both = tmp_path / "both.log"
    later = log("50:04 | " + args(tp_size=1, port=31000) + "\n50:22 | Init torch distributed begin.")
    both.write_bytes(FAILED.read_bytes() + later.encode().replace(b"15:50", b"18:50"))
    known = [
        json.loads(inside("report", both, "-f", "json", *boot, "--no-history", folder=tmp_path).stdout)
        for boot in ((), ("--boot", "1"), ("--boot", "2"))
    ]
    assert [each["outcome"] for each in known] == ["starting", "failed", "starting"]
    assert [boot["outcome"] for boot in known[0]["boots"]] == ["failed", "starting"]
    assert "Boots in this file:" in inside("report", both, "--no-history", folder=tmp_path).stdout


def test_the_clock_of_a_saved_log_stops_at_its_last_line(tmp_path):
    saved, archived = tmp_path / "saved.log", tmp_path / "saved.log.gz"
    saved.write_bytes(until("01-plain-file", 40))
    archived.write_bytes(gzip.compress(saved.read_bytes()))
    days_ago = time.time() - 3 * 86400
    os.utime(saved, (days_ago, days_ago))
    known = [json.loads(inside("status", "--json", path, folder=tmp_path).stdout) for path in (saved, archived)]
    assert known[0]["now"] == known[1]["now"]
    assert known[0]["phases"] == known[1]["phases"]
    assert known[0]["eta"] is known[1]["eta"] is None
    assert "last output 3 d 0 h ago" in inside("status", saved, folder=tmp_path).stdout


def test_a_saved_log_of_something_else_is_given_no_estimate(tmp_path):
    other = tmp_path / "other.log"
    other.write_bytes(b"hello\n")
    os.utime(other, (0, 0))
    done = inside("status", other, folder=tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (3, 1)
    assert "no process of this machine has it open" in done.stdout
    assert "ready in" not in done.stdout


# --- pipes and terminals -----------------------------------------------------------------------------


def test_standard_input_is_read_as_a_log(tmp_path):
    by_name = json.loads(phasetrack("report", PLAIN, "-f", "json", "--no-history", folder=tmp_path).stdout)
    by_pipe = json.loads(
        phasetrack("report", "-", "-f", "json", "--no-history", folder=tmp_path, stdin=PLAIN.read_bytes()).stdout
    )
    assert by_pipe.pop("sources")[0]["path"] == "-"
    by_name.pop("sources")
    assert by_pipe == by_name


@pytest.mark.parametrize("form", ["text", "json", "ndjson"])
def test_a_reader_that_leaves_early_is_no_error(form, tmp_path):
    many = tmp_path / "many.log"
    many.write_bytes(PLAIN.read_bytes() * 30)
    command = " ".join([*PHASETRACK, "report", str(many), "-f", form, "--no-history"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"], env=home(tmp_path), capture_output=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "POSIX"},
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_terminal_without_utf8_is_no_error(locale, form, tmp_path):
    odd = tmp_path / "größe-日本.log"
    odd.write_bytes(FAILED.read_bytes().replace(b"Not enough memory", "Zu wenig Speicher für 日本".encode()))
    done = subprocess.run(
        [*PHASETRACK, "report", str(odd), "-f", form, "--no-history"], env=home(tmp_path) | locale, capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    if form == "json":
        assert json.loads(done.stdout.decode("latin-1"))["outcome"] == "failed"


def test_a_file_whose_name_is_no_text_can_be_read(tmp_path):
    odd = os.fsencode(tmp_path) + b"/a\xff\nb.log"
    with open(odd, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(FAILED.read_bytes())
    done = subprocess.run(
        [*PHASETRACK, "report", odd, "-f", "json", "--no-history"], env=home(tmp_path), check=False, timeout=120,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["outcome"] == "failed"


def test_no_colour_is_honoured_on_a_terminal(tmp_path):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*PHASETRACK, "report", str(PLAIN), "--no-history"],
        env=home(tmp_path) | {"NO_COLOR": "1", "TERM": "xterm-256color"},
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    said = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed: all is read
            break
        if not piece:
            break
        said += piece
    os.close(leader)
    assert process.wait(60) == 0
    assert b"READY" in said or b"STOPPED" in said
    assert b"\x1b[" not in said


def test_hostile_text_of_a_log_is_inert_in_every_answer(tmp_path):
    path = tmp_path / "hostile.log"
    evil = "\x1b]0;pwned\x07\x1b[2J<script>alert(1)</script>[bold red]x[/]\u202egnp.exe"
    path.write_text(
        log(
            f"42:04 | {args(model_path=evil, tp_size=1)}\n42:22 | Init torch distributed begin.\n"
            "42:30 | Scheduler hit an exception: Traceback (most recent call last):\n"
        )
        + f"ValueError: {evil}\n"
        + json.dumps({"log": f"[2026-11-30 15:42:31] Received sigquit {evil}"}) + "\n",
        encoding="utf-8",
    )  # fmt: skip
    for form in ("text", "json", "ndjson", "md", "html"):
        said = inside("report", path, "-f", form, "--no-history", folder=tmp_path).stdout
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert "\\u001b" not in said
        assert form != "html" or "<script>alert" not in said
    asked = inside("status", path, "--no-history", folder=tmp_path)
    assert one_line(asked.stdout)
    assert "\x1b" not in asked.stdout


# --- secrets in odd places ---------------------------------------------------------------------------

SECRET, TOKEN = "Zq7-plum.Tree_42", "hf_QwErTyUiOpAsDfGhJkLzXcVbNm"


ODD = [
    f"[2026-11-30 15:42:04] server_args=ServerArgs(model_path='m', api_key='{SECRET}', admin_api_key='{SECRET}",
    f"Traceback (most recent call last): api_key={SECRET}",
    '  File "/opt/site/sglang/launch_server.py", line 11, in <module>',
    f"ValueError: the key {TOKEN} of --api-key {SECRET} is wrong",
    f"Fetching https://me:{SECRET}@example.com/{TOKEN}:  50%|#   | 1/2 [00:01<00:01,  1.00s/it]",
    json.dumps({"log": f"[2026-11-30 15:42:04] server_args=ServerArgs(model_path='m', api_key='{SECRET}')\n"}),
    f"Capturing batches (token={SECRET}):  50%|#   | 1/2 [00:01<00:01,  1.00s/it]",
    f"Capturing --api-key {SECRET} batches:  50%|#   | 1/2 [00:01<00:01,  1.00s/it]",
    f"[2026-11-30 15:42:04] Attention backend not specified. Use {TOKEN} backend by default.",
    f"[2026-11-30 15:42:04] Ignore import error when loading x: Authorization: Bearer {SECRET}",
    f"[2026-11-30 15:42:04] Port 30000 is already in use, trying port 30001 --api-key {SECRET}",
    f"[2026-11-30 15:42:05] Init torch distributed begin. {TOKEN}",
    "[2026-11-30 15:42:05] Scheduler hit an exception: Traceback (most recent call last):",
    f"RuntimeError: HF_TOKEN={SECRET} https://me:{SECRET}@example.com",
    f"[2026-11-30 15:42:06] Received sigquit from a child process. password={SECRET}",
]


def test_a_secret_in_an_odd_place_reaches_no_output(tmp_path):
    path = tmp_path / "server.log"
    path.write_text("".join(f"{line}\n" for line in ODD), encoding="utf-8")
    forms = ("text", "json", "ndjson", "md", "html", "trace")
    said = [inside("report", path, "-f", form, folder=tmp_path) for form in forms]
    said += [inside("status", path, *more, folder=tmp_path) for more in ((), ("--json",))]
    said += [
        phasetrack("tail", "-", "-o", form, folder=tmp_path, stdin=path.read_bytes()) for form in ("plain", "json")
    ]
    said += [inside("history", "export", folder=tmp_path)]
    for done in said:
        assert SECRET not in done.stdout + done.stderr, done.args
        assert TOKEN not in done.stdout + done.stderr, done.args
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and file != path]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes() or TOKEN.encode() in file.read_bytes()]


# --- pattern files -----------------------------------------------------------------------------------

PACK = '[pack]\nschema = 1\nengine = "mine"\ntitle = "Mine"\n[[rule]]\nid = "mine.load"\nrole = "begin"\n'
PACK += "phase = \"target_load\"\nmatch = 'Mine loads'\nmust_match = ['[2026-11-30 15:42:22] Mine loads']\n"
PACK += "must_not_match = ['[2026-11-30 15:42:22] Yours loads']\n"


@pytest.mark.parametrize(
    ("typo", "said"),
    [
        (("[pack]", "[pack"), "not valid TOML"),
        (("schema = 1", "schema = 9"), "schema = 9"),
        (("[[rule]]", "[[rules]]"), "unknown table"),
        (("match =", "mach ="), "unknown key 'mach'"),
        (("Mine loads'\nmust", "Mine (loads'\nmust"), "no regular expression"),
        (('"begin"', '"start"'), "role = 'start'"),
        (("target_load", "weights"), "unknown phase 'weights'"),
        (("mine.load", "sglang.server_args"), "this id stands twice"),
    ],
)
def test_a_typo_in_a_pattern_file_is_2_and_says_what_and_where(typo, said, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PACK.replace(*typo))
    done = inside("status", PLAIN, "--patterns", path, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)
    assert said in done.stderr
    assert str(path) in done.stderr or "sglang.server_args" in done.stderr


def test_a_typo_in_ones_home_is_named_too(tmp_path):
    path = tmp_path / "xdg_config_home" / "phasetrack" / "patterns" / "mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[pack\n")
    done = inside("status", PLAIN, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert str(path) in done.stderr


def test_a_pattern_file_that_is_nested_without_end_is_2(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("a = " + "[" * 5000)
    done = inside("status", PLAIN, "--patterns", path, folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"phasetrack: {path}: is nested too deeply\n")


def test_a_pattern_file_that_is_no_text_is_2(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    done = inside("status", PLAIN, "--patterns", path, folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"phasetrack: {path}: is not UTF-8 text\n")


def test_a_rule_of_ones_own_counts(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PACK)
    mine = log("42:04 | " + args(tp_size=1) + "\n42:22 | Mine loads").encode()
    known = json.loads(inside("report", "-", "-f", "json", "--patterns", path, folder=tmp_path, stdin=mine).stdout)
    assert known["phase"] == "target_load"


def test_patterns_check_proves_the_shipped_rules_and_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PACK)
    for more in ((), (path,)):
        done = inside("patterns", "check", *more, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "all hold" in done.stdout
    path.write_text(PACK.replace("'[2026-11-30 15:42:22] Mine loads'", "'[2026-11-30 15:42:22] He loads'"))
    done = inside("patterns", "check", path, folder=tmp_path)
    assert done.returncode == 1
    assert "mine.load: does not match its own sample" in done.stdout


def test_patterns_list_is_greppable_and_can_be_narrowed(tmp_path):
    every = inside("patterns", "list", folder=tmp_path).stdout.splitlines()
    loads = inside("patterns", "list", "--phase", "target_load", "--role", "end", folder=tmp_path).stdout.splitlines()
    assert len(every) > 200
    assert every[0] == " ".join(every[0].split()) or every[0].startswith("rule")
    assert all(line.split()[1:3] == ["end", "target_load"] for line in loads[1:])
    assert {line.split()[0] for line in loads} <= {line.split()[0] for line in every}


def test_patterns_explain_tells_samples_cause_and_remedy(tmp_path):
    done = inside("patterns", "explain", "sglang.fail.pd_warmup", folder=tmp_path)
    assert done.returncode == 0
    for part in ("failure of warmup", "Cause:", "Remedy:", "Takes:", "Leaves:", "source", "0.4.10.post2 on"):
        assert part in done.stdout
    assert inside("patterns", "explain", "pd_warmup", folder=tmp_path).stdout == done.stdout
    near = inside("patterns", "explain", "sglang.fail.pd_warmupp", folder=tmp_path)
    assert near.returncode == 2
    assert "sglang.fail.pd_warmup" in near.stderr


# --- what is shipped ---------------------------------------------------------------------------------


def test_the_demo_shows_a_start_with_a_draft(tmp_path):
    done = phasetrack("demo", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("Draft weights", "Target CUDA graphs", "58/58 graphs", "2/2"):
        assert part in done.stdout
    assert done.stdout.isascii() or "✓" in done.stdout


def test_the_wheel_carries_packs_and_demo_and_runs_without_the_checkout(wheel, tmp_path):
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(unpacked)
    assert {"phasetrack/_patterns/sglang.toml", "phasetrack/_demo/server.log", "phasetrack/_demo/server.cast"} <= {
        *names
    }
    assert not [name for name in names if name.startswith(("tests", "fixtures", "patterns"))]
    done = subprocess.run(
        [*PHASETRACK, "demo"], cwd=tmp_path, env=home(tmp_path) | {"PYTHONPATH": str(unpacked)}, capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"_demo" in done.stdout


def test_nothing_heavy_is_imported_for_the_version(tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "phasetrack", "--version"], env=home(tmp_path), capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.decode().splitlines()}
    assert "typer" in imported
    assert not imported & {"textual", "psutil", "jinja2", "regex", "watchfiles", "sqlite3"}


def test_the_readme_and_ci_run_the_same_line():
    line = next(line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("python3 -m venv"))
    assert line.endswith(".venv/bin/python -m tests")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not readme or line in readme
