"""Secrets in the forms in which logs hold them, and what looks like one and is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrack.core.plan import parse_args
from phasetrack.core.redact import MASK, redact

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
    ],
)
def test_what_only_looks_like_a_secret_stays(text):
    assert redact(text) == text


def test_redacted_arguments_can_still_be_read():
    args = parse_args(f"ServerArgs(model_path='m', api_key='{SECRET}', tp_size=8, served_model_name='a, b=c')")
    assert args == {"model_path": "m", "api_key": MASK, "tp_size": 8, "served_model_name": "a, b=c"}
    args = parse_args(f"{{'model_path': 'm', 'api_key': '{SECRET}', 'tp_size': 8}}")
    assert args == {"model_path": "m", "api_key": MASK, "tp_size": 8}


_NAMES = ("api_key", "token", "password", "--", "Bearer ", "Authorization", "sk-", "hf_", "eyJ", "redacted", MASK)
_SIGNS = ("=", ":", " ", "'", '"', "\\", "[", "]", "://", "@", "?", "&", ".", "-", ",")
PIECES = st.sampled_from((*_NAMES, *_SIGNS, "a", "9", "None", "Zq7plumTree42Zq7plumTree42"))


@given(st.lists(PIECES, max_size=14).map("".join))
def test_redacting_twice_is_redacting_once(text):
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "unit", ["-", "a.", "eyJ-", "token", "?token", "://", "'", '"', " ", "token='", 'key=\\"', "x@"]
)
@pytest.mark.parametrize("tail", ["", "key", "://", "token="])
def test_a_hostile_text_is_answered_in_time_of_its_length(unit, tail):
    """A rule that read on from each of its letters would be at it for minutes."""
    redact(unit * (200_000 // len(unit)) + tail)
