"""What is given away holds nobody's names, and still tells the same start."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrack.core.mask import Masker, masked, segments
from phasetrack.core.places import is_published
from phasetrack.views.jsonl import snapshot_json
from tests.talk import hear, recording, recordings

MASKED = {
    "model_path='/home/alice/models/Llama-3.1-8B'": "model_path='/home/user-1/models/Llama-3.1-8B'",
    "'/data/acme/ckpt-final/model-00001-of-00064.safetensors'": "'/data/dir-1/dir-2/model-00001-of-00064.safetensors'",
    "/mnt/projekt x/a": "/mnt/dir-1 x/a",
    "'/mnt/projekt x/bob y/a.bin'": "'/mnt/dir-1/dir-2/file-1.bin'",
    "cd ~/private/thing": "cd ~/dir-1/dir-2",
    "ls ~carol/x": "ls ~user-1/dir-1",
    "/root/.cache/huggingface/hub/models--acme--Qwen2.5-7B-Instruct/snapshots/ab12": (
        "/root/.cache/huggingface/hub/models--dir-1--Qwen2.5-7B-Instruct/snapshots/dir-2"
    ),
    "dist_init_addr='10.1.2.3:5000'": "dist_init_addr='ip-1:5000'",
    "dist_init_addr=node-3:5000": "dist_init_addr=host-1:5000",
    'INFO:     10.0.0.9:52292 - "POST /generate HTTP/1.1" 200 OK': (
        'INFO:     ip-1:52292 - "POST /generate HTTP/1.1" 200 OK'
    ),
    "listens on 2001:db8::12 and fe80::1%eth0": "listens on ip-1 and ip-2",
    "[2001:db8:0:0:0:0:0:1]:30000": "[ip-1]:30000",
    "link aa:bb:cc:dd:ee:ff and AA-BB-CC-DD-EE-FF": "link mac-1 and mac-2",
    "mail bob.smith+x@acme.example.io now": "mail email-1 now",
    "rsync alice@gpu-7:x": "rsync user-1@host-1:x",
    "http://gpu-7.cluster.acme.com:30000/v1/models": "http://host-2:30000/v1/models",
    "https://u:p@git.corp.local/team/x?token=abcdef": "https://[redacted]@host-1/dir-1/dir-2?token=[redacted]",
    "s3://acme-bucket/ckpt/llama": "s3://host-1/dir-1/llama",
    "gpu-7:4312:4312 [0] NCCL INFO eth0:10.1.2.3<0>": "host-1:4312:4312 [0] NCCL INFO eth0:ip-1<0>",
    "Nov 30 15:42:03 gpu-7 sglang[123]: ready": "Nov 30 15:42:03 host-1 sglang[123]: ready",
    "[pod/sglang-7d9f/server] [2026-11-30 15:42:03] x": "[pod/host-1/server] [2026-11-30 15:42:03] x",
    "HOSTNAME=gpu-node7 USER=alice": "HOSTNAME=host-1 USER=user-1",
    "(Engine pid=12, ip=10.0.0.3) x": "(Engine pid=12, ip=ip-1) x",
    "aws wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "aws [redacted]",
    "api_key='sk-proj-abcdefghijklmnop'": "api_key='[redacted]'",
}

KEPT = [
    "[2026-11-30 15:42:03 TP0] Load weight begin. avail mem=139.13 GB",
    "Capturing batches (bs=216 avail_mem=12.30 GB):  14%|█▍        | 5/36 [00:00<00:01, 18.69it/s]",
    "Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    "Uvicorn running on http://0.0.0.0:30000, ::1 and localhost",
    'INFO:     127.0.0.1:52292 - "GET /v1/models HTTP/1.1" 200 OK',
    '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 250, in recv',
    '  File "/opt/site/sglang/srt/entrypoints/engine.py", line 1340, in x',
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer",
    "torch.distributed.DistBackendError, sglang.srt.utils.common, nccl 2.28.9, torch-2.11.0.1, v1.2.3.4",
    "https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
    "c10::cuda::get a[::2] 12/64 tokens/s and/or",
    "model_path='meta-llama/Llama-3.1-8B-Instruct', host='127.0.0.1', node_rank=0",
]


@pytest.mark.parametrize(("text", "said"), MASKED.items())
def test_names_addresses_and_paths_are_masked(text, said):
    assert Masker().mask(text) == said


@pytest.mark.parametrize("text", KEPT)
def test_what_everybody_has_stays(text):
    assert Masker().mask(text) == text


def test_the_same_original_has_the_same_mask_everywhere():
    masker = Masker()
    assert masker.mask("/home/alice/x and 10.0.0.3") == "/home/user-1/dir-1 and ip-1"
    assert (
        masker.mask("10.0.0.4, 10.0.0.3: '/home/alice/y', user=alice")
        == "ip-2, ip-1: '/home/user-1/dir-2', user=user-1"
    )


def test_a_name_is_masked_where_it_stands_alone_once_it_is_known():
    masker = Masker()
    masker.learn("/home/alice/x")
    masker.learn("dist_init_addr=gpu-node7.acme.com:5000")
    assert masker.mask("alice's run, alice_llama on gpu-node7") == "user-1's run, user-1_llama on host-1"
    assert masker.mask("malice and alice2") == "malice and alice2"


def test_names_known_from_elsewhere_are_masked_from_the_first_line_on():
    assert Masker(users=["dora"], hosts=["rack9"]).mask("dora on rack9") == "user-1 on host-1"
    assert Masker(users=["root"], hosts=["localhost"]).mask("root on localhost") == "root on localhost"


def test_words_of_every_log_are_no_names_of_their_own():
    masker = Masker()
    masker.learn("/home/server/x")
    assert masker.mask("server_args=ServerArgs(x)") == "server_args=ServerArgs(x)"


def test_digits_are_told_apart_where_they_matter():
    """Lines are looked up with their digits blanked; addresses and names must not slip through by it."""
    masker = Masker()
    assert (
        masker.mask('INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200')
        == 'INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200'
    )
    assert masker.mask('INFO: 10.0.0.1:5 - "GET /health HTTP/1.1" 200') == 'INFO: ip-1:5 - "GET /health HTTP/1.1" 200'
    assert masker.mask("on gpu-8 now") == "on gpu-8 now"
    masker.learn("dist_init_addr=gpu-7:5000")
    assert masker.mask("on gpu-7 now") == "on host-1 now"
    assert masker.mask("on gpu-8 now") == "on gpu-8 now"
    assert masker.mask("key AKIA1") == "key AKIA1"
    assert masker.mask("key AKIA1234567890123456") == "key [redacted]"
    assert masker.mask("at 11:22:33 and 1.2.3") == "at 11:22:33 and 1.2.3"
    assert masker.mask("at 11:22:33:44:55:66") == "at mac-1"


def test_counts_tell_kinds_and_numbers_and_learning_is_not_counted():
    masker = Masker(users=["dora"])
    masker.learn("/home/alice/x")
    assert masker.counts == {}
    masker.mask("/home/alice/x alice 10.0.0.1 10.0.0.1 hf_abcdefghijklmnopqrstu")
    assert masker.counts == {"dir": (1, 1), "ip": (1, 2), "secret": (None, 1), "user": (1, 2)}


@given(st.lists(st.sampled_from([*MASKED, *KEPT]), max_size=4).map(" ".join))
def test_masking_twice_is_the_same_as_once(text):
    masker = Masker()
    once = masker.mask(text)
    assert masker.mask(once) == once


@given(st.text())
def test_any_text_can_be_masked(text):
    assert isinstance(Masker().mask(text), str)


@pytest.mark.parametrize(
    "text",
    [
        "/" * 60_000, "a/" * 30_000, "'/" * 30_000, "'" + "/a" * 30_000, "~" * 60_000, ".a" * 30_000, "a." * 30_000,
        "@" * 60_000, "a@" * 30_000, "a@b." * 15_000, ":" * 60_000, "ab:" * 20_000, "1." * 30_000, "//a" * 20_000,
        "host" * 15_000, "host=" * 12_000, "-" * 60_000, "A1b" * 20_000, "torch/" * 10_000, "/llama-1a" * 6_000,
        "'/" + "torch/" * 10_000 + "x.py'", "http://" * 8_000, "[pod/" * 12_000, "a-" * 30_000,
    ],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_no_text_takes_long(text):
    masker = Masker()
    masker.learn(text)
    assert isinstance(masker.mask(text), str)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("Llama-3.1-8B-Instruct", True), ("Meta-Llama-3-70B", True), ("Qwen2.5-VL-7B-Instruct", True),
        ("DeepSeek-R1-Distill-Qwen-32B", True), ("gpt-oss-120b", True), ("Qwen3-235B-A22B-FP8", True),
        ("Llama-3-acme-finetune", False), ("alice", False), ("", False), ("llama" + "-1a" * 60, False),
    ],
)  # fmt: skip
def test_published_model_names_are_told_from_private_ones(name, published):
    assert is_published(name) is published


def facts_of(data: bytes) -> list[object]:
    """What a report says of a start, but for names."""
    shown = snapshot_json(hear(data).snapshot)
    rows = [{key: value for key, value in row.items() if "offset" not in key} for row in shown["phases"]]
    failure = shown["failure"]
    return [
        rows,
        shown["outcome"],
        shown["startup_s"],
        shown["ready_line"],
        failure and (failure["id"], failure["line"]),
    ]


@pytest.mark.parametrize("name", recordings())
def test_a_masked_log_tells_the_same_start(name):
    masker, data = Masker(), recording(name)
    for segment in segments([data]):
        masker.learn(segment.text)
    clean = b"".join(masked(segments([data]), masker))
    assert facts_of(clean) == facts_of(data)
    assert clean.count(b"\n") == data.count(b"\n")


@given(st.lists(st.integers(0, 4000), max_size=6))
def test_how_a_log_was_chunked_changes_nothing(cuts):
    data = recording("06c-wrong-model-path")
    marks = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(marks)]
    assert b"".join(masked(segments(pieces), Masker())) == b"".join(masked(segments([data]), Masker()))


def test_escape_sequences_cannot_hide_a_secret():
    data = b"api_key='sk-\x1b[31mproj-abcdefghijklmnopqrstuvw'\x1b[0m /home/al\x1b[1mice/x\n"
    clean = b"".join(masked(segments([data]), Masker())).decode()
    assert clean == "api_key='[redacted]' /home/user-1/dir-1\n"


def test_a_secret_across_the_length_limit_is_not_cut_in_two():
    filler = ("word " * 20_000)[: 64 * 1024 - 11]
    data = f"{filler}hf_abcdefghijklmnopqrstuvwxyz0123 end\n".encode()
    clean = b"".join(masked(segments([data]), Masker())).decode()
    assert "hf_" not in clean
    assert "abcdefgh" not in clean
    assert clean.endswith("[redacted] end\n")


def test_json_of_a_masked_log_is_json():
    clean = b"".join(masked(segments([recording("06b2-truncated-shard")]), Masker()))
    assert json.loads(json.dumps(snapshot_json(hear(clean).snapshot)))["outcome"] == "failed"
