"""Secrets in the forms in which logs hold them, and what looks like one and is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasetrack.core.mask import Masker, masked, segments
from phasetrack.core.plan import parse_args
from phasetrack.core.redact import MASK, redact
from phasetrack.core.secret_lines import SecretLines
from phasetrack.core.secret_names import Name, kind_of
from phasetrack.views.events import json_line
from phasetrack.views.jsonl import dumps, snapshot_json
from tests.talk import hear, log

SECRET = "Zq7-plum.Tree_42"  # noqa: S105 - what must not come out
FORM = {
    "hugging face": "hf_AbCdEfGhIjKlMnOpQrStUvWx",
    "openai": "sk-proj-AbCdEfGhIjKlMnOpQrSt",
    "github": "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "github fine": "github_pat_11ABCDEFG0aBcDeFgHiJkLmN",
    "gitlab": "glpat-AbCdEfGhIjKlMnOpQrSt",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA-AbCdEfGhIjKlMnOpQrStUvWxYz01234",
    "nvidia": "nvapi-AbCdEfGhIjKlMnOpQrStUvWx",
    "slack": "xoxb-123456789012-AbCdEfGh",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "pem": "-----BEGIN RSA PRIVATE KEY-----MIIEowIBAAKCAQEA",
}


@pytest.mark.parametrize(
    "text",
    [
        "api_key='{}'",
        'api_key="{}"',
        "api_key={}, port=30000",
        "api_keys=['{}', 'x']",
        "ServerArgs(model_path='m', api_key='{}', admin_api_key=None)",
        "ServerArgs(model_path='m', admin_api_key='{}', tp_size=1)",
        "server_args={{'model_path': 'm', 'api_key': '{}', 'tp_size': 1}}",
        "'api_key': '{}'",
        '"api_key": "{}"',
        '{{\\"api_key\\": \\"{}\\"}}',
        "api_key='{}",
        "ssl_keyfile_password='{}'",
        "python -m sglang.launch_server --api-key {} --port 30000",
        "python -m sglang.launch_server --api-key={} --port 30000",
        "--admin-api-key '{}'",
        "['--api-key', '{}']",
        "HF_TOKEN={}",
        "export HUGGING_FACE_HUB_TOKEN={}",
        "AWS_SECRET_ACCESS_KEY={}",
        "aws_session_token: {}",
        "AccountKey={};EndpointSuffix=x",
        "WANDB_API_KEY: {}",
        "password: {}",
        "passwd={}",
        "passphrase = '{}'",
        "client_secret={}&x=1",
        "superuser_token={}",
        "operator-token: {}",
        "Authorization: Bearer {}",
        "authorization: {}",
        "'Authorization': 'Bearer {}'",
        "{{'authorization': 'Basic {}'}}",
        "X-Api-Key: {}",
        "-H 'Authorization: Bearer {}'",
        "https://user:{}@example.com/x",
        "redis://:{}@10.0.0.1:6379/0",
        "git+https://{}@example.com/x.git",
        "s3://bucket/x?X-Amz-Signature={}&x=1",
        "https://example.com/x?a=1&token={}",
        "https://example.com/x?sig={}",
    ],
)
def test_a_value_whose_name_says_secret_is_masked(text):
    said = text.format(SECRET)
    masked = redact(said)
    assert SECRET not in masked
    assert MASK in masked
    assert redact(masked) == masked


NAMES = [
    "api_key", "--api-key", "HF_TOKEN", "HF_TOKEN_READ", "OPENAI_API_KEY_OLD", "SECRET_KEY_2", "secret_key_base",
    "DB_PASS", "MYSQL_PWD", "pwd", "encryption_key", "ssh_key", "access_tokens", "creds", "dbPassword", "apiKey",
    "x-api-key", "client.secret", "session_token", "set-cookie", "COHERE_KEY", "HFTOKEN", "passphrase2",
]  # fmt: skip
VALUES = [
    "{}", "'{}'", '"{}"', "b'{}'", 'SecretStr("{}")', "Optional('{}')", "('{}',)", "['x', ['{}']]", "{{'a': '{}'}}",
    '"""{}"""', "'''{}'''", r"'it\'s {}'", "'it''s {}'", r'"a\"{}"', r"\"{}\"", r"\\\"{}\\\"", "$(echo {})",
    "'{}", "['{}", '"two words {}"', "a,{}", "a&{}", "a]{}",
]  # fmt: skip
JOINTS = ["=", ": ", "      : ", "     =     ", ":\t", "=  ", " := ", "%3D", " => ", "=\n  "]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_masked_to_the_end_of_its_whole_form(name, value):
    for joint in JOINTS:
        said = f"env {name}{joint}{value.format(SECRET)} port=30000"
        assert SECRET not in redact(said), said
        assert redact(redact(said)) == redact(said)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "('{name}', '{}')", "(b'{name}', b'{}')", '["{name}", "{}"]', "('{name}', SecretStr('{}'))",
        '{{"name":"{name}","value":"{}"}}', '{{"name": "{name}",\n "value": "{}"}}',
        "EnvVar(name='{name}', value='{}')",
        "- name: {name}\n  value: {}", "'{name}': '{}'", r"\"{name}\": \"{}\"", "environ['{name}'] = '{}'",
        "<{name}>{}</{name}>", "{name} is {}", "{name} is set to {}", "{name} | {}", "?{name}={}&x=1",
    ],
)  # fmt: skip
def test_a_name_and_its_value_are_a_pair_in_many_forms(name, text):
    assert SECRET not in redact(text.format(SECRET, name=name))


@pytest.mark.parametrize(
    "text",
    [
        "--api-key\t{}", "--api-key   {}", '["--api-key",  "{}"]', "--api-key \\\n  {}", '- "--api-key"\n- "{}"',
        "Authorization: ApiKey {}", "Authorization: {}", "-H 'authorization: AWS4-HMAC {}'",
        "b'authorization', b'X {}'",
        'Proxy-Authorization: Digest username="me", response="{}"', "cookie: theme=dark; session={}", "API key: {}",
        "secret  key = {}", "pass\u200bword={}", "api_key=\u200b{}", "postgresql://user:p#{}@h/db",
        "postgresql://user:p/{}@h/db", "postgresql://user:p'{}@h/db", "postgresql://user:a@{}@h/db", "api_key={}, x@y",
        "-----BEGIN PRIVATE KEY-----\n{}\nabc=\n-----END PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_a_secret_of_its_own_kind_of_form_is_masked(text):
    masked = redact(text.format(SECRET))
    assert SECRET not in masked
    assert redact(masked) == masked


def test_what_stands_behind_a_secret_stays():
    assert redact(f"api_key=SecretStr('{SECRET}'), tp_size=8") == "api_key=[redacted], tp_size=8"
    assert redact(f"--api-key {SECRET} --port 30000") == "--api-key [redacted] --port 30000"
    assert redact(f"('HF_TOKEN', '{SECRET}'), ('TP', '8')") == "('HF_TOKEN', '[redacted]'), ('TP', '8')"
    assert redact(f"redis://u:a@{SECRET}@h:1/0 is up") == "redis://[redacted]@h:1/0 is up"
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"
    assert redact(f"bad key {key} in x") == "bad key [redacted] in x"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("api_key", Name.SECRET), ("x-api-key", Name.SECRET), ("secret_key_base", Name.SECRET),
        ("hfToken", Name.SECRET),
        ("max_token_password", Name.SECRET), ("NEW_USER_TOKEN", Name.COUNTED), ("token", Name.COUNTED),
        ("superuser_token", Name.COUNTED), ("proxy-authorization", Name.HEADER), ("key", Name.PLAIN),
        ("KeyError", Name.PLAIN), ("cache_key", Name.PLAIN), ("missing_keys", Name.PLAIN), ("tokenizer", Name.PLAIN),
        ("max_new_tokens", Name.PLAIN), ("eos_token", Name.PLAIN), ("key_value", Name.PLAIN), ("bypass", Name.PLAIN),
        ("session.py", Name.PLAIN), ("kv_keys", Name.PLAIN), ("forward_pass", Name.PLAIN), ("author", Name.PLAIN),
    ],
)  # fmt: skip
def test_a_name_tells_by_its_words(name, kind):
    assert kind_of(name) is kind


@pytest.mark.parametrize("value", FORM.values(), ids=FORM.keys())
@pytest.mark.parametrize("text", ["{}", "/srv/{}/model", "x={}", "key '{}' is wrong", "({})", "a {} b"])
def test_a_secret_whose_form_tells_is_masked_wherever_it_stands(text, value):
    masked = redact(text.format(value))
    assert value not in masked
    assert redact(masked) == masked


@pytest.mark.parametrize("name", ["password", "api_key", "secret", "hf_token", "auth_token"])
def test_a_secret_of_figures_alone_is_one_too(name):
    assert "123456" not in redact(f"{name}='123456'")
    assert "123456" not in redact(f"{name}=123456")


@pytest.mark.parametrize(
    "text",
    [
        "ServerArgs(api_key=None, admin_api_key=None, ssl_keyfile_password=None)",
        "api_key=''",
        "Decode batch, #running-req: 1, #token: 48, token usage: 0.00, gen throughput (token/s): 1.58, #queue-req: 0",
        "Prefill batch, #new-seq: 1, #new-token: 11, #cached-token: 0, token usage: 0.00, #pending-token: 0",
        "max_total_num_tokens=1919335, chunked_prefill_size=8192, context_len=8192",
        "ServerArgs(tokenizer_path='/srv/models/m', tokenizer_mode='auto', tokenizer_worker_num=1)",
        "kt_max_deferred_experts_per_token=None, speculative_num_draft_tokens=3, speculative_token_map=None",
        "eos_token='</s>', pad_token=<pad>, mask_token=<|MASK|>, mask_token_id=12, bos_token='BOS'",
        "stop_token_ids=None, num_reserved_decode_tokens=512, max_prefill_tokens=16384",
        "Auto-detected --tool-call-parser as 'qwen25' from chat template",
        "Loading weights from /srv/models/secret-sauce",
        "KeyError: 'model.layers.0.self_attn.qkv_proj'",
        "model://srv/x",
        "http://127.0.0.1:30000/v1/models?a=b@c",
        "Basic setup done",
        "the disk-cache-of-many-long-words is full",
        "key: value",
        "cache_key=abc",
        "max_total_tokens=1919335",
        "key 'lm_head.weight' not found",
        "missing keys: ['model.layers.0.weight']",
        "--url file:///etc/passwd: not an HTTP URL",
        "session.py:45] the radix cache is on",
        "Collecting google-auth>=1.0.1 (from kubernetes)",
        "google-auth==2.1.0",
        '["Compiling num tokens", "TP0", 58.0]',
        '"comm": "sglang::detoken", "cmd": "x"',
        "stop_token_ids: [151643, 151645], tokens: [1, 2, 3]",
        "pass 1: 31.2 s, forward_pass=fused, PassConfig(enable_fusion=True)",
        "http://[::1]:30000/a@b and http://h:1/x@y",
    ],
)
def test_what_only_looks_like_a_secret_stays(text):
    assert redact(text) == text


def test_redacted_arguments_can_still_be_read():
    args = parse_args(f"ServerArgs(model_path='m', api_key='{SECRET}', tp_size=8, served_model_name='a, b=c')")
    assert args == {"model_path": "m", "api_key": MASK, "tp_size": 8, "served_model_name": "a, b=c"}
    args = parse_args(f"{{'model_path': 'm', 'api_key': '{SECRET}', 'tp_size': 8}}")
    assert args == {"model_path": "m", "api_key": MASK, "tp_size": 8}


def lines(text: str) -> str:
    """A text as a log's lines are redacted: one by one."""
    secrets = SecretLines()
    return "\n".join(secrets.redact(line) for line in text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\n{0}\n{0}{0}\nab=\n-----END RSA PRIVATE KEY-----",
        "Error: -----BEGIN PRIVATE KEY-----\nProc-Type: 4,{0}\n\n(Worker pid=1) {0}\n-----END PRIVATE KEY-----",
        "HF_TOKEN=\n{}", "HF_TOKEN=\n\n{}", '"api_key":\n   "{}",', '"name": "HF_TOKEN",\n"value": "{}"',
        '{{\n  "name": "HF_TOKEN"\n  , "value": "{}"\n}}', "- name: HF_TOKEN\n  value: {}", "--api-key \\\n  {} --x",
        "- --api-key\n- {}", "'--api-key',\n'{}',", "api_key='xx\n{}'", "api_key=SecretStr(\n  '{}'\n)",
        '"credentials": {{\n "type": "x",\n "a": {{\n "b": "{}"\n }}\n}}', 'password="""\na\n{}\n"""',
        "2026-11-30T10:00:00Z api_key=\n2026-11-30T10:00:01Z {}",
    ],
)  # fmt: skip
def test_a_secret_may_go_on_in_the_next_line(text):
    assert SECRET not in lines(text.format(SECRET))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("secret", ["Zq00000000w9", "Zq........w9", "Zqabcdefghw9", "Zq+//++//w9"])
def test_a_value_of_any_form_may_stand_below_its_name(secret, value):
    for name in NAMES:
        assert secret not in lines(f"{name}=\n  {value.format(secret)}"), name


def test_lines_behind_a_secret_of_several_lines_stay():
    key = "-----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY----- done"
    assert lines(f"a {key}\nready") == "a [redacted]\n[redacted]\n[redacted] done\nready"
    assert lines('"secrets": {\n"a": "b"}, "x": 1\n"y": 2') == '"secrets": [redacted]\n[redacted], "x": 1\n"y": 2'


@pytest.mark.parametrize(
    "behind",
    [
        "[2026-11-30 15:42:03] Load weight begin.",
        "Traceback (most recent call last):",
        '  File "/x/a.py", line 1, in f',
        "The server is up",
        "",
    ],
)
def test_a_line_that_is_no_value_stays_below_a_name_without_one(behind):
    assert lines(f"enter the password:\n{behind}\nThe end.") == f"enter the password:\n{behind}\nThe end."


def test_a_key_without_an_end_does_not_hide_the_rest_of_a_log():
    said = lines("-----BEGIN PRIVATE KEY-----\nMIIEabc\n" + "[2026-11-30 15:42:03] a message\n" * 3 + "ready\n" * 300)
    assert said.count("a message") == 3
    assert said.count("ready") > 90


PLANTED = st.text("abcdefghXYZ0123456789_-.+/", min_size=8, max_size=40).map(lambda text: f"Zq{text}w9")
PLACES = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(JOINTS), st.sampled_from(VALUES)).map("".join),
    st.tuples(st.sampled_from(["('@', b'{}')", '"name": "@",\n "value": "{}"']), st.sampled_from(NAMES)).map(
        lambda drawn: drawn[0].replace("@", drawn[1])
    ),
    st.sampled_from(["--api-key \\\n {}", "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----"]),
    st.sampled_from(["Authorization: Own {}", "cookie: a={}; b=c", "s3://me:{}@bucket/x", "https://h/x?sig={}"]),
)


@given(PLACES, PLANTED, st.sampled_from(["", "x ", "(", "ERROR "]), st.sampled_from(["", ", tp_size=8", " x", "\nx"]))
def test_no_planted_secret_survives(place, secret, before, behind):
    said = before + place.format(secret) + behind
    assert secret not in redact(said)
    assert secret not in lines(said)


@settings(max_examples=25, deadline=None)
@given(PLACES, PLANTED)
def test_no_planted_secret_stands_in_what_is_made_of_a_log(place, secret):
    data = log(
        """
        42:00     | server_args=ServerArgs(model_path='m', tp_size=1)
        42:09     | Init torch distributed begin.
        42:10     | Load weight begin. avail mem=139.13 GB
        42:20     | Scheduler hit an exception: Traceback (most recent call last):
                  |   File "/x/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process
        """
    ).encode()
    data += f"RuntimeError: env {place.format(secret)}\nenv {place.format(secret)}\n".encode()
    heard = hear(data)
    assert heard.snapshot.failure is not None
    assert secret not in dumps(snapshot_json(heard.snapshot))
    assert all(secret not in json_line(record, heard.snapshot.zone) for record in heard.records)
    assert secret.encode() not in b"".join(masked(segments([data]), Masker()))


_NAMES = ("api_key", "token", "password", "--", "Bearer ", "Authorization", "sk-", "hf_", "eyJ", "redacted", MASK)
_SIGNS = ("=", ":", " ", "'", '"', "\\", "[", "]", "://", "@", "?", "&", ".", "-", ",")
PIECES = st.sampled_from((*_NAMES, *_SIGNS, "a", "9", "None", "Zq7plumTree42Zq7plumTree42"))


@given(st.lists(PIECES, max_size=14).map("".join))
def test_redacting_twice_is_redacting_once(text):
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "unit",
    [
        "-", "a.", "eyJ-", "token", "?token", "://", "'", '"', " ", "token='", 'key=\\"', "x@", "://a:", "token=(",
        "token=\\", "api_key=[", "'token', ", "api key ", 'cookie: a="', "\\", "token=<", "--token \\\n", "token=${",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tail", ["", "key", "://", "token="])
def test_a_hostile_text_is_answered_in_time_of_its_length(unit, tail):
    """A rule that read on from each of its letters would be at it for minutes."""
    redact(unit * (200_000 // len(unit)) + tail)
