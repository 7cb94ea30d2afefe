"""Write the pictures' goldens. A human runs it, then reads the change.

    python -m tests.screens.make [NAME …]

Each file shows one hand-made snapshot at four sizes, and what is not in the default style at one of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.screens.cases import CASES, TAIL
from tests.screens.picture import Fed, read, svg

FOLDER = Path(__file__).parent
SIZES = ((40, 10), (80, 24), (120, 40), (200, 50))
# Other pictures than the main screen, by the keys that lead to them: (name, case, keys, size).
VIEWS = (
    ("ranks-view", "ranks", ("r",), (80, 24)),
    ("ranks-late", "finishing", ("r",), (80, 24)),
    ("why-quiet", "quiet", ("w",), (80, 40)),
    ("why-stuck", "stuck", ("w",), (60, 24)),
    ("why-failed", "failed", ("w",), (80, 24)),
    ("log", "loading", ("l",), (80, 12)),
    ("help", "loading", ("question_mark",), (80, 40)),
    ("selected", "draft", ("g", "j", "j"), (80, 24)),
)


def names() -> list[str]:
    """Every golden."""
    return [*CASES, "reading", *(name for name, *_ in VIEWS)]


def golden(name: str) -> str:
    """What a golden holds."""
    data = "\n".join(TAIL).encode()
    for view, of, keys, size in VIEWS:
        if name == view:
            return _shown(Fed(CASES[of], data), size, keys, styles=True)
    case, unread = (CASES["waiting"], 3_000_000) if name == "reading" else (CASES[name], None)
    seen = b"" if name == "waiting" else data
    return "\n".join(_shown(Fed(case, seen, unread), size, styles=size == SIZES[1]) for size in SIZES)


def _shown(feed: Fed, size: tuple[int, int], keys: tuple[str, ...] = (), *, styles: bool) -> str:
    text, looks = read(svg(feed, *size, keys))
    return f"--- {size[0]} x {size[1]}\n{text}\n" + (
        f"--- styles: row, column, look, text\n{looks}\n" if styles else ""
    )


def main() -> None:
    """Write the goldens that are named, or all."""
    for name in sys.argv[1:] or names():
        (FOLDER / f"{name}.txt").write_text(golden(name), encoding="utf-8")


if __name__ == "__main__":
    main()
