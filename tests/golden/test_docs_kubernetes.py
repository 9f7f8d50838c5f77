"""The page about other clusters names every key of its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from vk_provider_kubernetes.config import parse_config

from vk_provider.faults import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"


def test_every_key_is_documented() -> None:
    """The complaint about an unknown one lists those that there are."""
    with pytest.raises(ConfigError) as raised:
        parse_config({"%": 1}, "config", "burst")
    (complaint,) = (str(each) for each in raised.value.problems if "unknown key" in str(each))
    keys = complaint.partition("valid: ")[2].split(", ")

    assert len(keys) > 10
    assert [key for key in keys if f"`{key}`" not in PAGE.read_text()] == []
