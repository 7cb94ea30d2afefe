"""Secrets out of text, before anything is stored, shown or exported.

What counts as one: the value of an argument or variable whose name says so (``api_key``, ``HF_TOKEN``,
``password``), credentials inside a URL, and tokens whose form alone tells (Hugging Face, OpenAI, GitHub,
AWS, Slack, JWT, Bearer). The same text always gives the same result; redacting twice changes nothing.
"""

from __future__ import annotations

import re

MASK = "[redacted]"

_WORD = r"(?:api[_-]?key|secret|passwo?r?d|passwd|access[_-]?key|auth[_-]?token|hf[_-]?token|token)"
_NAME = rf"[\w.-]*{_WORD}(?:_?(?:id|value))?"
_VALUE = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s,;&'\")\]}]+)"
# api_key='…', 'api_key': '…', --api-key …, HF_TOKEN=…; never None, numbers, or a mere mention of tokens
_NAMED = re.compile(
    rf"(?P<name>['\"]?(?<![\w.-]){_NAME}['\"]?\s*(?:=|:)\s*|--{_NAME}[ =])(?P<value>{_VALUE})", re.IGNORECASE
)
_PLAIN = re.compile(r"['\"]?(?:None|null|True|False|true|false|[\d.,]+|<[^>]*>|\[redacted\])?['\"]?\Z")
# settings that end in "token" and hold none
_HARMLESS = re.compile(
    r"(?:max|min|num|new|cached|pending|swa|full|mask|pad|eos|bos|per|each|input|output|draft|context|prefill|page|chunk"
    r"|total|stop|think|bytes_per|decode|extra|special|hidden|image|audio|video|first|last|next|vocab)[\w.#-]*token",
    re.IGNORECASE,
)
_URL = re.compile(r"(?P<scheme>\b[a-zA-Z][\w+.-]*://)(?P<who>[^\s/@'\"]+)@")
_QUERY = re.compile(
    r"(?P<name>[?&](?:[\w-]*(?:token|key|secret|sig|signature|password|credential)[\w-]*)=)[^&\s'\"]+", re.IGNORECASE
)
_FORMS = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}\b"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bgithub_pat_\w{20,}\b|\bglpat-[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
)
_BEARER = re.compile(r"(?P<how>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# One cheap look that spares nearly every line the rest.
_HINT = re.compile(
    r"[Kk][Ee][Yy]|[Tt][Oo][Kk][Ee][Nn]|[Ss][Ee][Cc][Rr]|[Pp][Aa][Ss][Ss]|://|hf_|sk-|gh[pousr]_|github_|glpat|AKIA|ASIA|xox|eyJ|[Bb]earer|[Bb]asic"
)


def redact(text: str) -> str:
    """Mask the secrets of a text; calling it twice is the same as once. Never raises."""
    if _HINT.search(text) is None:
        return text
    text = _NAMED.sub(_mask_value, text)
    text = _URL.sub(rf"\g<scheme>{MASK}@", text)
    text = _QUERY.sub(rf"\g<name>{MASK}", text)
    text = _BEARER.sub(rf"\g<how>{MASK}", text)
    return _FORMS.sub(MASK, text)


def _mask_value(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if _PLAIN.match(value) or value.startswith(MASK[:-1]) or _HARMLESS.search(name):
        return found[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{name}{quote}{MASK}{quote}"
