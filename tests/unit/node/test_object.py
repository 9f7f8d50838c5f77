"""The Node: registered with its taints and mark, and a status that evicts nobody."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from vk_provider.node import names
from vk_provider.node.describe import BackendView
from vk_provider.node.object import (
    NodeSpec,
    NodeView,
    adoption_patch,
    annotations_patch,
    is_ours,
    leftovers,
    node_status,
    render_node,
)

NOW = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)
TAINT = {"key": "virtual-kubelet.io/provider", "value": "vk-provider", "effect": "NoSchedule"}
SPEC = NodeSpec(
    "burst",
    {"cpu": "128", "memory": "1024Gi", "pods": "64"},
    version="0.1.0",
    api_server_version="v1.36.3-eks-1a2b",
    cluster_id="c1",
    labels={"zone": "outside", "type": "mine", "kubernetes.io/arch": "arm64"},
    taints=(TAINT,),
)
VIEW = NodeView("10.0.0.9", (BackendView("secure", "runpod"),))


def conditions(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By type, in order."""
    return {one["type"]: one for one in status["conditions"]}


def test_a_node_carries_its_taints_from_its_first_write() -> None:
    """Never a moment without, or ordinary pods slip onto it."""
    assert render_node(SPEC)["spec"] == {
        "providerID": "vk-provider://c1/burst",
        "taints": [TAINT],
    }


def test_user_labels_change_all_but_what_the_node_is() -> None:
    """Its name and type are facts."""
    labels = render_node(SPEC)["metadata"]["labels"]

    assert labels["zone"] == "outside"
    assert labels["kubernetes.io/arch"] == "arm64"
    assert labels["type"] == "virtual-kubelet"
    assert labels["kubernetes.io/hostname"] == "burst"
    assert labels["node.kubernetes.io/exclude-from-external-load-balancers"] == "true"
    assert labels["node.kubernetes.io/exclude-disruption"] == "true"


def test_only_a_node_with_our_mark_is_ours() -> None:
    """An existing node of that name may be a real machine."""
    ours = render_node(SPEC)
    assert is_ours({"metadata": ours["metadata"]})
    assert is_ours({"spec": ours["spec"]})
    assert not is_ours({"metadata": {"annotations": {"other": "x"}}})
    assert not is_ours({"spec": {"providerID": "aws:///eu/i-1"}})
    assert not is_ours({})


def test_adopting_adds_what_is_missing() -> None:
    """And leaves what others added."""
    current = render_node(SPEC)
    assert adoption_patch(current, SPEC) is None

    current["metadata"]["labels"] |= {"zone": "old", "foreign": "x"}
    assert adoption_patch(current, SPEC) == {"metadata": {"labels": {"zone": "outside"}}}
    assert adoption_patch({}, SPEC) == {
        "metadata": {
            "labels": render_node(SPEC)["metadata"]["labels"],
            "annotations": {"vk-provider.dev/managed-by": "vk-provider"},
        }
    }


def test_conditions_are_in_the_kubelets_order_with_ready_last() -> None:
    """With its reasons."""
    found = conditions(node_status(SPEC, VIEW, NOW))

    assert [(kind, one["status"], one["reason"]) for kind, one in found.items()] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("NetworkUnavailable", "False", "RouteCreated"),
        ("ProviderReady", "True", "BackendsReady"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert found["Ready"]["message"] == "kubelet is posting ready status"


def test_ready_stays_true_without_any_backend() -> None:
    """An outage of an API is not a death of a pod."""
    found = conditions(node_status(SPEC, NodeView(), NOW))

    assert found["ProviderReady"]["status"] == "False"
    assert found["Ready"]["status"] == "True"


def test_heartbeats_move_and_transitions_move_with_the_status() -> None:
    """Nothing else does."""
    first = node_status(SPEC, VIEW, NOW)
    second = conditions(node_status(SPEC, NodeView(), NOW + timedelta(minutes=5), first))

    assert second["Ready"]["lastHeartbeatTime"] == "2024-05-01T10:05:00Z"
    assert second["Ready"]["lastTransitionTime"] == "2024-05-01T10:00:00Z"
    assert second["ProviderReady"]["lastTransitionTime"] == "2024-05-01T10:05:00Z"


@pytest.mark.parametrize(
    ("in_use", "headroom", "pods"),
    [(3, None, "64"), (3, 0, "3"), (3, 1, "4"), (63, 8, "64"), (0, 0, "0")],
)
def test_the_door_lowers_allocatable_to_what_is_in_use_and_its_headroom(
    in_use: int, headroom: int | None, pods: str
) -> None:
    """Exactly, and never above capacity."""
    view = NodeView(in_use={"pods": Fraction(in_use)}, headroom=headroom)
    status = node_status(SPEC, view, NOW)

    assert status["allocatable"] == {"cpu": "128", "memory": "1Ti", "pods": pods}
    assert status["capacity"] == {"cpu": "128", "memory": "1Ti", "pods": "64"}


def test_allocatable_is_never_more_than_the_backends_offer() -> None:
    """Configuration is a cap; a backend's own limit counts below it, and only for what we have."""
    offered = {
        "pods": Fraction(10),
        "memory": Fraction(2**35),
        "cpu": Fraction(500),
        "x": Fraction(1),
    }
    status = node_status(SPEC, NodeView(offered=offered), NOW)

    assert status["allocatable"] == {"cpu": "128", "memory": "32Gi", "pods": "10"}


def test_a_closed_door_and_a_small_backend_both_count() -> None:
    """The lower of the two is what fits."""
    view = NodeView(in_use={"pods": Fraction(3)}, headroom=4, offered={"pods": Fraction(5)})

    assert node_status(SPEC, view, NOW)["allocatable"]["pods"] == "5"


def test_a_node_that_counts_no_pods_has_nothing_to_lower() -> None:
    """Its allocatable is its capacity."""
    status = node_status(NodeSpec("n", {"cpu": "1"}, "0.1.0"), NodeView(headroom=0), NOW)

    assert status["allocatable"] == {"cpu": "1"}


def test_the_addresses_are_those_that_the_api_server_can_reach() -> None:
    """No hostname: it would be preferred and must resolve."""
    status = node_status(NodeSpec("n", {}, "0.1.0", kubelet_port=10251), VIEW, NOW)

    assert status["addresses"] == [{"type": "InternalIP", "address": "10.0.0.9"}]
    assert node_status(SPEC, NodeView(), NOW)["addresses"] == []
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10251}}


@pytest.mark.parametrize(
    ("api_server", "kubelet"),
    [
        ("v1.36.3", "v1.36.3-vk-provider.0.1.0"),
        ("v1.36.3-eks-1a2b", "v1.36.3-vk-provider.0.1.0"),
        ("v1.34.4+k3s1", "v1.34.4-vk-provider.0.1.0"),
    ],
)
def test_the_kubelet_version_is_the_api_servers(api_server: str, kubelet: str) -> None:
    """A semantic version, as upgrade checks compare it."""
    spec = NodeSpec("n", {}, "0.1.0", api_server_version=api_server)
    facts = node_status(spec, NodeView(), NOW)["nodeInfo"]

    assert facts["kubeletVersion"] == kubelet
    assert facts["containerRuntimeVersion"] == "vk-provider://0.1.0"
    assert (facts["operatingSystem"], facts["architecture"]) == ("linux", "amd64")


@pytest.mark.parametrize(
    ("api_server", "declares"),
    [("v1.34.4", False), ("v1.35.9", False), ("v1.36.3", True), ("v2.0.0", True), ("", False)],
)
def test_websockets_are_declared_where_they_are_understood(api_server: str, declares: bool) -> None:
    """An older API server drops the field, and would be sent it for ever."""
    spec = NodeSpec("n", {}, "0.1.0", api_server_version=api_server)
    features = node_status(spec, NodeView(), NOW).get("declaredFeatures")

    assert features == (["ExtendWebSocketsToKubelet"] if declares else None)


def test_annotations_follow_backends_and_door() -> None:
    """Those of former backends go; nothing new is no patch, and none hits another Node."""
    node = {"metadata": {"uid": "u1", "annotations": {"vk-provider.dev/backend-gone": "x"}}}
    view = NodeView(closed_reason="capacity", closed_message="no L40S", backends=VIEW.backends)
    patch = annotations_patch(node, view)

    assert patch is not None
    assert patch["metadata"]["uid"] == "u1"
    notes = patch["metadata"]["annotations"]
    assert notes["vk-provider.dev/backend-gone"] is None
    assert notes["vk-provider.dev/door"] == "closed: capacity: no L40S"
    kept = {name: text for name, text in notes.items() if text is not None}
    assert annotations_patch({"metadata": {"annotations": kept}}, view) is None


def test_a_node_that_left_bursting_loses_what_bursting_gave_it() -> None:
    """Its gate and the state of it, and the preference for home."""
    managed = {"metadata": {"annotations": {names.GATE_MANAGED: "true", names.GATE_STATE: "{}"}}}

    keys, annotations = leftovers(managed, SPEC)

    assert keys == {names.PREFER_HOME_TAINT, names.GATE_TAINT}
    assert set(annotations) == {names.GATE_MANAGED, names.GATE_STATE, names.GATE_HEARTBEAT}
    assert set(annotations.values()) == {None}
    patch = adoption_patch(managed, SPEC)
    assert patch is not None
    assert patch["metadata"]["annotations"][names.GATE_STATE] is None


def test_a_gate_that_was_never_managed_is_somebody_s_own() -> None:
    """And a node that takes part keeps everything, also a preference of its own."""
    soft = {"key": names.PREFER_HOME_TAINT, "effect": "PreferNoSchedule"}
    gated = replace(SPEC, is_gated=True, taints=(TAINT, soft))
    managed = {"metadata": {"annotations": {names.GATE_MANAGED: "true"}}}

    assert render_node(gated)["metadata"]["annotations"][names.GATE_MANAGED] == "true"

    assert render_node(gated)["spec"]["taints"] == [
        TAINT, soft, {"key": names.GATE_TAINT, "value": "hold", "effect": "NoSchedule"},
    ]  # fmt: skip
    assert leftovers({}, SPEC) == (frozenset({names.PREFER_HOME_TAINT}), dict[str, None]())
    assert leftovers(managed, gated) == (frozenset[str](), dict[str, None]())
