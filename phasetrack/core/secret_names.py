"""Which names say that their value is a secret: told by the words of a name, not by its letters.

``OPENAI_API_KEY_OLD``, ``--hf-token``, ``x-api-key``, ``dbPassword`` and ``access_tokens`` do; ``max_new_tokens``,
``tokenizer_path``, ``cache_key`` and ``KeyError`` do not. An unknown name with a telling word counts as one: a figure
masked in vain is the smaller loss.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class Name(Enum):
    """What a name says of its value."""

    PLAIN = "nothing"
    COUNTED = "a secret, unless it is a figure"  # "token: 48" and "token: Zq7plum" bear the same name
    SECRET = "a secret"  # noqa: S105 - a word for one
    HEADER = "a secret of several words"  # Authorization: ApiKey Zq7plum


# One of these letters stands in each name that is not plain, whatever its case.
SIGNS = ("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "session")

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_LETTERS = re.compile(r"[^a-z]+")
_SOURCE_FILE = re.compile(r"\.(?:py|pyx|cc?|cpp|cu|cuh|h|hpp|rs|go|js|ts|so)\Z")
# Longer names are no one's: their end tells.
_LIMIT = 200

_HEADERS = {"authorization", "cookie", "cookies"}
_ALWAYS = re.compile(r"(?:passw(?:or)?d|passphrase|passcode|pwd|secret|credential|cred)s?\Z")
_SOMETIMES = re.compile(r"(?:(?:\A|db|user|admin)pass|\Aauth|\Aoauth|\Asessions?)\Z")
_KEY_OR_TOKEN = re.compile(r"(?P<whose>[a-z]*?)(?:key|token)s?\Z")
# Whose keys and tokens open something, whatever else stands in the name.
_OPENING = {
    "access", "account", "admin", "anthropic", "api", "app", "auth", "aws", "azure", "bearer", "bot", "client", "csrf",
    "deploy", "encryption", "gcp", "github", "gitlab", "hf", "hmac", "hub", "huggingface", "jwt", "license", "master",
    "oauth", "openai", "personal", "private", "refresh", "secret", "security", "service", "session", "signing", "slack",
    "ssh", "ssl", "storage", "subscription", "tls", "wandb",
}  # fmt: skip
# Tokens that a model reads, and what is told of them.
_OF_MODELS = {
    "accept", "accepted", "audio", "avg", "batch", "begin", "bos", "budget", "cache", "cached", "chunk", "chunked",
    "cls", "completion", "config", "context", "count", "decode", "detoken", "dispatcher", "draft", "embed", "embedding",
    "embeddings", "end", "eos", "extend", "extra", "first", "full", "generated", "hidden", "id", "ids", "image",
    "index", "indices", "input", "kv", "last", "len", "length", "level", "limit", "logits", "logprob", "logprobs",
    "map", "mask", "max", "mean", "min", "new", "next", "num", "number", "output", "pad", "page", "parser", "pending",
    "per", "pool", "position", "positions", "prefill", "prefix", "prompt", "ratio", "reserved", "sep", "seq", "size",
    "special", "speculative", "step", "stop", "subtoken", "swa", "think", "throughput", "to", "topk", "total", "type",
    "types", "unk", "usage", "used", "video", "vision", "vocab", "window",
}  # fmt: skip
# Keys of tables, states and caches.
_OF_TABLES = {
    "arg", "args", "attention", "attn", "batch", "bias", "block", "bucket", "by", "cache", "column", "config", "cuda",
    "data", "decoder", "dict", "dtype", "dup", "duplicate", "encoder", "error", "errors", "expected", "file", "files",
    "first", "foreign", "graph", "group", "hash", "head", "heads", "ignored", "invalid", "json", "kernel", "kv",
    "label", "last", "layer", "layers", "len", "length", "lm", "lookup", "max", "metric", "min", "missing", "model",
    "name", "names", "new", "next", "num", "object", "op", "page", "param", "params", "partition", "prefix", "primary",
    "proj", "public", "query", "request", "rope", "route", "routing", "row", "scale", "self", "shape", "shard", "size",
    "sort", "state", "states", "tensor", "total", "transformer", "type", "unexpected", "unknown", "value", "values",
    "weight", "weights",
}  # fmt: skip
# Passes, sessions and their parts.
_OF_PROGRAMS = {
    "backward", "bwd", "cache", "config", "controller", "count", "cuda", "custom", "enable", "enabled", "error",
    "first", "forward", "full", "fusion", "fwd", "graph", "handler", "inductor", "last", "manager", "max", "method",
    "middleware", "min", "mode", "multi", "new", "next", "num", "one", "params", "parser", "post", "prefill",
    "provider", "scheme", "second", "single", "size", "streaming", "timeout", "total", "two", "type", "warmup",
}  # fmt: skip


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Name:
    """Tell what a name (letters, digits, ``_``, ``-``, ``.``) says of its value."""
    if _SOURCE_FILE.search(name):  # session.py:12
        return Name.PLAIN
    words = set(_NO_LETTERS.split(_HUMPS.sub("_", name[-_LIMIT:]).lower()))
    if words & _HEADERS:
        return Name.HEADER
    if any(_ALWAYS.search(word) for word in words):
        return Name.SECRET
    found = [match for word in words if (match := _KEY_OR_TOKEN.match(word)) is not None]
    if found and (words & _OPENING or any(match["whose"] in _OPENING for match in found)):
        return Name.SECRET
    if any("token" in match[0] for match in found):  # NEW_USER_TOKEN is somebody's variable, new_token is not
        return Name.PLAIN if words & _OF_MODELS and not name.isupper() else Name.COUNTED
    if found:  # a key alone is any table's
        return Name.PLAIN if words & _OF_TABLES or words <= {"key", "keys", ""} else Name.SECRET
    if words & _OF_PROGRAMS:
        return Name.PLAIN
    if any(_SOMETIMES.search(word) for word in words):  # DB_PASS=1234, but "pass 2: 31 s" and google-auth==2.1.0
        return Name.SECRET if name.isupper() else Name.COUNTED
    return Name.PLAIN
