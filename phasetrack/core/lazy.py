"""Regular expressions that are compiled when first used: a start needs few of them, and each costs 0.3 ms."""

from __future__ import annotations

import re
from typing import Any, cast


class _Later:
    """Stands for a pattern: what is first asked of it compiles it, and is at hand from then on."""

    def __init__(self, *pattern: Any) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copying and pickling ask before there is a pattern
        value = getattr(re.compile(*self._pattern), name)
        setattr(self, name, value)
        return value


def later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What ``re.compile`` answers, but compiled when first used."""
    return cast("re.Pattern[str]", _Later(pattern, flags))
