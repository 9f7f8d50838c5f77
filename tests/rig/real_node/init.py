"""The first process of an enclosure: starts the command, reaps orphans, passes signals on.

Fed by `enclosure` with a command line. When it ends the kernel ends everybody else in there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType


def main(command: list[str]) -> int:
    """Run the command until it ends; return its exit code (128 + n for a signal)."""
    child = subprocess.Popen(command)

    def forward(signum: int, _: FrameType | None) -> None:
        if signum != signal.SIGINT or not sys.stdin.isatty():
            child.send_signal(signum)  # Ctrl-C of a terminal reaches the command by itself

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, forward)
    return _reap_until(child.pid)


def _reap_until(pid: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
