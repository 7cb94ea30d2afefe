"""Which of several writers wrote an untagged line: tracebacks that ranks wrote into each other, taken apart.

Every rank of a failing server prints a traceback. Python writes a long one in pieces of 8 kB, and a pipe puts the
pieces of several ranks into each other, at worst line by line; only the first line of each carries a rank. Rules:

1. *Shape*: a traceback is a header, frames with what stands under them, an exception; then more text, or a chain
   line and another traceback. A line goes only to a writer that can print it next.
2. *The same path*: ranks run the same code, so that what one has printed foretells the others. All texts lie in
   one tree; a writer stands at a node of it, and takes what is a child of that node. What stands under a frame is
   the same wherever the frame stands, and is kept once.
3. *Bursts*: where writers write several lines at once, the one that wrote last goes on.
4. *Skips*: two writers may expect the same line (a frame that is called again and again), and the wrong one may
   get it. The other then goes on from the next line that it can take: what it skips stands in the tree. So the
   lines of a writer are those from the root to its node, whoever was given which.
5. *Growth*: a text that nobody has printed before grows a branch where it is most natural: a caller's source line
   names its callee. One that was printed before and that nobody expects is let go.
6. *What counts is never let go*: headers, chain lines, exceptions. A writer has one exception for each of its
   tracebacks, so that the number of writers and the exceptions are right however badly the lines lie. Which of
   several alike writers ended with which exception can be undecidable, and is then marked as a guess.

Texts in, keys out; it knows nothing of engines. The price list is worth no more than its order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.raised import HEADER, IN_TRACE, NEXT, At, Line, frame_of, line_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MARK = re.compile(r"\s+[~^][~^ ]*\Z")
# ``GPU 3 has a total capacity of …``, ``[Rank 3] …``, ``device cuda:3``
_NUMBER = re.compile(r"(?:\bGPU|\b[Rr]ank|\bcuda:|\bdevice:?)[ =]?(\d{1,4})\b")

# Prices of growth, from what nearly every traceback does to what hardly any does.
_FREE, _NATURAL, _ODD, _UNLIKELY = 0.0, 2.0, 4.0, 8.0
_AT_FORK = 5.0  # others that stood here went another way
_LAST = 2.0  # in favour of the one that wrote last
_NUMBERED = 6.0  # in favour of the one whose number the line names
_NO_LIMIT = 100.0
_BURSTS = 3  # so many lines go on for each that does not, where writers write more than a line at once
_UNSURE = 8  # so many lines that do not go on are taken for granted, until more is known
_SKIP = 12  # frames that a writer may have missed, as many as a module's call takes four times
# Recursion is folded by Python; only a compiler prints more lines.
_LINES = 4000
_COUNTED = {Line.EXCEPTION, Line.CHAIN, Line.HEADER}
# A frame has a source line, from Python 3.11 one of marks; frames through which calls pass hang there too.
_UNDER = 16


class _Node:
    """One line of the tree, and who stands there."""

    __slots__ = ("at", "depth", "here", "is_fence", "kids", "level", "parent", "text")

    def __init__(self, parent: _Node | None, text: str, at: At) -> None:
        self.parent, self.text, self.at = parent, text, at
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.is_fence = at in {At.HEAD, At.EXCEPTION, At.CHAIN}  # nobody skips over it
        self.level: int = (at is At.HEAD) + (0 if parent is None else parent.level)  # tracebacks so far
        self.kids: dict[str, _Node] = {}
        self.here: dict[int, None] = {}  # in the order in which they came


class Weave:
    """The writers of one server that have begun to fail. Lines are kept once, however many print them."""

    def __init__(self) -> None:
        """Nobody writes yet."""
        self._roots: dict[str, _Node] = {}
        self._standing: dict[int, _Node] = {}
        self._numbers: dict[int, int] = {}
        self._hushed: set[int] = set()  # they print no more text behind their exception
        self._by_text: dict[str, list[_Node]] = {}
        self._under: dict[str, list[str]] = {}  # frame -> what stands under it
        self._bare: dict[str, None] = {}  # frames under which nothing is known yet
        self._hanging: set[str] = set()  # all that stands under some frame
        self._last = -1
        self._stays, self._leaves = 0, _UNSURE  # how often the next line was, was not, the same writer's
        self.swapped: int | None = None  # the writer that the last line gave another's lines to
        self.guessed: set[int] = set()  # writers that took a line which others could as well have printed

    def __len__(self) -> int:
        """How many write."""
        return len(self._standing)

    def __iter__(self) -> Iterator[int]:
        """Their keys, in the order in which they began."""
        return iter(list(self._standing))

    def open(self, key: int, head: str, number: int | None = None) -> None:
        """Begin a writer by its first line, which is known to be its own.

        Args:
            key: the caller's name for it, not below 0.
            head: what the first line says behind its prefix.
            number: its rank's number, as its own messages would print it.
        """
        root = self._roots.get(head)
        if root is None:
            root = self._roots[head] = _Node(None, head, At.HEAD if head.rstrip().endswith(HEADER) else At.OPEN)
        root.here[key] = None
        self._standing[key] = root
        self._last = key
        if number is not None:
            self._numbers[key] = number

    def close(self, key: int) -> None:
        """End a writer; what it printed still foretells the others, as long as any is left."""
        self._standing.pop(key).here.pop(key)
        self._hushed.discard(key)
        self.guessed.discard(key)
        self._numbers.pop(key, None)
        if not self._standing:
            for memory in (self._roots, self._by_text, self._under, self._bare, self._hanging):
                memory.clear()
            self._stays, self._leaves = 0, _UNSURE

    def hush(self, key: int) -> None:
        """Another record has come: what this writer may still print is a traceback's, and no more text."""
        self._hushed.add(key)

    def at(self, key: int) -> At:
        """What a writer's last line was."""
        return self._standing[key].at

    def lines(self, key: int) -> list[tuple[str, At]]:
        """All lines of a writer but blank ones, the first one too; what stands under a frame is of the frame."""
        nodes, node = [], self._standing.get(key)
        while node is not None:
            nodes.append(node)
            node = node.parent
        found = []
        for node in reversed(nodes):
            found.append((node.text, node.at))
            if node.at is At.FRAME:
                found += [(text, At.FRAME) for text in self._under.get(node.text, ())]
        return found

    def add(self, key: int, text: str) -> bool:
        """Take a line that is known to be this writer's; answer whether it fits there."""
        node, line = self._standing[key], line_of(text)
        if line in {Line.UNDER, Line.OTHER} and node.at is At.FRAME:
            self._hang(node.text, text)
            self._last = key
            return True
        if line is Line.UNDER and node.at is At.HEAD:
            return True  # the outermost call passes through a decorator
        at = self._follow(node, line)
        if at is None or (at is At.TEXT and key in self._hushed):
            return False
        self._put(key, self._kid(node, text, at))
        return True

    def give(self, text: str) -> int | None:
        """Take an untagged line; answer whose it is, None where nobody can have printed it or anybody may have."""
        line, self.swapped = line_of(text), None
        if line is Line.BLANK:
            return None
        if len(self._standing) == 1:
            key = next(iter(self._standing))
            self._stays += 1
            return key if self.add(key, text) else None
        known = self._by_text.get(text, ())
        if line in _COUNTED:
            return self._counted(text, line, known)
        if line is Line.UNDER and self._hung(text):
            return None
        taken = self._gone_on(text, line)
        if line is Line.UNDER and text not in self._by_text:
            return taken  # perhaps another's source line; a message that goes on is not worth the risk
        taken = self._expected(text, known) if taken is None else taken
        if taken is None and (not known or self._in_bursts or line is not Line.FRAME):
            taken = self._grown(text, line, _NATURAL if known else _NO_LIMIT)
        return self._skipped(known) if taken is None else taken

    # --- what is never let go -----------------------------------------------------------------------

    def _counted(self, text: str, line: Line, known: Sequence[_Node]) -> int | None:
        """Give a header, a chain line or an exception to a writer whose traceback is still without it.

        A text that was printed before stands at the same place of a writer's chain of tracebacks.
        """
        if line is Line.EXCEPTION:
            self._make_room(_number(text))
        places = [(node, self._follow(node, line)) for node in self._groups()]
        able = [(node, at) for node, at in places if at is not None and at is not At.TEXT]
        levels = {kid.level for kid in known}
        able = [(node, at) for node, at in able if node.level + (at is At.HEAD) in levels] or able
        skips = _skips(known)
        best: tuple[float, int, _Node, At, _Node | None] | None = None
        for node, then in able:
            key, named = self._chosen(node, _number(text))
            below = skips.get(node)
            price = self._price(node, text, then) if below is None else 0.01 * (below.depth - node.depth) - _UNLIKELY
            price -= (_LAST if key == self._last else _FREE) + (_NUMBERED if named else _FREE)
            if best is None or price < best[0]:
                best = (price, key, node, then, below)
        if best is None:
            return None
        _, key, node, at, below = best
        self._doubt(key, sum(len(node.here) for node, _ in able), _number(text))
        self._put(key, self._kid(node, text, at) if below is None else below)
        return key

    def _make_room(self, number: int | None) -> None:
        """Let a line have the writer that it names: what that one was given before by a guess goes to another."""
        named = [key for key, own in self._numbers.items() if own == number and key in self._standing]
        waiting = [key for key, node in self._standing.items() if node.at in IN_TRACE]
        if number is None or len(named) != 1 or named[0] in waiting or named[0] not in self.guessed or not waiting:
            return
        one, other = named[0], waiting[0]
        here, there = self._standing[one], self._standing[other]
        self._put(one, there)
        self._put(other, here)
        self.guessed.add(other)
        self.swapped = other

    # --- what was foretold --------------------------------------------------------------------------

    @property
    def _in_bursts(self) -> bool:
        return self._stays > _BURSTS * self._leaves

    def _gone_on(self, text: str, line: Line) -> int | None:
        """Give a line to the one that wrote last, where it can go on so and writers do not change at every line."""
        key, node = self._last, self._standing.get(self._last)
        if node is None:
            return None
        if text in node.kids:
            self._stays += 1
            self._put(key, node.kids[text])
            return key
        at, is_fork = self._follow(node, line), bool(node.kids)
        if at is None or is_fork or (at is At.TEXT and key in self._hushed):
            self._leaves += 1
        if at is None or (at is At.TEXT and key in self._hushed):
            return None
        if is_fork and not (self._in_bursts and node.at is At.HEAD):
            return None  # but right behind its first line a burst is its own, whatever others printed there
        price = self._price(node, text, at)
        if price > (_ODD if self._in_bursts and not is_fork else _NATURAL):
            return None
        if not self._in_bursts and text in self._by_text:
            return None
        if (is_fork or price > _NATURAL) and any(self._is_natural(other, text, line) for other in self._groups()):
            return None  # a burst has ended: this goes on elsewhere
        self._put(key, self._kid(node, text, at))
        return key

    def _is_natural(self, node: _Node, text: str, line: Line) -> bool:
        at = self._follow(node, line)
        return at is At.FRAME and not node.kids and self._price(node, text, at) <= _NATURAL

    def _expected(self, text: str, known: Sequence[_Node]) -> int | None:
        """Give a line to one of those who stand before it in the tree."""
        above = [kid.parent for kid in known if kid.parent is not None and kid.parent.here]
        if not above:
            return None
        node = min(above, key=lambda node: node.depth)
        key, _ = self._chosen(node, _number(text))
        self._doubt(key, sum(len(node.here) for node in above), _number(text))
        self._put(key, node.kids[text])
        return key

    def _skipped(self, known: Sequence[_Node]) -> int | None:
        """Give a line to the nearest who stands before it, with lines between that others were given."""
        skips = _skips(known)
        if not skips:
            return None
        node, below = min(skips.items(), key=lambda skip: skip[1].depth - skip[0].depth)
        if below.depth - node.depth > _SKIP:
            return None
        key, _ = self._chosen(node, None)
        self._doubt(key, len(node.here) + 1, None)
        self._put(key, below)
        return key

    # --- growth -------------------------------------------------------------------------------------

    def _grown(self, text: str, line: Line, limit: float) -> int | None:
        """Give a line to the one for whom it is least odd; None where it is odder than the limit for all."""
        best: tuple[float, int, _Node, At] | None = None
        alike = 0
        for node in self._groups():
            at = self._follow(node, line)
            if at is None or (at is At.TEXT and all(key in self._hushed for key in node.here)):
                continue
            key, _ = self._chosen(node, None)
            price = self._price(node, text, at) + (_AT_FORK if node.kids else _FREE)
            price -= _LAST if key == self._last and self._in_bursts else _FREE
            alike += len(node.here)
            if best is None or price < best[0]:
                best = (price, key, node, at)
        if best is None or best[0] > limit:
            return None
        _, key, node, at = best
        self._doubt(key, alike, None)
        self._put(key, self._kid(node, text, at))
        return key

    def _price(self, node: _Node, text: str, at: At) -> float:
        """How odd it is that this line follows that node, where none of its kind has yet."""
        source = " ".join(self._under.get(node.text, ()))
        if at is At.FRAME:
            if text == node.text:
                return _ODD  # recursion is rarer than a line of another rank
            return _NATURAL if node.at is At.HEAD or _names(source, text) else _ODD
        if at is At.EXCEPTION:
            natural = source.lstrip().startswith(("raise", "assert"))
            return (_NATURAL if natural else _ODD) - _UNLIKELY * node.level
        return _UNLIKELY if text[:1].isspace() else _NATURAL

    # --- what stands under frames -------------------------------------------------------------------

    def _hung(self, text: str) -> bool:
        """Hang a line under the frame to which it belongs; False where it is no such line.

        The frame just printed comes first, then the oldest that is bare. What stands under some frame already needs
        no other place, unless a frame that was just printed in a burst is still bare.
        """
        node = self._standing.get(self._last)
        last = node.text if node is not None and node.at is At.FRAME else None
        known, is_mark = text in self._hanging, _MARK.match(text) is not None
        if known and last is not None and last not in self._bare:
            self._stays += text in self._under[last]
            self._leaves += text not in self._under[last]
        if last is not None and (last in self._bare) != is_mark and (self._in_bursts or not (is_mark or known)):
            self._hang(last, text)
        elif not known and not is_mark:
            if not self._bare:
                return False
            self._hang(next(iter(self._bare)), text)
        return True

    def _hang(self, frame: str, text: str) -> None:
        under = self._under.setdefault(frame, [])
        self._bare.pop(frame, None)
        if text not in under and len(under) < _UNDER:
            under.append(text)
            self._hanging.add(text)

    # --- the tree -----------------------------------------------------------------------------------

    def _groups(self) -> Iterable[_Node]:
        """The nodes where anybody stands."""
        return {id(node): node for node in self._standing.values()}.values()

    def _chosen(self, node: _Node, number: int | None) -> tuple[int, bool]:
        """Which of those who stand together: the one whose number the line names, the last to write, the first."""
        named = [key for key in node.here if self._numbers.get(key) == number] if number is not None else []
        if named:
            return named[0], True
        return (self._last if self._last in node.here else next(iter(node.here))), False

    def _doubt(self, key: int, alike: int, number: int | None) -> None:
        """Note that a writer took what others could have printed."""
        if alike > 1 and key != self._last and (number is None or self._numbers.get(key) != number):
            self.guessed.add(key)

    def _follow(self, node: _Node, line: Line) -> At | None:
        at = NEXT[node.at].get(line)
        return at if node.depth < _LINES or at is At.EXCEPTION else None

    def _kid(self, node: _Node, text: str, at: At) -> _Node:
        kid = node.kids.get(text)
        if kid is None:
            kid = node.kids[text] = _Node(node, text, at)
            self._by_text.setdefault(text, []).append(kid)
            if at is At.FRAME and text not in self._under:
                self._under[text] = []
                self._bare[text] = None
        return kid

    def _put(self, key: int, node: _Node) -> None:
        self._standing[key].here.pop(key)
        node.here[key] = None
        self._standing[key] = node
        self._last = key


def _skips(known: Iterable[_Node]) -> dict[_Node, _Node]:
    """Where those who stand before some nodes could skip to: the nearest, forward, and within one traceback."""
    found: dict[_Node, _Node] = {}
    for below in known:
        above = below.parent
        while above is not None:
            if above.here:
                before = found.get(above)
                if before is None or below.depth < before.depth:
                    found[above] = below
            if above.is_fence:
                break
            above = above.parent
    return found


def _names(source: str, text: str) -> bool:
    """Whether a caller's source line names the frame that it calls."""
    frame = frame_of(text)
    name = "" if frame is None else frame.name
    return bool(name) and (name in source or (name == "__init__" and "(" in source))


def _number(text: str) -> int | None:
    found = _NUMBER.search(text)
    return None if found is None else int(found[1])
