"""Functions of a snapshot."""
