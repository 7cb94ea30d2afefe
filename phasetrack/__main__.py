"""``python -m phasetrack``."""

from phasetrack.cli import main

if __name__ == "__main__":
    main()
