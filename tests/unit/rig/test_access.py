"""What the bed makes of an API server's answer."""

import pytest

from tests.rig.access import decoded


@pytest.mark.parametrize("text", ["", "{", "[info] ready", '{"level": "info"}'])
def test_a_log_is_text(text: str) -> None:
    """Also before its first line, and where its lines look like JSON."""
    assert decoded("text/plain", text) == text


def test_an_object_is_decoded() -> None:
    """As its server declared it."""
    assert decoded("application/json", '{"kind": "Pod"}') == {"kind": "Pod"}
