"""Secrets out of text, before anything is stored, shown or exported.

What counts as one: the value of an argument, variable or header whose name says so (``api_key``, ``HF_TOKEN``,
``password``, ``Authorization``), credentials inside a URL, and tokens whose form alone tells (Hugging Face,
OpenAI, GitHub, AWS, Google, NVIDIA, Slack, JWT, private keys). The same text always gives the same result;
redacting twice changes nothing; the time it takes grows with the length of the text, whatever stands in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.lazy import later

if TYPE_CHECKING:
    from collections.abc import Iterator

MASK = "[redacted]"

_WORD = (
    r"(?:api[_-]?keys?|secrets?|passwo?r?d|passwd|passphrase|credentials?|(?:access|account|private|signing)[_-]?key"
    r"|token)"
)
# A name is tried from its first letter only, else a long row of dashes would be read from each of them.
_NAME = rf"(?<![\w.-])(?P<name>[\w.-]*{_WORD}(?:_?(?:id|value))?"
_VALUE = (
    r"(?P<value>\\(?P<quote>['\"]).*?\\(?P=quote)"  # inside a text that is itself quoted
    r"|'(?>(?:[^'\\]|\\.)*)(?:'|\Z)|\"(?>(?:[^\"\\]|\\.)*)(?:\"|\Z)"  # a line may be cut before the closing quote
    r"|\[[^\]\n]*\]?|[^\s,;&'\")\]}]+)"
)
# api_key='…', 'api_key': '…', HF_TOKEN=…; --api-key …, '--api-key', '…'
_NAMED = later(rf"{_NAME}\\?['\"]?\s{{0,4}}[=:]\s{{0,4}}){_VALUE}", re.IGNORECASE | re.DOTALL)
_OPTION = later(rf"{_NAME.replace('(?P<name>', '(?P<name>--', 1)}(?:['\"], ?| +)){_VALUE}", re.IGNORECASE | re.DOTALL)
_NOTHING = later(r"\\?['\"]?(?:None|null|True|False|\[redacted\]?)?\\?['\"]?\Z", re.IGNORECASE)
# What a tokenizer calls a token: a number or a special one.
_FIGURE = later(r"['\"]?(?:[\d.,]+|<[^>]*>)['\"]?\Z")
_SECRET_TOKEN = later(r"(?:auth|hf|hub|api|access|admin|session|refresh|bearer)[\w.-]*token", re.IGNORECASE)
# Settings that end in "token" and hold none.
_HARMLESS = later(
    r"(?:max|min|num|new|cached|pending|mask|pad|eos|bos|unk|cls|sep|input|output|draft|context|prefill|page|chunk|total"
    r"|stop|think|decode|extra|special|hidden|image|audio|video|first|last|next|vocab)[._-](?:[\w.-]*[._-])?token",
    re.IGNORECASE,
)
_URL = later(r"://[^\s/?#'\"]+@")
_QUERY = later(r"(?P<name>[?&](?P<key>[\w-]+)=)[^&\s'\"]+")
_QUERY_KEY = later(r"token|key|secret|sig|password|passwd|credential", re.IGNORECASE)
_HEADER = later(
    r"(?P<name>\bauthorization\\?['\"]?\s{0,4}[=:]\s{0,4}\\?['\"]?)"
    r"(?:(?:Bearer|Basic|Digest|Token|Negotiate) +)?[^\s'\",\\]+",
    re.IGNORECASE,
)
_BEARER = later(r"(?P<how>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_FORMS = later(
    r"\bhf_[A-Za-z0-9]{16,}"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bnvapi-[\w-]{20,}|\bdckr_pat_[\w-]{20,}"
    r"|\bxox[abprs]-[\w-]{10,}"
    r"|(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
# One cheap look that spares nearly every line the rest. Many searches for one text each are faster than one expression
# for any of them: 2 instead of 16 microseconds a line.
_WORDS = ("key", "token", "secret", "pass", "cred", "auth", "://", "bearer", "basic")
_SIGNS = (
    "hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_", "glpat", "AKIA", "ASIA", "AIza", "ya29", "nvapi",
    "dckr_", "xox", "eyJ",
)  # fmt: skip


def _may_hold_any(text: str, lower: str) -> bool:
    for word in _WORDS:
        if word in lower:
            return True
    return any(sign in text for sign in _SIGNS)


# Each form again by its first letters alone: such a search runs many times faster than the forms together, which
# are tried only where one of these is found.
_FORM_HEADS = tuple(
    (sign, later(sign + more))
    for sign, more in (
        ("hf_", r"[A-Za-z0-9]{16}"), ("sk-", r"[A-Za-z0-9_-]{16}"), ("ghp_", r"[A-Za-z0-9]{20}"),
        ("gho_", r"[A-Za-z0-9]{20}"), ("ghu_", r"[A-Za-z0-9]{20}"), ("ghs_", r"[A-Za-z0-9]{20}"),
        ("ghr_", r"[A-Za-z0-9]{20}"), ("github_pat_", r"\w{20}"), ("glpat-", r"[\w-]{16}"), ("AKIA", r"[A-Z0-9]{16}"),
        ("ASIA", r"[A-Z0-9]{16}"), ("AIza", r"[\w-]{35}"), ("ya29.", r"[\w-]{20}"), ("nvapi-", r"[\w-]{20}"),
        ("dckr_pat_", r"[\w-]{20}"), ("xox", r"[abprs]-[\w-]{10}"), ("eyJ", r"[\w-]{8}"), ("-----BEGIN ", ""),
    )
)  # fmt: skip
# What must stand in a name that speaks of a secret.
_NAME_LETTERS = re.compile(r"[\w.-]*")
_NAME_SIGNS = ("key", "secret", "pass", "credential", "token")


def redact(text: str) -> str:
    """Mask the secrets of a text; calling it twice is the same as once. Never raises."""
    lower = text.lower()
    if not _may_hold_any(text, lower):
        return text
    if any(sign in text and head.search(text) for sign, head in _FORM_HEADS):
        text = _FORMS.sub(MASK, text)
    if "authorization" in lower:
        text = _HEADER.sub(rf"\g<name>{MASK}", text)
    if "bearer" in lower or "basic" in lower:
        text = _BEARER.sub(rf"\g<how>{MASK}", text)
    if "://" in text:
        text = _URL.sub(f"://{MASK}@", text)
    if "?" in text or "&" in text:
        text = _QUERY.sub(_mask_query, text)
    text = _mask_named(text)
    return _OPTION.sub(_mask_value, text) if "--" in text else text


def _mask_named(text: str) -> str:
    """What ``_NAMED.sub`` does, but looking only where a name can be: arguments are 15 kB long."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose small form is two: places would not fit
        return _NAMED.sub(_mask_value, text)
    done, looked, parts = 0, 0, []
    for at in sorted(at for sign in _NAME_SIGNS for at in _places(lower, sign)):
        if at < looked:
            continue
        name = _name_at(text, at, looked)
        looked = name.end()
        found = _NAMED.match(text, name.start()) if name.start() >= done else None
        if found is not None:
            parts += [text[done : found.start()], _mask_value(found)]
            done = found.end()
            looked = max(looked, done)
    return "".join([*parts, text[done:]]) if parts else text


def _places(text: str, sign: str) -> Iterator[int]:
    at = text.find(sign)
    while at >= 0:
        yield at
        at = text.find(sign, at + 1)


def _name_at(text: str, at: int, floor: int) -> re.Match[str]:
    """The whole name around a place; nothing of it stands before ``floor``."""
    start = at
    while start > floor and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    found = _NAME_LETTERS.match(text, start)
    assert found is not None  # noqa: S101 - it may be empty
    return found


def _mask_query(found: re.Match[str]) -> str:
    return f"{found['name']}{MASK}" if _QUERY_KEY.search(found["key"]) else found[0]


def _mask_value(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if _NOTHING.match(value) or (_is_of_tokenizer(name) and (_FIGURE.match(value) or _HARMLESS.match(name))):
        return found[0]
    escape = "\\" if value[0] == "\\" else ""
    quote = escape + value[len(escape)] if value[len(escape) : len(escape) + 1] in {"'", '"'} else ""
    return f"{name}{quote}{MASK}{quote}"


def _is_of_tokenizer(name: str) -> bool:
    """Whether a name speaks of the tokens that a model reads, as far as a name can tell."""
    bare = name.lower()
    is_other = any(word in bare for word in ("key", "secret", "pass", "credential"))
    return "token" in bare and not is_other and _SECRET_TOKEN.search(bare) is None
