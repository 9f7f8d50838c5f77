"""What the tests of Modal's pure parts share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_modal.config import ModalConfig, parse_config

BLOCK = {"tokenId": {"env": "ID"}, "tokenSecret": {"env": "SECRET"}}


@pytest.fixture
def config() -> ModalConfig:
    """The configuration of whoever gave nothing but tokens."""
    return parse_config(BLOCK, "config")


@pytest.fixture
def configured(config: ModalConfig) -> Callable[..., ModalConfig]:
    """The same with some fields changed."""

    def change(**fields: Any) -> ModalConfig:
        return replace(config, **fields)

    return change
