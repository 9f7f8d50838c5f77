"""Where built programs live between runs, and the lock that keeps two builders apart."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.progress import Progress


def cache_folder() -> Path:
    """`$VK_PROVIDER_CACHE`, else the XDG cache folder, else `~/.cache/vk-provider`."""
    if own := os.environ.get("VK_PROVIDER_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vk-provider"


@contextmanager
def build_lock(name: str = "build", place: str = "") -> Iterator[None]:
    """Hold the one build lock of this cache, across processes.

    One lock for all programs: two links of Kubernetes at once exhaust a small machine,
    and Go's own cache makes the second builder's work cheap anyway. What is only downloaded
    has a lock of its own name and does not wait for builds. `place` goes before what is told.
    """
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(f"{place}waiting for another process that is building")
    with (folder / f"{name}.lock").open("w") as file:
        while not _try_lock(file.fileno()):
            progress.tick()
            time.sleep(0.1)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
