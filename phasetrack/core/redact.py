"""Secrets and persons out of text, before anything is stored, shown or exported.

A secret is the value behind a name that says so (``api_key``, ``HF_TOKEN``, ``password``, ``Authorization``;
``secret_names`` tells which), credentials inside a URL, and tokens whose form alone tells (Hugging Face, OpenAI,
GitHub, AWS, Google, NVIDIA, Slack, JWT, private keys). In doubt a value is masked, and to the end of its whole form
(``secret_values``). What counts as a person is told by ``persons``. The same text always gives the same result;
redacting twice changes nothing; the time it takes grows with the length of the text, whatever stands in it.

A secret may go on in the next line: ``SecretLines`` is for lines that come one by one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.lazy import later
from phasetrack.core.persons import without_persons
from phasetrack.core.secret_names import SIGNS, Name, kind_of
from phasetrack.core.secret_values import value_end

if TYPE_CHECKING:
    from collections.abc import Iterator

MASK = "[redacted]"

# --- what its form tells ----------------------------------------------------------------------------

KEY_BEGINS = r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
KEY_ENDS = r"-----END [A-Z ]*-----"
_FORMS = later(
    r"\bhf_[A-Za-z0-9]{16,}"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bnvapi-[\w-]{20,}|\bdckr_pat_[\w-]{20,}"
    r"|\bxox[abprs]-[\w-]{10,}"
    r"|(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+"
    rf"|{KEY_BEGINS}(?:.*?{KEY_ENDS}|.*)",
    re.DOTALL,
)
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
_BEARER = later(r"(?P<how>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_QUERY = later(r"(?P<name>[?&#](?P<key>[\w-]+)=)(?!\[redacted\](?:[,;]|\Z))[^&\s'\"]+")
_QUERY_KEY = later(r"token|key|secret|sig|pass|pwd|auth|cred|code\Z", re.IGNORECASE)

# --- what stands between a name and its value -------------------------------------------------------

_LETTERS = re.compile(r"[\w.-]*")
_INVISIBLE = later("[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_SHUT = r"\\*+['\"`]?+"
# api_key='…', "api_key": "…", environ['HF_TOKEN'] = …, HF_TOKEN%3D…, HF_TOKEN is set to …, <api_key>…, api_key | …
_JOINT = later(
    rf"{_SHUT}(?:\]?+\s*+(?:[:=\uff1a\uff1d]{{1,3}}+>?|[-=]>|%(?:25)?3[ad]|&#\w{{2,3}};|[|\u2502])"
    r"|\s++is(?: set to)?(?= \S*\d)|>(?!=))(?>(?:%20|\s|\\\s)*)",
    re.IGNORECASE,
)
# --api-key …, '--api-key', '…', and over lines: --api-key \, - --api-key
_OPTION = later(
    r"(?:\\*+['\"](?:\s*+,\s*+|[ \t]*+(?:\n\s*+-\s++)?)|[ \t]++(?:\\\s++)?|\s*+\\\s++|[ \t]*+\n\s*+-\s++)"
    r"(?=[^\s,])(?!\\*+['\"]?--|\\\s*+\Z)"
)
# {"name": "HF_TOKEN", "value": "…"}, name: HF_TOKEN, value: …
_FIELD = later(rf"{_SHUT}\s*+,?+\s*+\\*+['\"]?value{_SHUT}\s*+[:=]\s*+", re.IGNORECASE)
# ('HF_TOKEN', '…'), (b'x-api-key', b'…')
_PAIR = later(r"\\*+['\"]\s*+,\s*+(?=(?:[bBrRuU]|[A-Za-z_][\w.]{0,60}+\()?\\*+['\"])")
_PAIR_OF_MORE = later(r"\s*+:")  # the next name of a row of names with values
_UNDECIDED = later(rf"{_SHUT}\s*+,?+\s*+\\?+\s*+\Z")
_OF_TWO_WORDS = later(
    r"\b(?:api|access|secret|private|signing|encryption|account|license|master|admin|auth|ssh) ++\Z", re.IGNORECASE
)
_HEADER = later(r"(?>(?:=\"[^\"]*\"|[^\s,;'\"\\])+)(?: ++(?>(?:=\"[^\"]*\"|[^\s,;'\"\\])+))?"
                r"(?>(?:[,;] *+(?=[\w.-]{1,64}+=)(?>(?:=\"[^\"]*\"|[^\s,;'\"\\])+))*)")  # fmt: skip
_FORMED = later(r"[bBrRuUfF]{0,2}\\*+['\"`(\[{]")
_NOTHING = later(
    r"(?:[bBrRuUfF]{1,2}(?=\\*+['\"`]))?(?:\\*+['\"`]){0,3}[\[({]?(?>(?:None|null|True|False|Optional\(None\)|\[redacted\]?)?)"
    r"[\])}]?(?:\\*+['\"`]){0,3}\Z",
    re.IGNORECASE,
)
# What a tokenizer calls a token: numbers, special ones.
_FIGURE = later(r"(?>(?:<[^<>]*>|\d[\d.,_]*+[A-Za-z%]{0,2}+(?![A-Za-z\d])|[^A-Za-z<\d])*)\Z")
_QUOTED = later(
    r"(?P<open>[bBrRuUfF]{0,2}(?P<quote>(?P<one>\\*+['\"`])(?:(?P=one){2})?))(?:.*(?P=quote))?\Z", re.DOTALL
)
# What a line begins with that is no value of the line before.
ANEW = later(r"Traceback \(most|\s*File \"|\[\d\d\d\d-\d\d|\[\d\d:\d\d")
# Texts one of which stands in each secret; many searches for one text each are faster than one expression for any of
# them: 2 instead of 16 microseconds a line.
_WORDS = ("://", "bearer", "basic")
_HEADS = tuple(sign[:4] for sign, _ in _FORM_HEADS)
_NAME_KEPT = 200


class _Found(NamedTuple):
    """A value to mask."""

    start: int
    stop: int
    mask: str


def redact(text: str) -> str:
    """Mask the secrets and persons of a text; calling it twice is the same as once. Never raises."""
    return without_persons(redact_secrets(text))


def redact_secrets(text: str) -> str:
    """Mask the secrets alone: of what the user wrote, and must find again. Never raises."""
    return secrets_behind("", text)[0]


def secrets_behind(head: str, text: str) -> tuple[str, str]:
    """Mask the secrets of a text; answer it, and what it leaves open at its end.

    Args:
        head: what the text before left open, as this answered; empty where nothing was.
        text: what follows it, in the next line.
    """
    bare = text if text.isascii() else _INVISIBLE.sub("", text)
    lower = _lower(bare)
    if not head and not _may_hold_any(bare, lower):
        return text, ""
    clean = _by_form(bare, lower)
    if head:
        clean = f"{head}\n{clean}"
    if clean is not bare:
        lower = _lower(clean)
    found, left = _behind_names(clean, lower)
    cut = len(head) + 1 if head else 0
    parts, done = [], cut
    for start, stop, mask in found:
        if stop > cut:
            parts += [clean[done:start], mask if start >= cut else MASK]
            done = stop
    clean = "".join([*parts, clean[done:]])
    return text if clean == bare else clean, left


def _lower(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := char.lower()) == 1 else char for char in text)  # places must fit


def _may_hold_any(text: str, lower: str) -> bool:
    for sign in SIGNS:
        if sign in lower:
            return True
    for word in _WORDS:
        if word in lower:
            return True
    return any(head in text for head in _HEADS)


def _by_form(text: str, lower: str) -> str:
    if any(sign in text and head.search(text) for sign, head in _FORM_HEADS):
        text = _FORMS.sub(MASK, text)
    if "bearer" in lower or "basic" in lower:
        text = _BEARER.sub(rf"\g<how>{MASK}", text)
    if "://" in text:
        text = _without_users(text)
        text = _QUERY.sub(_mask_query, text)
    return text


# --- URLs -------------------------------------------------------------------------------------------

_AUTHORITY = later(r"[^/?#\s]*+")
_URL_STOPS = later(r"[\s\"<>]|'(?=[\s,;:)\]}]|\Z)|\Z")
_HOST_PORT = later(r"(?:[^:\[]*+|\[[^\]]*+\]):?\d{0,5}\Z")


def _without_users(text: str) -> str:
    """Mask who a URL is opened as: what stands before the last ``@`` of its authority.

    A password may hold ``/``, ``#`` or ``?``, which end the authority: what is no host with its port goes on.
    """
    parts, done, stop, last = [], 0, 0, -1
    at = text.find("://")
    while at >= 0:
        begin = at + 3
        if begin > stop or stop == 0:
            found = _URL_STOPS.search(text, begin)
            assert found is not None  # noqa: S101 - the text ends
            stop = found.start()
            last = text.rfind("@", begin, stop)
        end = _AUTHORITY.match(text, begin, stop).end()  # type: ignore[union-attr] # it may be empty
        user = text.rfind("@", begin, end)
        if user < 0 and last > end and _HOST_PORT.match(text[begin:end]) is None:
            user = last
        if user > begin:
            parts += [text[done:begin], MASK]
            done = user
        at = text.find("://", max(begin, done))
    return "".join([*parts, text[done:]])


def _mask_query(found: re.Match[str]) -> str:
    return f"{found['name']}{MASK}" if _QUERY_KEY.search(found["key"]) else found[0]


# --- names and values -------------------------------------------------------------------------------


def _behind_names(text: str, lower: str) -> tuple[list[_Found], str]:
    """What to mask behind names, and the beginning of what is still open at the end of the text."""
    found: list[_Found] = []
    left, done = "", 0
    for start, stop in _names(text, lower):
        if start < done:
            continue
        kind = _kind(text, start, stop)
        if kind is Name.PLAIN:
            continue
        name = text[max(start, stop - _NAME_KEPT) : stop]
        begin = _value_begin(text, start, stop)
        if begin is None:
            left = _undecided(text, start, stop)
            continue
        if begin == len(text):
            left = f"{name}="
            break
        if text.count("\n", stop, begin) and ANEW.match(text, begin):
            continue
        done, still_open = _value_stop(text, begin, kind)
        value = text[begin:done]
        left = f"{name}={still_open[-_NAME_KEPT:]}" if still_open else ""
        is_nothing = not still_open and _NOTHING.match(value) is not None
        is_figure = kind is Name.COUNTED and _FIGURE.match(value) is not None
        if not is_nothing and not is_figure:
            found.append(_Found(begin, done, _mask(value)))
    return found, left


def _undecided(text: str, start: int, stop: int) -> str:
    """A name of which the next line may tell the value; empty where something else stands behind it."""
    if _UNDECIDED.match(text, stop) is None:
        return ""
    quote = text[start - 1] if start and text[start - 1] in "'\"" else ""
    return quote + text[max(start, stop - _NAME_KEPT) : stop] + "".join(text[stop:].split())


def _names(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Where names stand that may tell, each once: arguments are 15 kB long, and hold few."""
    places = {sign: at for sign in SIGNS if (at := lower.find(sign)) >= 0}
    looked = 0
    while places:
        at = min(places.values())
        start = at
        while start > looked and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
            start -= 1
        looked = _LETTERS.match(text, at).end()  # type: ignore[union-attr] # it may be empty
        yield start, looked
        for sign, place in list(places.items()):
            if place < looked:
                places[sign] = lower.find(sign, looked)
                if places[sign] < 0:
                    del places[sign]


def _kind(text: str, start: int, stop: int) -> Name:
    kind = kind_of(text[max(start, stop - _NAME_KEPT) : stop])
    if kind is Name.PLAIN and stop - start <= 4 and _OF_TWO_WORDS.search(text[max(start - 20, 0) : start]):
        return Name.SECRET  # API key: …
    return kind


def _value_begin(text: str, start: int, stop: int) -> int | None:
    """Where the value of a name begins; None where it has none."""
    joints = (_JOINT, _FIELD, _PAIR)
    for joint in (*joints, _OPTION) if text.startswith("--", start) else joints:
        found = joint.match(text, stop)
        if found is None:
            continue
        if joint is _JOINT and text[start - 1 : start] == "/" and text[stop] == ":":
            return None  # /etc/passwd: no such file
        if joint is _PAIR and not _is_pair(text, start, found.end()):
            continue
        return found.end()
    return None


def _is_pair(text: str, start: int, begin: int) -> bool:
    """Whether two quoted texts are a name and its value: not the end of a sentence, nor two names."""
    return text[start - 1 : start] in {"'", '"'} and not _PAIR_OF_MORE.match(text, value_end(text, begin)[0])


def _value_stop(text: str, begin: int, kind: Name) -> tuple[int, str]:
    header = None if kind is not Name.HEADER or _FORMED.match(text, begin) else _HEADER.match(text, begin)
    return value_end(text, begin, begin if header is None else header.end())


def _mask(value: str) -> str:
    quoted = _QUOTED.match(value)
    return MASK if quoted is None else f"{quoted['open']}{MASK}{quoted['quote']}"
