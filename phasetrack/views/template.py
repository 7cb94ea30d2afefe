"""Our templates, filled: the one place where HTML is made. Everything is escaped but our own style and script."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from phasetrack import __version__
from phasetrack.core.say import duration
from phasetrack.views.words import size

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# What must not be broken where a line ends: a flag, a point in time, a figure and its unit.
_UNBROKEN = re.compile(
    r"(?<![\w-])--[a-z][\w-]{0,48}"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:[+-]\d\d:\d\d)?"
    r"|(?<![\w.])\d[\d.]{0,9} (?:s|min|h|[KMGT]iB)\b"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def render(template: str, **data: object) -> str:
    """Fill a template of this package."""
    text = _environment().get_template(template).render(data)
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from base64 import b64encode
    from hashlib import sha256

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("phasetrack.views", "templates")
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # Our own files: the only text that is not escaped. The policy lets this one script run, and no other.
    style, script = (loader.get_source(env, name)[0] for name in ("page.css", "page.js"))
    digest = b64encode(sha256(script.encode()).digest()).decode()
    env.globals |= {
        "style": Markup(style),  # noqa: S704 - ours
        "script": Markup(script),  # noqa: S704 - ours
        "script_hash": f"sha256-{digest}",
        "version": __version__,
    }
    env.filters |= {"duration": duration, "size": size, "unbroken": unbroken}
    return env


def unbroken(text: str) -> Markup:
    """Escaped, and no line ends inside of what a reader copies whole."""
    from markupsafe import Markup, escape

    return Markup(_UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', str(escape(text))))  # noqa: S704 - escaped


def cut(text: str, most: int = 400) -> str:
    """A text of any length in bounded room."""
    return text if len(text) <= most else text[: most - 1] + "…"
