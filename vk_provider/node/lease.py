"""The node's Lease: when it is due, and its next body.

Fed by ``loops`` with the Lease as read and the time; what comes out is PUT. The node lifecycle
controller takes a node for dead 50 s after its last renewal, so a renewal is due every quarter of
the lease's 40 s, counted from the start of the last try that worked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Json = Mapping[str, Any]

NAMESPACE = "kube-node-lease"
DURATION_SECONDS = 40
INTERVAL_SECONDS = DURATION_SECONDS / 4
_JITTER = 0.04


def is_due(last: datetime | None, now: datetime, jitter: float = 0.0) -> bool:
    """Whether to renew now. ``jitter`` in [0, 1) brings it forward by up to 4 %, never back; a
    clock that was set back makes it due, as nobody knows how long ago the last renewal was."""
    if last is None or now < last:
        return True
    return now - last >= timedelta(seconds=INTERVAL_SECONDS * (1 - _JITTER * jitter))


def micro_time(moment: datetime) -> str:
    """A MicroTime: exactly six digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def render_lease(
    node_name: str, now: datetime, node_uid: str | None = None, current: Json | None = None
) -> dict[str, Any]:
    """The Lease to create (no ``current``) or to PUT over the current one.

    The Lease belongs to the Node, so that it goes with it; ``node_uid`` None while the Node is
    not known. Fields and labels of others survive.
    """
    metadata = dict((current or {}).get("metadata") or {})
    metadata |= {"name": node_name, "namespace": NAMESPACE}
    if node_uid:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid}
        ]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            **((current or {}).get("spec") or {}),
            "holderIdentity": node_name,
            "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": micro_time(now),
        },
    }
