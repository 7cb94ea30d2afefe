"""What is given away, end to end: bundles without anybody's names, comparisons, the doctor, completions."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from phasetrack.crash import write_report
from phasetrack.share import _lines
from phasetrack.views.jsonl import snapshot_json
from tests.e2e.command import PHASETRACK, home, inside, phasetrack
from tests.e2e.terminal import Terminal
from tests.e2e.test_help import commands
from tests.talk import FIXTURES, args, hear, log, recording

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, DRAFT = FIXTURES / "01-plain-file" / "server.log", FIXTURES / "03b-eagle3-pipe" / "server.log"

# What may stand in no output of any command: secrets, and persons.
SECRETS = {
    "user of a path": "/alice",
    "IPv4": "10.20.30.40",
    "IPv6": "2001:db8::77",
    "mail": "bob.smith",
    "api_key": "sk-proj-Zq8vN2mK4rT7wX1yB5cD",
    "admin_api_key": "adm1n-0nly-Kxw93jf82",
    "hub token": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm",
    "aws id": "AKIAIOSFODNN7QWERTYU",
    "aws key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYqwertyuiop",
    "github": "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
    "password": "s3cr3tpass",
    "query": "tok-90210-abc",
    "wrapped": "wr4pped-Kd82hs",
    "pair": "p41red-Lq93jd",
    "suffixed": "suff1xed-Mz72ka",
    "scheme": "sch3me-Nv61lb",
    "spaced": "sp4ced-Ow50mc",
    "in a URL": "u#rl/Px49nd",
    "of a key": "MIIEowIBAAKCAQEAQy38oeRz27pfSa16qg",
    "below": "b3low-Tb05rh",
    "bearer": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
}
# What may stand in no file of a bundle.
PERSONAL = {
    "user": "alice", "other user": "carolina", "company": "acmecorp", "host": "gpu-node7", "project": "moonshot-x",
    "MAC": "de:ad:be:ef:00:17",
}  # fmt: skip


def planted() -> bytes:
    """A start that fails, with secrets wherever a log holds them."""
    s = SECRETS
    said = args(
        tp_size=1, api_key=s["api_key"], admin_api_key=s["admin_api_key"], served_model_name="m", host="10.20.30.40",
        dist_init_addr="gpu-node7.cluster.acmecorp.net:5000", download_dir="/home/alice/moonshot-x/models",
        tokenizer_path=f"https://carolina:{s['password']}@git.acmecorp.net/m?token={s['query']}",
    )  # fmt: skip
    return (
        log(
            f"""
        42:00     | {said}
        42:01     | HF_TOKEN={s["hub token"]} AWS_ACCESS_KEY_ID={s["aws id"]} AWS_SECRET_ACCESS_KEY={s["aws key"]}
        42:02     | Authorization: Bearer {s["bearer"]} for bob.smith@acmecorp.net from 2001:db8::77 (de:ad:be:ef:00:17)
        42:02     | WARNING: cache /home/alice/.cache/x is slow on gpu-node7, ask carolina, {s["github"]}
        42:09     | Init torch distributed begin.
        42:10     | Load weight begin. avail mem=139.13 GB
                  | Multi-thread loading shards:  50% Completed | 1/2 [00:01<00:01,  1.00it/s]
        42:20     | Scheduler hit an exception: Traceback (most recent call last):
                  |   File "/home/alice/moonshot-x/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process
                  | ValueError: cannot read /home/alice/moonshot-x/w.bin with {s["hub token"]} at 10.20.30.40
        """
        ).encode()
        + f"""environment: {{"name": "HF_TOKEN", "value": "{s["pair"]}"}} api_key=SecretStr("{s["wrapped"]}")
OPENAI_API_KEY_OLD={s["suffixed"]} db      :   x password      :   {s["spaced"]} Authorization: ApiKey {s["scheme"]}
postgresql://me:{s["in a URL"]}@db/x needs
-----BEGIN RSA PRIVATE KEY-----
{s["of a key"]}
-----END RSA PRIVATE KEY-----
"api_key":
  "{s["below"]}"
RuntimeError: env ('x-api-key', b'{s["pair"]}') api_key=Optional('{s["wrapped"]}') --api-key\t{s["suffixed"]}
""".encode()
        + f"\x1b[1mhf_QwEr\x1b[0m{s['hub token'][7:]} \x1b]0;{s['api_key']}\x07 al\x1b[31mice\n".encode()
    )


@pytest.fixture
def server_log(tmp_path) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(planted())
    return path


def found(text: str, *kinds: dict[str, str]) -> list[str]:
    return [name for kind in kinds for name, value in kind.items() if value.lower() in text.lower()]


def files_of(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as tar:
        return {m.name.rpartition("/")[2]: tar.extractfile(m).read().decode() for m in tar.getmembers()}


def outputs(log: Path, other: Path, folder: Path) -> list[tuple[object, ...]]:
    """Every command in every form, on logs with secrets; those that print only, and so can share a process."""
    forms = [("report", log, "-f", form) for form in ("text", "json", "ndjson", "md", "html", "trace")]
    forms += [("compare", log, other, "-f", form) for form in ("text", "json", "md", "html")]
    forms += [("status", log, *how) for how in ((), ("--json",), ("--at-line", 7), ("--at-line", 7, "--json"))]
    forms += [("wait", log, *how) for how in ((), ("--json",), ("--timeout", "1s", "--until", "serving"))]
    forms += [("history", "import", log), ("history", "list"), ("history", "list", "--json"), ("history", "show", 1)]
    forms += [("history", "show", 1, "--json"), ("history", "export"), ("report", log, "-o", folder / "no" / "where")]
    return [*forms, ("doctor", log), ("doctor", log, "--json"), ("replay", log, "--plain")]


def launches(log: Path, folder: Path) -> list[tuple[object, ...]]:
    """Commands that are processes of their own: they start something, or read their input."""
    s = SECRETS
    server = ("--", "sh", "-c", 'cat "$0"; exit 1', log, "--api-key", s["api_key"], f"https://me:{s['password']}@x.net")
    url = f"https://me:{s['password']}@x.net/m?token={s['query']}"
    return [
        ("run", "--log", folder / "run.log", "--record", folder / "run.cast", *server),
        ("tail", "-", "--output", "json", "--log-only"), ("tail", "-", "--output", "plain", "--log-only"),
        ("report", log, "--bundle", folder / "out.tar.gz"),
        # What was typed may hold one too.
        ("status", url), ("status", log, "--url", url.replace("https", "ftp")), ("wait", log, "--until", url),
        ("run", "--log", folder / "none.log", "--", f"./{s['hub token']}"), ("patterns", "explain", s["hub token"]),
        ("patterns", "check", folder / s["hub token"]), ("history", "forget", s["github"]),
    ]  # fmt: skip


def test_no_secret_leaves_by_any_output(server_log, tmp_path):
    other = tmp_path / "other.log"
    other.write_bytes(planted())
    within, apart = outputs(server_log, other, tmp_path), launches(server_log, tmp_path)
    tried = {" ".join(map(str, run[:2])) for run in (*within, *apart)} | {str(run[0]) for run in (*within, *apart)}
    assert commands().keys() - tried == {"demo", "patterns list"}, "these two show nothing of a user's"
    for run in (*within, *apart):
        how = inside if run in within else phasetrack
        done = how(*run, folder=tmp_path, stdin=planted())
        assert found(done.stdout + done.stderr, SECRETS) == [], run
        assert done.stdout + done.stderr
    # A log is the server's own, a recording of it holds the same; nothing else that was written does.
    logs = [server_log, other, tmp_path / "run.log", tmp_path / "run.cast"]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path not in logs]
    assert {"history.db", "run.evidence.jsonl", "out.tar.gz"} <= {path.name for path in kept}
    for path in kept:
        assert found(path.read_bytes().decode("latin-1"), SECRETS) == [], path
    assert found((tmp_path / "run.cast").read_text().partition("\n")[0], SECRETS) == []
    for name, text in files_of(tmp_path / "out.tar.gz").items():
        assert found(text, SECRETS, PERSONAL) == [], name


def test_no_secret_stands_in_the_report_of_an_error_of_ours():
    fault = ValueError(f"no place for {SECRETS['bearer']} of https://me:{SECRETS['password']}@x.net")
    written = write_report(fault, hear(planted()).snapshot)
    assert "no place for" in written.read_text()
    assert found(written.read_text(), SECRETS) == []


def test_no_secret_stands_on_the_screen(server_log, tmp_path):
    terminal = Terminal([*PHASETRACK, "tail", str(server_log), "--log-only"], columns=140, rows=48, **home(tmp_path))
    try:
        terminal.until("FAILED")
        terminal.send("l")
        terminal.send("q")
        terminal.exit_code()
        assert found(terminal.written.decode("utf-8", "replace"), SECRETS) == []
    finally:
        terminal.close()


def test_a_bundle_tells_what_was_masked_and_never_what_it_was(server_log, tmp_path):
    done = inside("report", server_log, "--bundle", tmp_path / "b.tar.gz", folder=tmp_path)
    assert done.returncode == 0
    assert "nothing was sent" in done.stdout
    files = files_of(tmp_path / "b.tar.gz")
    assert sorted(files) == ["MASKED.txt", "report.html", "server.log", "snapshot.json"]
    kinds = {line.rsplit(None, 2)[0].strip() for line in files["MASKED.txt"].splitlines() if line.startswith("  ")}
    assert {"users", "hosts", "IP addresses", "MAC addresses", "e-mail addresses", "folders"} <= kinds
    assert "secrets" in files["MASKED.txt"]


def test_a_bundle_masks_the_same_name_the_same_way_in_every_file(server_log, tmp_path):
    inside("report", server_log, "--bundle", tmp_path / "b.tar.gz", folder=tmp_path)
    files = files_of(tmp_path / "b.tar.gz")
    message = json.loads(files["snapshot.json"])["failure"]["message"]
    assert message in files["server.log"]
    assert message in files["report.html"].replace("&#39;", "'")
    assert "/home/user-" in message


def test_the_log_of_a_bundle_gives_the_snapshot_of_the_bundle(tmp_path):
    source = FIXTURES / "06b2-truncated-shard" / "server.log"
    inside("report", source, "--bundle", tmp_path / "b.tar.gz", folder=tmp_path)
    files = files_of(tmp_path / "b.tar.gz")
    again = snapshot_json(hear(files["server.log"]).snapshot)
    shown = json.loads(files["snapshot.json"])
    assert again["phases"] == shown["phases"]
    assert again["failure"]["line"] == shown["failure"]["line"]
    original = snapshot_json(hear(recording("06b2-truncated-shard")).snapshot)
    assert [row["elapsed_s"] for row in shown["phases"]] == [row["elapsed_s"] for row in original["phases"]]


def test_a_bundle_names_no_user_host_or_time_in_its_headers(server_log, tmp_path):
    bundle = tmp_path / "b.tar.gz"
    inside("report", server_log, "--bundle", bundle, folder=tmp_path)
    assert bundle.read_bytes()[4:8] == b"\0\0\0\0", "no time in the gzip header"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(bundle.read_bytes()))) as tar:
        assert {(m.uname, m.gname, m.uid, m.gid, m.mtime) for m in tar.getmembers()} == {("", "", 0, 0, 0)}


def test_a_bundle_can_be_made_from_a_pipe(tmp_path):
    done = phasetrack("report", "-", "--bundle", tmp_path / "b.tar.gz", folder=tmp_path, stdin=planted())
    assert done.returncode == 0
    assert found(files_of(tmp_path / "b.tar.gz")["server.log"], SECRETS, PERSONAL) == []


def test_a_bundle_that_cannot_be_written_leaves_nothing_behind(server_log, tmp_path):
    done = inside("report", server_log, "--bundle", tmp_path / "no" / "b.tar.gz", folder=tmp_path)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    done = inside("report", server_log, "--bundle", tmp_path / "b.tar.gz", "--boot", "7", folder=tmp_path)
    assert done.returncode == 2
    assert "no such boot" in done.stderr
    assert list(tmp_path.glob("*b.tar.gz*")) == []
    assert list(tmp_path.glob(".*part")) == []


def test_a_report_of_a_missing_log_leaves_the_old_output_alone(tmp_path):
    old = tmp_path / "report.html"
    old.write_text("yesterday's")
    for form in ("html", "ndjson"):
        done = inside("report", tmp_path / "none.log", "-f", form, "-o", old, folder=tmp_path)
        assert done.returncode == 6
        assert old.read_text() == "yesterday's"


@pytest.mark.parametrize("form", ["text", "json", "md", "html"])
def test_compare_names_the_draft_first_in_every_form(form, tmp_path):
    done = inside("compare", PLAIN, DRAFT, "-f", form, folder=tmp_path)
    assert done.returncode == 0
    assert "Draft CUDA graphs and Draft weights" in done.stdout


def test_compare_takes_boots_of_one_file_and_of_the_history(tmp_path):
    both = tmp_path / "both.log"
    both.write_bytes(recording("01-plain-file") + recording("08-multithread-load-pipe"))
    done = inside("compare", f"{both}#1", f"{both}#2", "-f", "json", folder=tmp_path)
    assert json.loads(done.stdout)["delta_s"] == -12.0
    assert inside("compare", f"{both}#1", f"{both}#3", folder=tmp_path).returncode == 2

    inside("history", "import", PLAIN, folder=tmp_path)
    boots = json.loads(inside("history", "list", "--json", folder=tmp_path).stdout)["boots"]
    number = str(boots[0].get("number") or boots[0].get("boot"))
    done = inside("compare", number, f"{both}#2", "-f", "json", folder=tmp_path)
    assert json.loads(done.stdout)["delta_s"] == -12.0
    done = inside("compare", "99", PLAIN, folder=tmp_path)
    assert done.returncode == 2
    assert "no such boot in the history" in done.stderr


def test_evidence_recorded_with_a_log_is_drawn_below_its_phases(tmp_path):
    server_log = tmp_path / "server.log"
    server_log.write_bytes(recording("01-plain-file"))
    began = hear(recording("01-plain-file")).snapshot.started_at_s
    assert began is not None
    with (tmp_path / "server.evidence.jsonl").open("w") as lines:
        for k in range(45):  # our clock stands two hours ahead of the log's
            process = {"pid": 7, "ppid": 1, "name": "sglang::scheduler", "role": "rank", "rank": "TP0", "state": "R"}
            sample = {"type": "evidence", "now_s": began + 7200 - 3 + k, "processes": [process | {"cpu_s": 3.0 * k}]}
            lines.write(json.dumps(sample) + "\n")
    page = inside("report", server_log, "-f", "html", folder=tmp_path).stdout
    assert "up to 3.0 cores" in page
    assert "as it was estimated when each phase began" in page


def test_a_start_is_asked_again_in_pieces_no_smaller_than_a_bar(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(hostile := b"\r" * 300_000 + b"\n" + b"a\r" * 30_000 + b"\n" + b"\r" * 300_000)
    pieces = list(_lines(str(path), None))
    assert len(pieces) < 20
    assert b"".join(pieces) == hostile
    frames = b"x\r\nloading: 10%|#  | 1/9\rloading: 20%|## | 2/9\rend"
    path.write_bytes(frames)
    assert list(_lines(str(path), None)) == [b"x\r\n", b"loading: 10%|#  | 1/9\r", b"loading: 20%|## | 2/9\r", b"end"]


def test_the_doctor_answers_0_and_says_what_to_do(tmp_path):
    done = inside("doctor", tmp_path / "none.log", folder=tmp_path)
    assert done.returncode == 0
    assert "no such file" in done.stdout
    data = json.loads(inside("doctor", PLAIN, "--json", folder=tmp_path).stdout)
    findings = {finding["id"]: finding for finding in data["findings"]}
    assert findings.keys() >= {"phasetrack", "patterns", "log", "process", "gpu", "port", "history", "terminal"}
    assert all(finding["advice"] for finding in data["findings"] if finding["state"] == "problem")
    assert findings["log"]["state"] == "ok"


def test_the_doctor_names_a_broken_pattern_file(tmp_path):
    broken = tmp_path / "mine.toml"
    broken.write_text("[[rule]]\n")
    done = inside("doctor", "--patterns", broken, folder=tmp_path)
    assert done.returncode == 0
    assert str(broken) in done.stdout
