"""``phasetrack``, and ``python -m phasetrack``."""

import gc

from phasetrack import signals

# What is imported stays. To look through it for garbage every 700 objects takes 9 ms of a short command.
_OBJECTS = 50_000


def main() -> None:
    """Run the command line. Its imports are most of a short command: a signal meanwhile is none too early."""
    gc.set_threshold(_OBJECTS)
    signals.leave_at_once()
    from phasetrack.cli import main as run

    run()


if __name__ == "__main__":
    main()
