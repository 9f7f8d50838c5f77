"""Ctrl-C ends a program of the test bed with a word and not with a traceback.

Wraps the ``main`` of every ``python -m tests...`` command. The standard library alone.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable


def until_interrupted(main: Callable[[], int]) -> int:
    """What ``main`` returns, or what a shell says of a program that Ctrl-C ended (130)."""
    try:
        return main()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 128 + signal.SIGINT
