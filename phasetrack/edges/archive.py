"""Logs at rest in another form: compressed ones, and terminal recordings (asciicast v2 and v3).

Told by their first bytes, not by their names: rotation renames. Formats:
https://docs.asciinema.org/manual/asciicast/v2/ and …/v3/ (read 2026-11).
"""

from __future__ import annotations

import io
import json
import lzma
import zlib
from typing import TYPE_CHECKING, BinaryIO

from phasetrack.core.model import Chunk
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
# Beyond these a recording's times are none: the year 2200, ten years of recording.
_LATEST_S, _LONGEST_S = 7_258_118_400, 315_360_000
# A header names its version within this many bytes.
_HEADER_BYTES = 64 * 1024


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so is finished and kept, not a log that may grow."""
    return head.startswith((_GZIP, _XZ, _ZSTD)) or _cast_version(head) is not None


def decompressed(stream: BinaryIO, head: bytes, path: str) -> BinaryIO:
    """Wrap a stream so that it reads plain bytes; ``head`` is how it begins.

    Raises:
        SourceError: it is zstd, and the extra that reads it is not installed.
    """
    if head.startswith(_GZIP):
        import gzip

        return gzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[return-value]  # reads as one
    if head.startswith(_XZ):
        return lzma.LZMAFile(stream)  # type: ignore[return-value]  # reads as one
    if head.startswith(_ZSTD):
        return _zstd(stream, path)
    return stream


def _zstd(stream: BinaryIO, path: str) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        mend = "pip install 'phasetrack[zstd]', or pipe it: zstd -dc FILE | phasetrack report -"
        raise SourceError(f"{path}: is zstd-compressed, which needs an extra ({mend})") from None
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))


def blocks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Read a stream to its end; an archive that is cut short or damaged ends there."""
    while True:
        try:
            data = stream.read(size)
        except (EOFError, zlib.error, lzma.LZMAError):
            return
        except OSError as fault:
            if fault.errno is not None:
                raise
            return  # gzip's own complaint about its content
        except Exception as fault:
            if type(fault).__name__ != "ZstdError":  # its module may not be there to name it
                raise
            return
        if not data:
            return
        yield data


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
    except ValueError:
        return None
