"""The tqdm grammar to ``Bar``.

Frames as tqdm writes them (checked with tqdm 4.67)::

    Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]
    Capturing batches (bs=48 avail_mem=17.21 GB):   4%|▍         | 1/23 [00:42<15:37, 42.62s/it]
      0%|          | 0/36 [00:00<?, ?it/s]
    model-00001-of-00004.safetensors:  12%|█▏        | 598M/4.98G [00:05<00:41, 106MB/s]
    ██████████| 23/23 [00:06<00:00,  3.75it/s]      (the rest of a bar that a paste wrapped)

A text may follow the closing bracket with nothing between them.
"""

from __future__ import annotations

import re

from phasetrack.core.model import Bar

# Bounded: no bar counts further, and no float or clock must overflow.
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?[kKMGTP]?"
_BAR = re.compile(
    r"(?:(?P<desc>[^%]{0,400}?):?\s{0,40}(?P<percent>\d{1,3})%(?: Completed)? ?\|(?:[^|\[\]]*\|)?"
    r"|\u2588[\u2588-\u258f ]*\|)\s*"
    rf"(?P<done>{_NUMBER})/(?P<total>{_NUMBER}|\?)\s+"
    r"\[(?P<elapsed>\d{1,4}(?::\d\d){1,2})<(?P<left>[^,\]]*)(?:, *(?P<rate>[^\]]*))?\]"
)
_RATE = re.compile(rf"({_NUMBER}|\?)(?P<unit>[A-Za-z]+)?/(s|it|[A-Za-z]+)")
_SCALE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def parse_bar(text: str) -> tuple[Bar, int] | None:
    """Find a bar at the start of a text.

    Returns:
        The bar and where it ends in the text, or None.
    """
    found = _BAR.match(text)
    if found is None:
        return None
    total = found["total"]
    rate, unit = rate_of(found["rate"] or "")
    bar = Bar(
        (found["desc"] or "").strip(),
        number_of(found["done"]),
        None if total == "?" else number_of(total),
        clock_of(found["elapsed"]),
        rate,
        unit,
    )
    return bar, found.end()


def number_of(text: str) -> float:
    """``598M`` as a number."""
    scale = _SCALE.get(text[-1])
    return float(text) if scale is None else float(text[:-1]) * scale


def clock_of(text: str) -> float:
    """``59:59``, ``1:09:28``."""
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return float(seconds)


def rate_of(text: str) -> tuple[float | None, str]:
    """``37.9it/s`` and ``1.74s/it`` both as a rate a second; ``?it/s`` is unknown."""
    found = _RATE.match(text.strip())
    if found is None:
        return None, "it"
    number, unit, per = found[1], found["unit"] or "it", found[3]
    if number == "?":
        return None, "it" if unit == "s" else unit
    value = number_of(number)
    if per == "s":
        return value, unit
    return (1 / value if value else None), per
