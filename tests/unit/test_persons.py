"""Who is named in a log is named in nothing that is shown, stored or exported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrack.core.persons import without_persons
from phasetrack.core.redact import redact
from phasetrack.core.secret_lines import SecretLines
from tests.talk import args, hear, log


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/alice/models/m", "/home/[user]/models/m"),
        ("cannot read '/home/alice'", "cannot read '/home/[user]'"),
        ("home/alice/x and /mnt/home/carol.b/x", "home/[user]/x and /mnt/home/[user]/x"),
        ("file:///Users/al-ice/x, /data/users/dave", "file:///Users/[user]/x, /data/users/[user]"),
        (r"C:\Users\Bob Smith\x, 'C:\\Users\\bob\\x'", r"C:\Users\[user]\x, 'C:\\Users\\[user]\\x'"),
        ("PATH=/home/bob/bin:/home/carl/bin", "PATH=/home/[user]/bin:/home/[user]/bin"),
        ("~eve/y", "~[user]/y"),
        ("by bob.smith@acme.co.uk.", "by [e-mail]."),
        ("http://10.20.30.40:30000/v1", "http://x.x.x.40:30000/v1"),
        ("(10.0.0.4, 20000) host='192.168.1.7'", "(x.x.x.4, 20000) host='x.x.x.7'"),
        ("[2001:db8::77]:5000, fe80::1%eth0", "[x::77]:5000, x::1%eth0"),
        ("postgres://me:pw@10.9.8.7/x", "postgres://[redacted]@x.x.x.7/x"),
    ],
)
def test_who_is_named_is_masked_and_what_helps_stays(text, masked):
    assert redact(text) == masked
    assert redact(masked) == masked
    assert SecretLines().redact(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "/home/ubuntu/models and /home/work/models and /root/x and ~/x",
        "127.0.0.1:30000 0.0.0.0 [::1]:5000 :: localhost",
        "nvidia-curand-cu12==10.3.5.147 cudnn_version=9.1.0.70 driver version: 550.90.7.1 torch-2.1.0.1",
        "c10::cuda at::Tensor be::add a::b std::vector 12:34:56 2026-11-30 10:00:00",
        "image@sha256:abc pkg@1.2.3 a @ b",
        "https://x.net/users/5/me",
        "/home/user-1/dir-2",
    ],
)
def test_what_names_no_one_stays(text):
    assert without_persons(text) == text


def test_arguments_hold_no_person_and_can_still_be_read():
    said = args(tp_size=1, model_path="/home/alice/models/Qwen3-8B", host="10.20.30.40")
    known = hear(log(f"42:00 | {said}\n42:10 | Load weight begin. avail mem=139.13 GB\n")).snapshot
    arguments = known.facts["server_args"]
    assert isinstance(arguments, dict)
    assert arguments["model_path"] == "/home/[user]/models/Qwen3-8B"
    assert arguments["host"] == "x.x.x.40"


@given(st.text(st.sampled_from("ab1.:@/~\\ homeUsrs0fx[]-%"), max_size=60))
def test_masking_twice_changes_nothing_and_never_raises(text):
    once = redact(text)
    assert redact(once) == once
