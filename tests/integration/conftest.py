"""What tests with real processes share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def deaf() -> Iterator[None]:
    """This process ignores Ctrl-C, as one that a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)
