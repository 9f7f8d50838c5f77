"""The guide to writing a provider names all of the seam."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

import vk_provider.provider as seam
from vk_provider import faults
from vk_provider.testing.contract_streams import CAPABILITY_CONTRACTS

PAGE = (Path(__file__).parents[2] / "docs" / "writing-a-provider.md").read_text()


@pytest.mark.parametrize("name", [each.name for each in fields(seam.ProviderTraits)])
def test_every_trait_is_named(name: str) -> None:
    """With when to set it."""
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", [name for name in seam.__all__ if name.startswith("Supports")])
def test_every_ability_is_named(name: str) -> None:
    """With its method."""
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "name", sorted(each.__name__ for each in faults.ProviderError.__subclasses__())
)
def test_every_fault_is_named(name: str) -> None:
    """With what the core does about it."""
    assert f"`{name}" in PAGE


def test_contracts_of_streams_are_spoken_of() -> None:
    """A class takes those of what its provider offers."""
    assert CAPABILITY_CONTRACTS
    assert "derive from their contracts" in PAGE
