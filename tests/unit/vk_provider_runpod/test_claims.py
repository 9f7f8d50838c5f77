"""A claim stands for the network volume that its PersistentVolume names."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_runpod.claims import volume_of, why_not

NOTED = {"metadata": {"annotations": {"runpod.vk-provider.dev/network-volume": " vol-2 "}}}


def csi(driver: str, handle: str = "vol-1") -> dict[str, Any]:
    """The source of a PersistentVolume."""
    return {"spec": {"csi": {"driver": driver, "volumeHandle": handle}}}


@pytest.mark.parametrize(
    ("claim", "volume", "found"),
    [
        ({}, csi("runpod.vk-provider.dev"), "vol-1"),
        (NOTED, csi("runpod.vk-provider.dev"), "vol-1"),
        ({}, {**csi("ebs.csi.aws.com"), **NOTED}, "vol-2"),
        (NOTED, csi("ebs.csi.aws.com"), "vol-2"),
        (NOTED, csi("runpod.vk-provider.dev", ""), "vol-2"),
        ({}, csi("ebs.csi.aws.com"), None),
        ({}, {"spec": {"nfs": {"server": "nas"}}}, None),
        ({}, {}, None),
    ],
)
def test_the_volume_says_it_before_its_note_and_the_claims(
    claim: dict[str, Any], volume: dict[str, Any], found: str | None
) -> None:
    """Another driver's handle is nothing of ours."""
    assert volume_of(claim, volume) == found


def test_why_a_claim_stands_for_none_is_said() -> None:
    """With what would help."""
    assert "has no claim" in why_not("data", {}, {})
    assert "bound to no PersistentVolume" in why_not("data", {"metadata": {}}, {})
    assert "csi.driver runpod.vk-provider.dev" in why_not("data", NOTED, csi("other"))
