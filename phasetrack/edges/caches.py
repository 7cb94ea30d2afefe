"""Folders that grow while a server compiles or downloads: first-class evidence, since both print nothing.

JIT caches (DeepGEMM, FlashInfer, Triton, torch inductor, TVM FFI, torch extensions) hold thousands of small files; they
are counted, not read. A download of the Hugging Face hub is a ``*.incomplete`` file in the model's ``blobs``; parallel
downloaders make it sparse, so its blocks count and not its length.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A cache with more entries than this is not walked: the count would cost more than it tells.
_ENTRIES = 20_000
_DEPTH = 6
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system says

# Environment variable -> the folder itself; else below the home folder.
_JIT = (
    ("SGLANG_DG_CACHE_DIR", ".cache/deep_gemm"),
    ("DG_JIT_CACHE_DIR", ".deep_gemm"),
    ("TRITON_CACHE_DIR", ".triton/cache"),
    ("TORCH_EXTENSIONS_DIR", ".cache/torch_extensions"),
    ("TVM_FFI_CACHE_DIR", ".cache/tvm-ffi"),
)


class Growth(NamedTuple):
    """How much is there now."""

    files: int
    bytes: int


def jit_folders(environment: Mapping[str, str], user: str) -> list[str]:
    """Where a server of this environment keeps what it compiles."""
    home = environment.get("HOME") or "/root"
    folders = [environment.get(name) or f"{home}/{below}" for name, below in _JIT]
    base = environment.get("FLASHINFER_WORKSPACE_BASE") or home
    temporary = environment.get("TMPDIR") or "/tmp"  # noqa: S108 - where torch puts its cache
    inductor = environment.get("TORCHINDUCTOR_CACHE_DIR") or f"{temporary}/torchinductor_{user}"
    return [*folders, f"{base}/.cache/flashinfer", inductor]


def hub_folder(environment: Mapping[str, str]) -> str:
    """Where the Hugging Face hub keeps what it downloads."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return environment[name]
    home = environment.get("HOME") or "/root"
    base = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or home + '/.cache'}/huggingface"
    return f"{base}/hub"


def measure(folders: list[str], root: str = "") -> Growth | None:
    """Count what stands in some folders; None where it is too much to be watched.

    Args:
        folders: absolute, as the server sees them.
        root: of the server's file system, where it is another than ours (``/proc/PID/root``).
    """
    files = total = 0
    for entry in _walk([root + folder for folder in dict.fromkeys(folders)]):
        files += 1
        if files > _ENTRIES:
            return None
        total += entry
    return Growth(files, total)


def _walk(folders: list[str]) -> Iterator[int]:
    """The sizes of all files below some folders; links are not followed."""
    todo = [(folder, 0) for folder in folders]
    while todo:
        folder, depth = todo.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    todo += [(entry.path, depth + 1)] if depth < _DEPTH else []
                    yield 0
                else:
                    yield entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue


def incomplete(hub: str, model: str | None, root: str = "") -> Growth:
    """How much of unfinished downloads has arrived.

    Args:
        hub: the hub's cache folder, as the server sees it.
        model: ``org/name`` where known: then only its downloads count.
        root: as for ``measure``.
    """
    name = f"models--{model.replace('/', '--')}" if model and not model.startswith(("/", ".")) else "models--*"
    files = total = 0
    for path in Path(root + hub).glob(f"{name}/blobs/*.incomplete"):
        try:
            total += path.stat().st_blocks * _BLOCK_BYTES
            files += 1
        except OSError:
            continue
    return Growth(files, total)
