"""Who and where out of text: users, hosts, addresses, paths, on top of the secrets of ``redact``.

For logs that are given away. Each original gets one mask for as long as a ``Masker`` lives (``host-2``,
``/dir-1/dir-5``), so what was the same stays the same, in all files. Masks keep the form of what they stand for:
a masked log tells the same phases, times and failures. What everybody has stays readable: loopback, system and
package folders, published model names. The table of masks never leaves this object; ``counts`` tells kinds only.

A name is also masked where it stands alone, once it was recognised anywhere: ``learn`` a whole log first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core import places
from phasetrack.core.model import End, Segment
from phasetrack.core.redact import MASK
from phasetrack.core.secret_lines import SecretLines
from phasetrack.core.segments import LIMIT, Segmenter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from phasetrack.core.segments import Piece

# Texts are looked up by their shape first; longer ones are not worth keeping.
_SHAPE_CHARS, _SHAPES_MAX = 400, 20_000
_BLANK = str.maketrans("123456789", "000000000")
# Names learned; a log with more is generated text.
_NAMES_MAX = 500
_TERMINATORS = {End.LF: "\n", End.CR: "\r", End.CUT: "", End.OPEN: ""}
_LEFT_OUT = f"[a text of over {LIMIT} characters without a break is left out]"


class Masker:
    """Masks texts one after the other, always the same way."""

    def __init__(self, *, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        """Start with names that are known from elsewhere: this machine's and its user's."""
        self._masks: dict[tuple[str, str], str] = {}  # (kind, original) -> mask
        self._hits: dict[str, int] = {}  # mask -> how often
        self._numbers: dict[str, int] = {}
        self._names: dict[str, str] = {}  # name that is masked wherever it stands -> its mask
        self._names_re: re.Pattern[str] | None = None
        self._changed = False
        self._plain: set[str] = set()  # shapes of texts in which there is nothing to mask
        for user in users:
            self._user(user)
        for host in hosts:
            self._host(host)
        self._hits.clear()

    @property
    def counts(self) -> dict[str, tuple[int | None, int]]:
        """Kind to how many different ones were masked (None: not told apart), and how often. Never the originals."""
        found: dict[str, list[int]] = {}
        for mask, hits in self._hits.items():
            found.setdefault("secret" if mask == MASK else mask.partition("-")[0], []).append(hits)
        return {kind: (None if kind == "secret" else len(hits), sum(hits)) for kind, hits in sorted(found.items())}

    def learn(self, text: str) -> None:
        """Recognise the names of a text, without counting."""
        before = dict(self._hits)
        self.mask(text)
        self._hits = before

    def mask(self, text: str, secrets: SecretLines | None = None) -> str:
        """Mask a text; twice is the same as once. Never raises.

        Args:
            text: a line of a log, or a frame.
            secrets: what stood before it, where secrets may go on over lines.
        """
        secrets = SecretLines() if secrets is None else secrets
        shape = "" if secrets.is_open else _shape(text)
        if shape in self._plain:
            return self._alone(text)
        clean = self._mask_all(text, secrets)
        if shape and clean == text and not secrets.is_open:
            if len(self._plain) >= _SHAPES_MAX:
                self._plain.clear()
            self._plain.add(shape)
        return self._alone(clean)

    def _mask_all(self, text: str, lines: SecretLines) -> str:
        """Everything but names that stand alone."""
        for owner in places.URL_USER.findall(text) if "://" in text else ():
            self._user(owner)
        secrets = text.count(MASK)
        text = lines.secrets(text)
        if places.HINT.search(text) is not None:
            text = self._places(text)
        text = places.BLOB.sub(_blob, text)
        found = text.count(MASK) - secrets
        if found > 0:
            self._hits[MASK] = self._hits.get(MASK, 0) + found
        return text

    def _places(self, text: str) -> str:
        text = places.EMAIL.sub(lambda m: self._mask("email", m[0]), text)
        text = places.URL_HOST.sub(lambda m: m["scheme"] + self._host(m["host"]), text)
        text = places.URL_REST.sub(self._url_path, text)
        text = places.MAC.sub(lambda m: self._mask("mac", m[0].lower()), text)
        text = places.IPV6.sub(self._address, text)
        text = places.IPV4.sub(self._address, text)
        text = places.QUOTED_PATH.sub(lambda m: m["quote"] + self._path(m["path"]) + m["quote"], text)
        text = places.PATH.sub(self._bare_path, text)
        text = places.POD.sub(lambda m: "/".join(self._host(part) for part in m["pod"].split("/")), text)
        for pattern in (places.NCCL, places.JOURNAL, places.HOST_FIELD):
            text = pattern.sub(self._host_in, text)
        text = places.USER_FIELD.sub(lambda m: m["name"] + self._user(m["user"]), text)
        text = places.AT_HOST.sub(lambda m: f"{self._user(m['user'])}@{self._host(m['host'])}", text)
        return places.DOMAIN.sub(lambda m: self._host(m[0]), text)

    # --- one kind each ------------------------------------------------------------------------------

    def _mask(self, kind: str, original: str, suffix: str = "") -> str:
        mask = self._masks.get((kind, original))
        if mask is None:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            mask = self._masks[kind, original] = f"{kind}-{number}{suffix}"
        self._hits[mask] = self._hits.get(mask, 0) + 1
        return mask

    def _name(self, kind: str, name: str) -> str:
        """A name that is masked wherever it stands, from now on."""
        mask = self._mask(kind, name)
        usual = name.lower() in places.COMMON or len(name) < 3 or name.isdigit()
        if not usual and name not in self._names and len(self._names) < _NAMES_MAX:
            self._names[name] = mask
            self._changed = True
        return mask

    def _user(self, name: str) -> str:
        if name.lower() in places.COMMON or places.MASKED.match(name):
            return name
        return self._name("user", name)

    def _host(self, name: str) -> str:
        name = name.rstrip(".")
        if name.lower() in places.OPEN_HOSTS or places.MASKED.match(name) or name.startswith("127."):
            return name
        if re.fullmatch(r"[\d.]+", name):
            return name  # an address: masked as one
        if name.lower() in places.COMMON:
            return name
        first, dot, _ = name.partition(".")
        if dot and re.search(r"[\d-]", first) and len(first) > 3:
            self._name("host", first)
        return self._name("host", name)

    def _host_in(self, found: re.Match[str]) -> str:
        return found[0][: found.start("host") - found.start()] + self._host(found["host"])

    def _address(self, found: re.Match[str]) -> str:
        address = places.own_address(found[0])
        return found[0] if address is None else self._mask("ip", str(address))

    # --- paths --------------------------------------------------------------------------------------

    def _bare_path(self, found: re.Match[str]) -> str:
        if places.ROUTE.search(found.string, max(found.start() - 8, 0), found.start()):
            return found[0]
        return self._path(found["path"])

    def _url_path(self, found: re.Match[str]) -> str:
        host = found["host"]
        if host in places.OPEN_HOSTS or host.startswith("127."):
            return found[0]
        return f"{found['who']}{host}{found['port']}{self._path(found['path'])}"

    def _path(self, path: str) -> str:
        """Mask a path folder by folder; single ones (``/health``) and the insides of packages stay."""
        parts = path.split("/")
        if (len(parts) < 3 and not path.startswith("~")) or (parts[0] == "" and parts[1] in places.OPEN_ROUTES):
            return path
        own = _own(parts)
        return "/".join(self._part(parts, k) if k < own else part for k, part in enumerate(parts))

    def _part(self, parts: list[str], k: int) -> str:
        part = parts[k]
        if k and parts[k - 1] in places.PEOPLE:
            return self._user(part) if part else part
        if part.startswith("~") and len(part) > 1:
            return "~" + self._user(part[1:])
        if part in places.OPEN_DIRS or places.OPEN_PART.match(part) or places.MASKED.match(part):
            return part
        if places.is_published(part):
            return part
        if part.startswith(("models--", "datasets--")):
            kind, *names = part.split("--")
            return "--".join([kind, *(self._part([name], 0) for name in names)])
        stem, dot, suffix = part.rpartition(".")
        if k == len(parts) - 1 and dot and stem and re.fullmatch(r"[a-z]\w{0,11}", suffix):
            return self._mask("file", part, f".{suffix}")
        return self._mask("dir", part)

    # --- names that stand alone ---------------------------------------------------------------------

    def _alone(self, text: str) -> str:
        if self._changed:
            longest_first = sorted(self._names, key=lambda name: (-len(name), name))
            self._names_re = re.compile(
                rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])"
            )
            self._changed = False
        return text if self._names_re is None else self._names_re.sub(self._known, text)

    def _known(self, found: re.Match[str]) -> str:
        mask = self._names[found[0]]
        self._hits[mask] = self._hits.get(mask, 0) + 1
        return mask


def _shape(text: str) -> str:
    """A text with its digits blanked, one by one: bars and serving lines differ in nothing else.

    Empty where the digits' values matter: in addresses. Nothing else that is masked looks at them.
    """
    if len(text) > _SHAPE_CHARS:
        return ""
    text = text.replace("127.0.0.1", "localhost")
    return "" if places.ADDRESS_HINT.search(text) else text.translate(_BLANK)


def _own(parts: list[str]) -> int:
    """From which part on a path is a package's own."""
    for k, part in enumerate(parts):
        if part in places.PACKAGES or (part in places.SOURCES and places.SOURCE_FILE.match(parts[-1])):
            return k
        if places.STDLIB.match(part) and parts[k - 1].startswith("lib"):
            return k
    return len(parts)


def _blob(found: re.Match[str]) -> str:
    text = found[0]
    mixed = text.lower() != text != text.upper() and any(char.isdigit() for char in text)
    return MASK if mixed else text


def segments(chunks: Iterable[bytes]) -> Iterator[Segment]:
    """A whole stream as what a terminal would have been sent; nothing is stepped over."""
    segmenter = Segmenter()
    for chunk in chunks:
        yield from _texts(segmenter.feed(chunk))
    yield from _texts(segmenter.close())


def _texts(found: Iterable[Piece]) -> Iterator[Segment]:
    for segment in found:
        assert isinstance(segment, Segment)  # noqa: S101 - without ``swallow`` there is no bulk
        yield segment


def masked(found: Iterable[Segment], masker: Masker) -> Iterator[bytes]:
    """The stream again, masked: the same lines and frames, without escape sequences.

    A text that was cut for its length is carried on from its last blank, so that no secret is cut in two.
    """
    carry, line, secrets = "", 1, SecretLines()
    for segment in found:
        at = segment.place.line or line
        skipped, line = "\n" * (at - line), at + (segment.end is End.LF)  # lines without a text
        text, carry = carry + segment.text, ""
        if segment.end is End.CUT:
            blank = text.rfind(" ") + 1
            text, carry = text[:blank], text[blank:]
            carry = carry if len(carry) <= 2 * LIMIT else _LEFT_OUT
        yield (skipped + masker.mask(text, secrets) + _TERMINATORS[segment.end]).encode("utf-8", "replace")
    if carry:
        yield masker.mask(carry, secrets).encode("utf-8", "replace")
