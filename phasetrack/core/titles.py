"""What a process of the server's tree is, told by its name and command line.

SGLang gives its processes titles: ``sglang::scheduler``, ``sglang::scheduler_TP3``,
``sglang::scheduler_DP1_TP3_EP3``, ``sglang::detokenizer``, ``sglang::data_parallel_controller``. They take them
after their imports; until then they are ``python -c from multiprocessing.spawn …`` like any other child. The
kernel cuts a command's own name at 15 characters, so the command line is looked at first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAIN = "main"
RANK = "rank"
DETOKENIZER = "detokenizer"
COMPILER = "compiler"
OTHER = "other"

# JIT builds run as: ninja > sh > nvcc > sh > cicc | cudafe++ | ptxas | gcc > cc1plus | as
_COMPILERS = frozenset({
    "ninja", "nvcc", "cicc", "ptxas", "cudafe++", "cc1plus", "cc1", "gcc", "g++", "gcc-real", "g++-real", "c++", "cc",
    "clang", "clang++", "hipcc", "ld", "ld.lld", "lld", "as", "collect2", "fatbinary", "nvlink", "bin2c", "cmake",
    "make", "tileiras",
})  # fmt: skip
_COMPILE_WORKER = re.compile(r"torch[._/]_inductor[._/]compile_worker|compile_worker/__main__")
_TITLE = re.compile(r"sglang::(?P<kind>[a-z]+)(?P<rank>(?:_[A-Z]+\d+)*)")
_LAUNCH = re.compile(r"\bsglang[.\w]*(?:launch_server|serve\b)|\bsglang serve\b|-m sglang\.")


class Title(NamedTuple):
    """What a process is."""

    name: str  # as people call it: "sglang::scheduler_TP3", "nvcc"
    role: str
    rank: str  # "TP3", "DP1 TP3", "" where not a rank or the only one


def title_of(comm: str, command: str) -> Title:
    """Read a process's name.

    Args:
        comm: the kernel's name of it, at most 15 characters.
        command: its command line, joined by spaces; may be empty (a zombie) or cut.
    """
    found = _TITLE.match(command) or _TITLE.match(comm)
    if found is not None:
        return _titled(found, command or comm)
    program = command.split(" ", 1)[0].rsplit("/", 1)[-1]
    if _COMPILE_WORKER.search(command):
        return Title("compile_worker", COMPILER, "")
    if comm in _COMPILERS or program in _COMPILERS:
        return Title(comm if comm in _COMPILERS else program, COMPILER, "")
    return Title(comm or program, OTHER, "")


def is_launch(command: str) -> bool:
    """Whether a command line starts an engine's server."""
    return _LAUNCH.search(command) is not None


def _titled(found: re.Match[str], text: str) -> Title:
    name = text.split(" ", 1)[0]
    kind = found["kind"]
    rank = found["rank"].replace("_", " ").strip()
    if "scheduler".startswith(kind) and len(kind) > 3:
        return Title(name, RANK, rank)
    if "detokenizer".startswith(kind) and len(kind) > 3:
        return Title(name, DETOKENIZER, "")
    return Title(name, OTHER, "")
