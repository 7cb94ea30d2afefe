"""Write every recording's ``expected.json``. A human runs it, then reads the change beside the log.

    python -m tests.golden.make [NAME …]
    tr '\\r' '@' < fixtures/NAME/server.log | less

A change of a golden is a change of contract. Nothing else may write these files.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from phasetrack.views.jsonl import snapshot_json
from tests.talk import FIXTURES, hear, recording, recordings

if TYPE_CHECKING:
    from tests.talk import Heard

TOP = ("outcome", "phase", "started_at", "ready_at", "ready_line", "startup_s", "between_phases_s", "now")
BOOT = ("boot", "line", "outcome", "started_at", "ready_at", "startup_s", "failure")
FAILURE = ("id", "fatal", "phase", "rank", "line", "message", "after_ready")
ROW = (
    "phase", "occurrence", "status", "began", "ended", "elapsed_s", "begin_line", "end_line", "basis", "ranks_done",
    "ranks_seen", "slowest_rank", "skew_s", "longest_silence_s",
)  # fmt: skip
FACTS = (
    "model_path",
    "tp_size",
    "dp_size",
    "speculative_algorithm",
    "kv_tokens",
    "weights_bytes",
    "draft_weights_bytes",
)


def golden(heard: Heard) -> dict[str, Any]:
    """What must stay as it is of a recording: the part of the snapshot that is the contract."""
    known = snapshot_json(heard.snapshot)
    steps = Counter(record.data["phase"] for record in heard.records if record.type == "progress")
    failure = known["failure"]
    return {key: known[key] for key in TOP} | {
        "verdict": known["verdict"]["state"],
        "lines": known["sources"][0]["lines"],
        "boots": [{key: boot[key] for key in BOOT} for boot in known["boots"]],
        "failure": None if failure is None else {key: failure[key] for key in FAILURE},
        "facts": {key: known["facts"][key] for key in FACTS if key in known["facts"]},
        "warnings": [warning["id"] for warning in known["warnings"]],
        "activities": [[doing["id"], doing["began"], doing["ended"]] for doing in known["activities"]],
        "phases": [_row(row, steps[row["phase"]]) for row in known["phases"]],
    }


def _row(row: dict[str, Any], steps: int) -> dict[str, Any]:
    """A row without what it does not have: pending ones are short."""
    kept = {key: row[key] for key in ROW if row[key] is not None}
    if row["progress"] is not None:
        kept["progress"] = [row["progress"]["done"], row["progress"]["total"], row["progress"]["unit"]]
        kept["steps"] = steps
        kept["bars"] = [[bar["title"], bar["rank"], bar["done"], bar["total"], bar["began"]] for bar in row["bars"]]
    return kept


def dumps(value: dict[str, Any]) -> str:
    """One line a key, and one a phase: a reader compares lines."""
    lines = []
    for key, item in value.items():
        if key == "phases":
            rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in item)
            lines.append(f' "phases": [\n{rows}\n ]')
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(item, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write the goldens that are named, or all."""
    for name in sys.argv[1:] or recordings():
        path = FIXTURES / name / "expected.json"
        text = dumps(golden(hear(recording(name))))
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8")
        print(f"{'changed' if changed else 'same':<8} {path}")


if __name__ == "__main__":
    main()
