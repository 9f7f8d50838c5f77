"""Make the kernel kill a child when its parent goes away, however the parent went.

Standard library only: the leash (`leash.py`) is started without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(signum: int = signal.SIGKILL) -> Callable[[], None]:
    """Return a `preexec_fn` that ties the child's life to the thread that starts it.

    Linux only; elsewhere it does nothing and the leash remains the only guard.
    """
    parent = os.getpid()
    if not sys.platform.startswith("linux"):
        return _nothing
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up before the fork, not after

    def preexec() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl: no signal would ever come
            os._exit(1)

    return preexec


def _nothing() -> None:
    """Stand in where the kernel has no such service."""
