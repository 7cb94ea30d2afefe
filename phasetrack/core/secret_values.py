r"""How far a value goes that stands behind a name: to the end of its whole quoted, bracketed or wrapped form.

``x``, ``'x'``, ``b'x'``, ``\"x\"``, ``'''x'''``, ``['a', 'b']``, ``SecretStr('x')``, ``$(cat x)``. A form that is not
closed goes to the end of the text. Logs are hostile: the time grows with the length of the text.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"(?P<plain>[^\s\\'\"`,;&()\[\]{}]++|\\++(?![\\'\"`]))"
    r"|(?P<quote>(?P<one>\\*+['\"`])(?>(?:(?P=one){2})?))"
    r"|(?P<open>[(\[{])|(?P<shut>[)\]}])|(?P<part>[,;&])|(?P<blank>\s++)"
)
# What is no longer of a bare value: a separator with a blank, a quote or another name behind it; a closing bracket or
# quote, unless letters go on right behind it (p,ass; it's).
_ENDS = re.compile(r"[,;&](?:[^\w,;&.@#$%^*!?~+/=:|-]|\Z|[\w.%-]{1,64}+[=:])|[)\]}](?!\w)|\\*+['\"`](?!\w)")
# … and of a quoted one: another name's value, a tag.
_STOPS = re.compile(r"[:=<>|]")
_WRAPPED = re.compile(r"[bBrRuUfF]{1,2}\Z")
# '…' with \' in it, or '' (SQL), or '\'' (shell)
_CLOSED = {
    "'": re.compile(r"'[^'\\]*+(?>(?:(?:\\.|''|'\\'')[^'\\]*+)*)'", re.DOTALL),
    '"': re.compile(r'"[^"\\]*+(?>(?:(?:\\.|"")[^"\\]*+)*)"', re.DOTALL),
    "`": re.compile(r"`[^`\\]*+(?>(?:\\.[^`\\]*+)*)`", re.DOTALL),
}
_QUOTES = {quote: re.compile(rf"(?<!\\)\\*+{quote}") for quote in _CLOSED}


def value_end(text: str, begin: int, known: int | None = None) -> tuple[int, str]:
    """Find where a value ends, and the quotes and brackets that are still open there.

    Args:
        text: what holds it.
        begin: where it begins.
        known: up to where it is known to go.
    """
    at = begin if known is None else known
    stack: list[str] = []
    while (piece := _PIECE.match(text, at)) is not None:
        kind = piece.lastgroup
        if kind == "quote" and (stack or at == begin or _WRAPPED.match(text[begin : min(at, begin + 3)])):
            end = _quote_end(text, at, piece["quote"])
            if end < 0:
                return len(text), "".join([*stack, piece["quote"]])
            at = end
            if not stack and _STOPS.match(text, at):
                break
            continue
        if kind == "open":
            stack.append(piece[0])
        elif kind == "shut" and stack:
            stack.pop()
        elif not stack and (kind == "blank" or (kind != "plain" and _ENDS.match(text, at))):
            break
        at = piece.end()
    return at, "".join(stack)


def _quote_end(text: str, at: int, quote: str) -> int:
    """Where a quoted text ends; -1 where it does not."""
    behind, mark = at + len(quote), quote[-1]
    if quote.count(mark) == 3:
        end = text.find(quote, behind)
        return -1 if end < 0 else end + len(quote)
    if len(quote) == 1:
        closed = _CLOSED[mark].match(text, at)
        return -1 if closed is None else closed.end()
    for found in _QUOTES[mark].finditer(text, behind):
        if found.end() - found.start() <= len(quote):
            return found.end()
    return -1
