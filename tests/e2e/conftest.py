"""What the tests with real processes share: a wheel built once, and that none of those processes is left."""

from __future__ import annotations

import fcntl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.e2e.newcomer import build_wheel, fresh_environment

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def nothing_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every process that a module started is gone when it has ended; what is left is told, and killed."""
    yield
    ours = f"{tmp_path_factory.getbasetemp()}/".encode()
    psutil.wait_procs(_living(ours), timeout=10)
    left = _living(ours)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left


def _living(ours: bytes) -> list[psutil.Process]:
    """Processes with a path of ours in their environment, which they inherit whoever starts them."""
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        with suppress(OSError):
            if ours in Path(f"/proc/{process.pid}/environ").read_bytes():
                found.append(process)
    return found


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all workers of a run have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def wheel(shared: Path) -> Path:
    """The wheel, built by the first who asks."""
    with (shared / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = [*shared.glob("wheel/*.whl")]
        return built[0] if built else build_wheel(shared / "wheel")


@pytest.fixture(scope="session")
def fresh_python(shared: Path, wheel: Path) -> Path:
    """The interpreter of an environment with the wheel and its declared needs alone, made by the first who asks."""
    folder, done = shared / "venv", shared / "venv.done"
    with (shared / "venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            fresh_environment(folder, wheel)
            done.touch()
    return folder / "bin" / "python"
