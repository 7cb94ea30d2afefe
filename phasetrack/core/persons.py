"""Who out of text: the users of home folders, e-mail addresses, addresses of machines.

Part of ``redact``, so nothing that is stored, shown or exported holds them. A mask needs no memory and keeps what helps
on the spot: a home folder stays one (``/home/[user]/models``), an address keeps its last part (``x.x.x.40``). What
everybody has stays: loopback, ``/home/ubuntu``. Masks that are the same through all files of a log, and more kinds of
them, are ``mask``'s.
"""

from __future__ import annotations

import re

from phasetrack.core import places
from phasetrack.core.lazy import later

USER, EMAIL = "[user]", "[e-mail]"

# A path's part behind home or Users is a person, wherever it stands: /home/alice, /mnt/home/alice, C:\Users\alice
_HOME = later(
    rf"(?<![\w.-])(?P<homes>(?:{'|'.join(sorted(places.PEOPLE))})[/\\]{{1,4}})"
    r"(?P<user>[\w.@+-]{1,64}(?: [\w.@+-]{1,64}(?=\\))?)(?![\w.@+-])"
)
_OWN = later(r"(?<![\w~./-])~(?P<user>[A-Za-z_][\w.-]{0,31})(?=/)")  # ~alice/models
_DIGIT_OR_LONG = later(r"\d|(?:[0-9A-Fa-f]+:){2}")
# A package's version has four parts too: nvidia-curand-cu12 10.3.5.147
_VERSION = later(
    r"(?:[-_]cu\d\d|version|\bver|driver|cudnn|cublas|nccl|cuda)['\"]?(?: ?[=:]{1,2})? ?['\"]?\Z", re.IGNORECASE
)


def without_persons(text: str) -> str:
    """Mask who is named in a text; twice is the same as once. Never raises."""
    if "home" in text or "sers" in text:
        text = _HOME.sub(_home, text)
    if "~" in text:
        text = _OWN.sub(lambda found: f"~{_user(found)}", text)
    if "@" in text:
        text = places.EMAIL.sub(EMAIL, text)
    if places.ADDRESS_HINT.search(text) is not None:
        text = places.IPV4.sub(_address, text)
        text = places.IPV6.sub(_address, text)
    return text


def _home(found: re.Match[str]) -> str:
    return found["homes"] + _user(found)


def _user(found: re.Match[str]) -> str:
    name = found["user"]
    is_open = name.lower() in places.COMMON or name.isdigit() or places.MASKED.match(name) is not None
    return name if is_open else USER


def _address(found: re.Match[str]) -> str:
    text, address = found[0], places.own_address(found[0])
    if address is None:
        return text
    if address.version == 4:
        before = found.string[max(found.start() - 16, 0) : found.start()]
        return text if _VERSION.search(before) else f"x.x.x.{text.rpartition('.')[2]}"
    if _DIGIT_OR_LONG.search(text) is None:
        return text  # be::add
    return f"x::{text.rpartition(':')[2]}"
