"""Every test here runs in virtual time: a month passes in seconds."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing waits for anything outside, so that the clock may jump at once."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.looptime(noop_cycles=4))
