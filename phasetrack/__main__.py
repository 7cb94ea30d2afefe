"""``phasetrack``, and ``python -m phasetrack``."""

from phasetrack import signals


def main() -> None:
    """Run the command line. Its imports are most of a short command: a signal meanwhile is none too early."""
    signals.leave_at_once()
    from phasetrack.cli import main as run

    run()


if __name__ == "__main__":
    main()
