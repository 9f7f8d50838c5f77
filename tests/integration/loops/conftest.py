"""Every test here runs in virtual time."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An hour passes in milliseconds."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.looptime)
