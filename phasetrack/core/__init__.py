"""The pure half: no I/O, no clock, no environment."""
