r"""Secrets that go on over lines, out of lines that come one by one.

A private key has a body of many lines; a value may stand below its name (``"api_key":``, ``--api-key \``, ``name:``
above ``value:``), and a quote or a bracket may close lines below. What a line leaves open is kept as a short text, and
the next line is read behind it. A stamped line and a traceback belong to no value.
"""

from __future__ import annotations

import re

from phasetrack.core.lazy import later
from phasetrack.core.persons import without_persons
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.redact import ANEW, KEY_BEGINS, KEY_ENDS, MASK, redact_secrets, secrets_behind

# What is one: alone in its line, quoted, in brackets (a call's, a shell's), or with a digit in it. A sentence has none
# of these.
_BELOW = later(r"\s*(?:- +)?(?:\S+\s*\Z|[\w.$<]*\\*['\"`({\[]|\S*\d)")
_FIELD_BELOW = later(r"\s*\\*['\"]?(?:value\b|[:=,])", re.IGNORECASE)
_KEY_BODY = later(r"\s*\S+\s*\Z|\s*[\w-]+: |.*[A-Za-z0-9+/=]{24}")
# So many lines may a secret go on: a key of 16384 bits has 200, and nothing else is as long.
_LINES = 200


class SecretLines:
    """Redacts the lines of one writer, from the top down."""

    __slots__ = ("_head", "_in_key", "_left")

    def __init__(self) -> None:
        """Stand before the first line."""
        self._head = ""  # what the last line left open, as text to put before the next one
        self._in_key = False
        self._left = 0

    @property
    def is_open(self) -> bool:
        """Whether the next line may go on with a secret of the last one."""
        return self._in_key or self._head != ""

    def redact(self, text: str) -> str:
        """Mask the secrets and persons of the next line. Never raises."""
        return without_persons(self.secrets(text))

    def secrets(self, text: str) -> str:
        """Mask the secrets alone."""
        if not self.is_open:
            clean, self._head = secrets_behind("", text)
            self._in_key = "-----BEGIN " in text and _is_open_key(text)
            self._left = _LINES
            return clean
        return self._go_on(text)

    def _go_on(self, text: str) -> str:
        self._left -= 1
        prefix, message = parse(text, Learned())
        begin = len(text) - len(message) if text.endswith(message) else 0
        if self._left < 0 or prefix.stamp_s is not None or ANEW.match(text, begin):
            self._head, self._in_key = "", self._in_key and self._left >= 0
            if self._in_key:  # another writer's line
                return redact_secrets(text)
            return self.secrets(text)
        if self._in_key:
            return text[:begin] + self._of_key(text[begin:])
        if not message.strip():
            return text
        head = self._head
        if not _goes_on(head, text, begin):
            head = self._head = ""
            return self.secrets(text)
        clean, self._head = secrets_behind(head, text[begin:])
        self._in_key = "-----BEGIN " in text and _is_open_key(text)
        return text[:begin] + clean

    def _of_key(self, text: str) -> str:
        end = re.search(KEY_ENDS, text)
        if end is not None:
            self._in_key = False
            return MASK + self.secrets(text[end.end() :])
        return MASK if text.strip() and _KEY_BODY.match(text) else redact_secrets(text)


def _goes_on(head: str, text: str, begin: int) -> bool:
    """Whether a line can hold what the head lacks."""
    if head[-1] in "'\"`([{":
        return True
    if head[-1] in "=:\\":
        return head[-1] == "\\" or _BELOW.match(text, begin) is not None
    return _FIELD_BELOW.match(text, begin) is not None or _BELOW.match(text, begin) is not None


def _is_open_key(text: str) -> bool:
    last = text.rfind("-----BEGIN ")
    return re.match(KEY_BEGINS, text[last : last + 80]) is not None and re.search(KEY_ENDS, text[last:]) is None
