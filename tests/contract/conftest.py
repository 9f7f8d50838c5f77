"""Failures of the shipped contract suite show their values, as those of our own tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "vk_provider.testing.contract",
    "vk_provider.testing.contract_exec",
    "vk_provider.testing.contract_streams",
)
