"""A pod's charges."""

from __future__ import annotations

from vk_provider_runpod.simulator.ledger import Charge

from vk_provider.testing.simulator.ledger import Owner


def test_a_row_tells_the_owner_beside_the_rest() -> None:
    """In one object, and what is charged for."""
    owner = Owner("uid-1", "cluster-1", "node-1", "default/app-1")

    assert Charge("a", 0.1, 5, owner, kind="storage").row() == {
        "instance": "a",
        "kind": "storage",
        "usd_per_hour": 0.1,
        "start": 5,
        "end": None,
        "pod_uid": "uid-1",
        "cluster_id": "cluster-1",
        "node_name": "node-1",
        "pod": "default/app-1",
    }
