"""The screen. Imported only when one is shown."""
