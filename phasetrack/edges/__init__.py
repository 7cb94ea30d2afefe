"""The world: files, processes, HTTP, history."""
