"""The smallest objects that the suites put into the model API server."""

from __future__ import annotations

from typing import Any


def pod(
    name: str, *, uid: str | None = None, node: str = "burst", **metadata: Any
) -> dict[str, Any]:
    """A pod bound to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "uid": uid or f"uid-{name}", **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "busybox"}]},
        "status": {"phase": "Pending"},
    }


def keyed(kind: str, name: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    """A ConfigMap, Secret or Service."""
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}
