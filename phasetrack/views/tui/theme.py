"""Style names to the terminal's own 16 colours.

No style is the only bearer of a meaning: each stands beside a word or a glyph. Text is the terminal's default
colour, bold or dim, so that it is as readable on white as on black; only glyphs, bars and badges are coloured,
and badges bring both their colours. Without colour the attributes stay.
"""

from __future__ import annotations

from functools import cache

from rich.style import Style

# name: (foreground, background, attributes)
_STYLES: dict[str, tuple[str | None, str | None, str]] = {
    "": (None, None, ""),
    "dim": (None, None, "dim"),
    "bold": (None, None, "bold"),
    "good": ("green", None, ""),
    "bad": ("red", None, "bold"),
    "busy": ("cyan", None, "bold"),
    "track": (None, None, "dim"),
    "key": (None, None, "bold"),
    "match": (None, None, "reverse"),
    "badge-plain": (None, None, "reverse bold"),
    "badge-busy": ("black", "cyan", "bold"),
    "badge-good": ("black", "green", "bold"),
    "badge-warn": ("black", "yellow", "bold"),
    "badge-bad": ("bright_white", "red", "bold"),
}


@cache
def style(name: str, *, colour: bool, inverse: bool = False) -> Style:
    """The look of a style name.

    Args:
        name: one of this module's names.
        colour: False under NO_COLOR: badges turn to reverse video.
        inverse: on the selected line.
    """
    fore, back, attributes = _STYLES[name]
    words = set(attributes.split())
    if not colour:
        if back is not None:
            words |= {"reverse", "bold"}
        fore = back = None
    if inverse:
        words ^= {"reverse"}
        words -= {"dim"}
        fore = back = None
    return Style(
        color=fore,
        bgcolor=back,
        bold="bold" in words or None,
        dim="dim" in words or None,
        reverse="reverse" in words or None,
    )
