"""GPUs through NVML, where ``nvidia-ml-py`` and a driver are there; elsewhere nothing, which is no error.

``python -m phasetrack.edges.gpu [PID…]`` prints what it sees, and what looking costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from phasetrack.core.model import GpuSample

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_NO_LIBRARY = "GPUs: nvidia-ml-py is not installed (pip install 'phasetrack[gpu]')"


class Gpus:
    """The GPUs of one machine. Opening NVML takes a moment; do it once."""

    def __init__(self) -> None:
        """Open NVML, if it is there."""
        self.missing = ""  # why no GPU is seen, in words
        self._nvml: Any = None
        self._handles: list[Any] = []
        self._names: list[str] = []
        try:
            import pynvml
        except ImportError:
            self.missing = _NO_LIBRARY
            return
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(k) for k in range(pynvml.nvmlDeviceGetCount())]
            self._names = [_text(pynvml.nvmlDeviceGetName(handle)) for handle in self._handles]
        except pynvml.NVMLError as fault:
            self.missing = f"GPUs: {fault}".replace("\n", " ")
            return
        self._nvml = pynvml

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._handles)

    def used_by(self, pids: Collection[int], environment: Mapping[str, str]) -> list[int]:
        """Indices of the GPUs that a server uses: told by its processes, else by its environment, else all.

        Inside a container the driver reports the host's pids, which match nothing there.
        """
        busy = [k for k, handle in enumerate(self._handles) if pids and set(self._pids(handle)) & set(pids)]
        return busy or self._named(environment.get("CUDA_VISIBLE_DEVICES", "")) or list(range(self.count))

    def _pids(self, handle: Any) -> list[int]:
        found = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return [process.pid for process in found or ()]

    def _named(self, visible: str) -> list[int]:
        """Read ``CUDA_VISIBLE_DEVICES``: numbers, or the first letters of UUIDs."""
        found = []
        for part in filter(None, (part.strip() for part in visible.split(","))):
            if part.isdigit() and int(part) < self.count:
                found.append(int(part))
            elif part.startswith(("GPU-", "MIG-")):
                found += [k for k, handle in enumerate(self._handles) if self._uuid(handle).startswith(part)]
        return found

    def _uuid(self, handle: Any) -> str:
        return _text(self._ask(self._nvml.nvmlDeviceGetUUID, handle) or "")

    def sample(self, indices: Collection[int]) -> tuple[GpuSample, ...]:
        """Look at some GPUs once; what one of them does not tell is None."""
        return tuple(self._sample(k) for k in indices if k < self.count)

    def _sample(self, k: int) -> GpuSample:
        nvml, handle = self._nvml, self._handles[k]
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        util = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        power = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        return GpuSample(
            index=k,
            name=self._names[k],
            util_percent=None if util is None else float(util.gpu),
            memory_bytes=None if memory is None else int(memory.used),
            power_w=None if power is None else power / 1000,
        )

    def _ask(self, question: Callable[[Any], Any], handle: Any) -> Any:
        try:
            return question(handle)
        except self._nvml.NVMLError:
            return None  # not supported on this GPU, or lost

    def close(self) -> None:
        """Let NVML go."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None


def _text(value: str | bytes) -> str:
    """Older releases of nvidia-ml-py answer bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _main() -> None:
    import sys
    import time

    gpus = Gpus()
    out = sys.stdout
    if gpus.missing:
        out.write(f"{gpus.missing}\n")
        return
    pids = [int(word) for word in sys.argv[1:]]
    indices = gpus.used_by(pids, {})
    for gpu in gpus.sample(indices):
        out.write(f"{gpu}\n")
    began, cpu = time.perf_counter(), time.thread_time()
    for _ in range(20):
        gpus.sample(indices)
    wall, cpu = (time.perf_counter() - began) / 20, (time.thread_time() - cpu) / 20
    out.write(f"one look at {len(indices)} GPUs: {wall * 1e3:.2f} ms, of which CPU {cpu * 1e3:.2f} ms\n")
    gpus.close()


if __name__ == "__main__":
    _main()
