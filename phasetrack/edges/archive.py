"""Logs at rest in another form: compressed ones, and terminal recordings (asciicast v2 and v3).

Told by their first bytes, not by their names: rotation renames. Formats:
https://docs.asciinema.org/manual/asciicast/v2/ and …/v3/ (read 2026-11).
"""

from __future__ import annotations

import json
import lzma
import zlib
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import Chunk, Gap
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
# Beyond these a recording's times are none: the year 2200, ten years of recording.
_LATEST_S, _LONGEST_S = 7_258_118_400, 315_360_000
# A header names its version within this many bytes.
_HEADER_BYTES = 64 * 1024
# Where a decoder finds damage, it keeps what it made of this piece to itself; and no piece grows beyond megabytes.
_PIECE_BYTES = 256
# Of gzip a copy is kept from before each piece, which gives that up byte by byte.
_COPIED_BYTES = 4096
_CUT = "the archive is cut short: what followed its last line here could not be read"
_DAMAGED = "the archive is damaged: what followed its last line here could not be read"
_FOLLOWED = "something that is no archive stands behind this archive, and was left out"
MISNAMED = "named like an archive, but is none: read as it stands"


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so is finished and kept, not a log that may grow."""
    return is_compressed(head) or _cast_version(head) is not None


def is_compressed(head: bytes) -> bool:
    """Whether bytes that begin so are compressed."""
    return head.startswith((_GZIP, _XZ, _ZSTD))


class Unpacker:
    """Plain bytes of a compressed stream that comes in pieces. Of a damaged one, what stands before the damage."""

    def __init__(self, head: bytes, path: str) -> None:
        """Prepare for a stream that begins with ``head``.

        Raises:
            SourceError: it is zstd, and the extra that reads it is not installed.
        """
        self._magic, self._begin = _codec(head, path)
        self._piece_bytes = _COPIED_BYTES if self._magic == _GZIP else _PIECE_BYTES
        self._codec: Any = None
        self._rest = b""
        self._damage = ""

    def feed(self, data: bytes, size: int) -> Iterator[bytes]:
        """Yield what a piece holds, in blocks of about ``size`` bytes."""
        found: list[bytes] = []
        for k in range(0, len(data), self._piece_bytes):
            found += self._take(data[k : k + self._piece_bytes])
            if sum(map(len, found)) >= size:
                yield b"".join(found)
                found.clear()
        if any(found):
            yield b"".join(found)

    def _take(self, piece: bytes) -> Iterator[bytes]:
        while piece and not self._damage:
            if self._codec is None:
                piece = (self._rest + piece).lstrip(b"\0")  # tapes pad
                if not piece.startswith(self._magic):
                    self._rest, piece = piece, b""
                    self._damage = "" if self._magic.startswith(self._rest) else _FOLLOWED
                    return
                self._codec, self._rest = self._begin(), b""
            before = self._codec.copy() if self._magic == _GZIP else None
            try:
                yield self._codec.decompress(piece)
            except Exception as fault:
                if not isinstance(fault, zlib.error | lzma.LZMAError) and type(fault).__name__ != "ZstdError":
                    raise  # zstd's module may not be there to name its error
                self._damage = _DAMAGED
                if before is not None:
                    yield from _bytewise(before, piece)
                return
            piece = self._codec.unused_data if self._codec.eof else b""
            if self._codec.eof:
                self._codec = None

    def lost(self) -> Gap | None:
        """What was wrong with the stream, which has ended; None where it was whole."""
        why = self._damage or (_CUT if self._codec is not None else _FOLLOWED if self._rest else "")
        return Gap(0, hole=why == _FOLLOWED, why=why) if why else None


def _bytewise(codec: Any, piece: bytes) -> Iterator[bytes]:
    """What a gzip decoder makes of a piece before it finds the damage."""
    for k in range(len(piece)):
        try:
            yield codec.decompress(piece[k : k + 1])
        except zlib.error:
            return


def _codec(head: bytes, path: str) -> tuple[bytes, Callable[[], Any]]:
    if head.startswith(_GZIP):
        return _GZIP, lambda: zlib.decompressobj(31)
    if head.startswith(_XZ):
        return _XZ, lzma.LZMADecompressor
    try:
        import zstandard
    except ImportError:
        mend = "pip install 'phasetrack[zstd]', or pipe it: zstd -dc FILE | phasetrack report -"
        raise SourceError(f"{path}: is zstd-compressed, which needs an extra ({mend})") from None
    return _ZSTD, lambda: zstandard.ZstdDecompressor().decompressobj()


def cast_chunks(parts: Iterator[bytes]) -> Iterator[Chunk]:
    """Yield what a recording's terminal was sent, each with its time. Lines that are no events are left out."""
    lines = _lines(parts)
    header = _json(next(lines, b""))
    stamp = header.get("timestamp") if isinstance(header, dict) else None
    began = stamp if isinstance(stamp, int | float) and 0 <= stamp < _LATEST_S else None
    relative = isinstance(header, dict) and header.get("version") == 3
    at_s = 0.0
    for line in lines:
        event = _json(line)
        if not _is_event(event):
            continue
        moment = at_s + event[0] if relative else event[0]
        at_s = moment if 0 <= moment < _LONGEST_S else at_s  # a damaged time tells nothing
        if event[1] == "o" and event[2]:
            recorded = None if began is None else began + at_s
            yield Chunk(event[2].encode("utf-8", "replace"), recorded_s=recorded, played_s=at_s)


def is_cast(head: bytes) -> bool:
    """Whether plain bytes that begin so are a recording."""
    return _cast_version(head) is not None


def _cast_version(head: bytes) -> int | None:
    line, found, _ = head[:_HEADER_BYTES].partition(b"\n")
    if not found or not line.startswith(b"{"):
        return None
    header = _json(line)
    version = header.get("version") if isinstance(header, dict) else None
    sized = isinstance(header, dict) and ("width" in header or "term" in header)
    return version if version in {2, 3} and sized else None


def _is_event(event: object) -> bool:
    return (
        isinstance(event, list)
        and len(event) >= 3
        and isinstance(event[0], int | float)
        and isinstance(event[1], str)
        and isinstance(event[2], str)
    )


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _json(line: bytes):  # type: ignore[no-untyped-def] # noqa: ANN202 - whatever the line holds
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
