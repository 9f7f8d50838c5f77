"""A secret that was read is never printed from then on."""

from __future__ import annotations

import pytest

from vk_provider.log import REDACTED, scrub
from vk_provider.secrets import SecretSource


async def test_what_was_read_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a foreign library or a backend's answer repeats it."""
    monkeypatch.setenv("A_KEY_OF_OURS", "value-that-was-read\n")
    assert scrub("key value-that-was-read") == "key value-that-was-read"
    assert await SecretSource(env="A_KEY_OF_OURS").read() == "value-that-was-read"
    assert scrub("key value-that-was-read") == f"key {REDACTED}"
