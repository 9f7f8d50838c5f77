"""A Node's patch is the difference, in the API server's merge rules."""

from typing import Any

from vk_provider.node.status_patch import node_status_patch

OLD, NEW = "2024-05-01T09:00:00Z", "2024-05-01T10:00:00Z"


def condition(kind: str, status: str = "True", at: str = OLD, **more: str) -> dict[str, Any]:
    """A condition reported at that time."""
    return {"type": kind, "status": status, "lastHeartbeatTime": at, **more}


def wanted(**changes: Any) -> dict[str, Any]:
    """A small status."""
    return {
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "4"},
        "conditions": [condition("Ready", at=NEW)],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {"bootID": "", "osImage": "vk-provider 0.1.0"},
    } | changes


def node(**changes: Any) -> dict[str, Any]:
    """The Node with that status, as the API server has it."""
    status = wanted(conditions=[condition("Ready"), condition("Foreign")]) | changes
    return {"metadata": {"uid": "u1"}, "status": status}


def test_nothing_new_is_no_patch_but_a_heartbeat_when_asked() -> None:
    """Foreign conditions are never mentioned."""
    assert node_status_patch(node(), wanted()) is None
    assert node_status_patch(node(), wanted(), heartbeat=True) == {
        "metadata": {"uid": "u1"},
        "status": {"conditions": [condition("Ready", at=NEW)]},
    }


def test_a_resource_that_is_gone_needs_a_null() -> None:
    """And one that changed is sent alone."""
    current = node(capacity={"cpu": "2", "gpu": "1"}, allocatable={"cpu": "4"})
    patch = node_status_patch(current, wanted(capacity={"cpu": "4", "memory": "1Gi"}))

    assert patch is not None
    assert patch["status"] == {"capacity": {"cpu": "4", "memory": "1Gi", "gpu": None}}


def test_addresses_are_replaced() -> None:
    """A merge by type is refused or doubles them."""
    patch = node_status_patch(node(addresses=None), wanted())

    assert patch is not None
    assert patch["status"]["addresses"] == [
        {"$patch": "replace"},
        {"type": "InternalIP", "address": "10.0.0.9"},
    ]


def test_only_changed_conditions_are_sent() -> None:
    """A message is a change."""
    conditions = [condition("Ready", at=NEW), condition("ProviderReady", at=NEW, message="b: ok")]
    patch = node_status_patch(node(), wanted(conditions=conditions))

    assert patch is not None
    assert patch["status"] == {"conditions": conditions[1:]}


def test_a_new_node_gets_everything() -> None:
    """It has no status yet."""
    patch = node_status_patch({}, wanted())

    assert patch is not None
    assert patch["metadata"] == {"uid": None}
    assert list(patch["status"]) == [
        "capacity",
        "allocatable",
        "daemonEndpoints",
        "nodeInfo",
        "addresses",
        "conditions",
    ]
    assert patch["status"]["nodeInfo"] == {"osImage": "vk-provider 0.1.0"}


def test_declared_features_go_along_with_something_else_only() -> None:
    """A cluster that drops them would otherwise be asked with every look at the node."""
    features = ["ExtendWebSocketsToKubelet"]

    assert node_status_patch(node(), wanted(declaredFeatures=features)) is None
    patch = node_status_patch(node(), wanted(declaredFeatures=features), heartbeat=True)
    assert patch is not None
    assert patch["status"]["declaredFeatures"] == features
    kept = node_status_patch(
        node(declaredFeatures=features), wanted(declaredFeatures=features), heartbeat=True
    )
    assert kept is not None
    assert "declaredFeatures" not in kept["status"]
