"""Providers read claims of the home cluster with what they are bound to."""

from __future__ import annotations

import pytest

from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.support.objects import keyed
from vk_provider.app.read_claim import ClaimReader
from vk_provider.faults import ForbiddenError

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"


async def test_a_claim_is_read_with_the_volume_it_is_bound_to() -> None:
    """What is not there is empty; one that is not bound is bound to nothing."""
    api = MemoryApi()
    read = ClaimReader(MemoryClient(api)).read
    csi = {"driver": "runpod.vk-provider.dev", "volumeHandle": "vol-1"}
    api.store.put(CLAIMS, keyed("PersistentVolumeClaim", "data", spec={"volumeName": "models"}))
    api.store.put(CLAIMS, keyed("PersistentVolumeClaim", "waits", spec={}))
    volume = keyed("PersistentVolume", "models", spec={"csi": csi})
    del volume["metadata"]["namespace"]

    assert await read("default", "absent") == ({}, {})
    assert (await read("default", "waits"))[1] == {}
    assert (await read("default", "data"))[1] == {}
    api.store.put(VOLUMES, volume)
    claim, bound = await read("default", "data")

    assert claim["metadata"]["name"] == "data"
    assert bound["spec"]["csi"] == csi


async def test_a_right_that_is_missing_is_a_fault() -> None:
    """Not an absence."""
    api = MemoryApi()
    api.refuse("GET", "/persistentvolumeclaims/data", 403)

    with pytest.raises(ForbiddenError):
        await ClaimReader(MemoryClient(api)).read("default", "data")
