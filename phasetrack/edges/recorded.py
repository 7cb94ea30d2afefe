"""Recordings of our own: a log by arrival time (asciicast v2), and beside it what was seen outside of it.

``server.cast`` holds ``[seconds, "o", text]`` a line behind a header; bytes that are no UTF-8 become U+FFFD in it, as
the format demands, while the log file keeps them. ``server.evidence.jsonl`` holds one object a line, ``{"type":
"evidence"}`` or ``{"type": "probe"}`` and the fields of that input; unknown fields are left out when read, so that
an older phasetrack can read a newer one's.
"""

from __future__ import annotations

import codecs
import json
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import EvidenceSample, GpuSample, ProbeResult, ProcessSample
from phasetrack.core.redact import redact_secrets
from phasetrack.errors import SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

SUFFIX = ".evidence.jsonl"


def beside(cast: str) -> Path:
    """Where the evidence of a recording stands: ``server.cast`` has ``server.evidence.jsonl``."""
    return Path(cast).with_suffix(SUFFIX)


def _silently(what: str) -> None:
    del what


class Recorder:
    """Writes a recording while it is made; each line is whole at once, so that a kill leaves a readable file."""

    def __init__(
        self,
        cast: str,
        *,
        began_s: float,
        command: str,
        say: Callable[[str], None] = _silently,
        size: tuple[int, int] = (80, 24),
    ) -> None:
        """Begin a recording.

        Args:
            cast: the file to write; an older one is replaced.
            began_s: our clock at 0.
            command: what is recorded, for the header; its secrets are masked.
            say: takes the line that the recording goes on no more: its disk is full.
            size: columns and rows, for players.

        Raises:
            UsageError: it cannot be written.
        """
        self.evidence = beside(cast)
        self._name, self._say, self._is_over = f"--record {cast}", say, False
        self._began_s = began_s
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        header = {"version": 2, "width": size[0], "height": size[1], "timestamp": int(began_s)}
        try:
            self._cast = Path(cast).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed by ``close``
            self._seen = self.evidence.open("w", encoding="utf-8", buffering=1)
            self._cast.write(_line(header | {"command": redact_secrets(command)}) + "\n")
        except OSError as fault:
            raise UsageError(f"{self._name}: cannot be written: {fault.strerror}") from None

    def output(self, data: bytes, arrived_s: float) -> None:
        """Take bytes of the log as they arrived; a character cut in two waits for its rest."""
        text = self._decoder.decode(data)
        if text:
            self._write(self._cast, _line([round(arrived_s - self._began_s, 6), "o", text]))

    def seen(self, item: EvidenceSample | ProbeResult) -> None:
        """Take what was seen outside the log."""
        self._write(self._seen, evidence_line(item))

    def _write(self, file: TextIO, line: str) -> None:
        if self._is_over:
            return
        try:
            file.write(line + "\n")
        except OSError as fault:
            self._is_over = True
            self._say(f"{self._name}: cannot be written: {fault.strerror}; the recording ends here")

    def close(self) -> None:
        """End the recording."""
        for file in (self._cast, self._seen):
            with suppress(OSError):  # what could not be written is still in the buffer
                file.close()


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def evidence_line(item: EvidenceSample | ProbeResult) -> str:
    """What was seen outside the log, as a line of JSON."""
    return _line({"type": "evidence" if isinstance(item, EvidenceSample) else "probe", **asdict(item)})


def read_evidence(path: Path) -> Iterator[EvidenceSample | ProbeResult]:
    """What was seen outside a recorded log, in the order in which it was; a cut last line is left out.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                item = evidence_of(line)
                if item is not None:
                    yield item
    except OSError as fault:
        raise SourceError(f"{path}: {fault.strerror}") from None


def evidence_of(line: str) -> EvidenceSample | ProbeResult | None:
    """Read such a line; None for one that was cut, or is not ours."""
    try:
        value = json.loads(line)
        if value.get("type") == "probe":
            return ProbeResult(**_known(ProbeResult, value))
        if value.get("type") != "evidence":
            return None
        value["processes"] = tuple(ProcessSample(**_known(ProcessSample, p)) for p in value.get("processes", ()))
        value["gpus"] = tuple(GpuSample(**_known(GpuSample, g)) for g in value.get("gpus", ()))
        value["missing"] = tuple(value.get("missing", ()))
        return EvidenceSample(**_known(EvidenceSample, value))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # cut by a kill, or not ours


def _known(form: type, value: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(form)}
    return {name: part for name, part in value.items() if name in names}
