"""The shipped pack's literal texts: what a search tool would look for in a log."""

from __future__ import annotations

import re

from phasetrack.core.classify import Matcher, literal_heads
from phasetrack.edges.library import load

# Shorter ones stand in every line.
_MIN_LENGTH = 4


def literals() -> list[str]:
    """The beginnings of all messages that the SGLang rules know, else their longest text, as regular expressions."""
    found: set[str] = set()
    for order, rule in enumerate(load().rules):
        if rule.match is None or rule.engine != "sglang":
            continue
        heads = [head for head in literal_heads(rule.match) if len(head) >= _MIN_LENGTH]
        needle = Matcher(rule, order).needle
        found |= set(heads) or {needle} if len(needle) >= _MIN_LENGTH else set(heads)
    return sorted(re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text) for text in found)
