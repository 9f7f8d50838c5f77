"""What an instance is called."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.references import Reference

from vk_provider.faults import InstanceNotFoundError
from vk_provider.pods.types import InstanceRef


def test_a_reference_is_read_as_it_was_written() -> None:
    """Namespace, name and UID."""
    reference = Reference("vk", "app", "u1")

    assert Reference.read(InstanceRef(str(reference))) == reference
    pod = {"metadata": {"namespace": "vk", "name": "app", "uid": "u1"}}
    assert Reference.of(pod) == reference


@pytest.mark.parametrize("text", ["never-was", "a/b", "a//c", "a/b/c/d"])
def test_what_never_was_an_instance_is_not_found(text: str) -> None:
    """With a fault of its own."""
    with pytest.raises(InstanceNotFoundError):
        Reference.read(InstanceRef(text))
