"""The grammar of a Python traceback, line by line: what a line can be, and what can follow it.

As CPython 3.8 to 3.14 prints it: a header, frames with what stands under them, an exception whose message may go
on over more lines; then perhaps a chain line and another traceback. Pastes lose the indentation; wrappers lose
blank lines, which mean nothing.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

HEADER = "Traceback (most recent call last):"

_FRAME = re.compile(r'\s*File "(?P<path>[^"]*)", line (?P<line>\d+)(?:, in (?P<name>.*))?')
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
# ``torch.OutOfMemoryError: …``, ``EOFError``, ``socket.gaierror: …``, ``RayTaskError(KeyError): …``; not the rest of
# a frame that a paste wrapped (``duler_process``)
_EXCEPTION = re.compile(
    r"(?P<kind>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|(?<=\.)(?:gaierror|herror|timeout|error)))(?:\(\w+\))?"
    r"(?::(?P<text>[ \t].*)?|(?<=Error)|(?<=Exception)|(?<=Interrupt)|(?<=Exit)|(?<=Empty)|(?<=Expired)"
    r"|(?<=Iteration))\Z",
    re.DOTALL,
)
# Frames through which calls pass again and again (torch's modules, decorators) tell no place in a traceback.
_PASSING = frozenset(
    (
        "_wrapped_call_impl",
        "_call_impl",
        "decorate_context",
        "wrapper",
        "_wrapper",
        "inner",
        "wrapped",
        "_fn",
        "__call__",
    )
)


class Line(Enum):
    """What a line can be in a traceback."""

    HEADER = auto()
    FRAME = auto()
    UNDER = auto()  # of a frame: a source line, marks, a repeated call, a call through a decorator
    CHAIN = auto()
    BLANK = auto()
    EXCEPTION = auto()
    OTHER = auto()


class At(Enum):
    """What a writer's last line was."""

    OPEN = auto()  # the record's first line, before any traceback
    HEAD = auto()
    FRAME = auto()
    EXCEPTION = auto()
    TEXT = auto()  # more of an exception's message
    CHAIN = auto()


IN_TRACE = frozenset({At.HEAD, At.FRAME})
BEHIND = frozenset({At.EXCEPTION, At.TEXT})

_MORE_TEXT = {Line.UNDER: At.TEXT, Line.EXCEPTION: At.TEXT, Line.OTHER: At.TEXT, Line.CHAIN: At.CHAIN}
NEXT: dict[At, dict[Line, At]] = {
    At.OPEN: {Line.HEADER: At.HEAD, Line.OTHER: At.OPEN, Line.EXCEPTION: At.EXCEPTION},
    At.HEAD: {Line.FRAME: At.FRAME, Line.EXCEPTION: At.EXCEPTION},
    At.FRAME: {Line.FRAME: At.FRAME, Line.EXCEPTION: At.EXCEPTION},
    At.EXCEPTION: _MORE_TEXT,
    At.TEXT: _MORE_TEXT,
    At.CHAIN: {Line.HEADER: At.HEAD},
}


def line_of(text: str) -> Line:
    """Tell what a line can be."""
    if text.startswith(HEADER):
        return Line.HEADER
    if not text.strip():
        return Line.BLANK
    if (found := _FRAME.match(text)) is not None:
        return Line.UNDER if found["name"] in _PASSING else Line.FRAME
    if text[0].isspace():
        return Line.UNDER
    if text.startswith(_CHAIN):
        return Line.CHAIN
    return Line.EXCEPTION if _EXCEPTION.match(text) is not None else Line.OTHER


def exception_class(message: str) -> str:
    """``torch.OutOfMemoryError: CUDA …`` gives ``OutOfMemoryError``; empty where it is no exception line."""
    found = _EXCEPTION.match(message)
    return "" if found is None else found["kind"].rpartition(".")[2]


class Frame(NamedTuple):
    """One frame of a traceback."""

    path: str
    line: int
    name: str

    @property
    def file(self) -> str:
        """The file's name without its folders."""
        return self.path.rpartition("/")[2]


def frame_of(text: str) -> Frame | None:
    """Read a frame line."""
    found = _FRAME.match(text)
    return None if found is None else Frame(found["path"], int(found["line"][:9]), found["name"] or "")
