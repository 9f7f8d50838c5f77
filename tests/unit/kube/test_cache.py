"""Which of two versions is newer."""

from __future__ import annotations

import pytest

from vk_provider.kube.cache import is_newer
from vk_provider.pods.types import Json


def version(number: str) -> Json:
    """An object of a version."""
    return {"metadata": {"resourceVersion": number}}


@pytest.mark.parametrize(
    ("new", "known", "expected"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("b", "a", True)],
)
def test_versions_are_compared_as_numbers(new: str, known: str, expected: bool) -> None:
    """10 is after 9; what is no number is taken as it comes."""
    assert is_newer(version(new), version(known)) is expected


def test_anything_is_newer_than_nothing() -> None:
    """The first version of an object is always news."""
    assert is_newer({"metadata": {}}, None)
