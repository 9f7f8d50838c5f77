"""What the other cluster could carry for us."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.capacity import room
from vk_provider_kubernetes.config import KubernetesConfig

from vk_provider.testing.builders import CLUSTER_ID, make_stamp

CONFIG = KubernetesConfig("vk")


def node(name: str, *, ready: str = "True", **fields: Any) -> dict[str, Any]:
    """A node with 8 cores and 2 GPUs."""
    allocatable = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "2", "pods": "110"}
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": name, "labels": fields.pop("labels", {})},
        "spec": fields,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def pod(on: str, phase: str = "Running", **annotations: str) -> dict[str, Any]:
    """A pod that asks for 2 cores and a GPU."""
    requests = {"cpu": "2", "nvidia.com/gpu": "1"}
    return {
        "metadata": {"annotations": annotations},
        "spec": {"nodeName": on, "containers": [{"resources": {"requests": requests}}]},
        "status": {"phase": phase},
    }


def test_what_others_use_is_not_ours() -> None:
    """Allocatable of all nodes minus their requests."""
    found = room([node("a"), node("b")], [pod("a"), pod("b")], CLUSTER_ID, CONFIG)

    assert found == {"cpu": "12", "memory": "32Gi", "nvidia.com/gpu": "2", "pods": "218"}


def test_our_own_instances_are_room() -> None:
    """The virtual node counts them itself; another home's are others."""
    ours, theirs = (make_stamp(cluster_id=each) for each in (CLUSTER_ID, "cluster-2"))
    pods = [pod("a", **marks.full(ours)), pod("a", **marks.full(theirs))]

    assert room([node("a")], pods, CLUSTER_ID, CONFIG)["cpu"] == "6"


def test_pods_that_are_over_or_elsewhere_use_nothing() -> None:
    """Nor do those without a node."""
    pods = [pod("a", "Succeeded"), pod("a", "Failed"), pod("gone"), pod("")]

    assert room([node("a")], pods, CLUSTER_ID, CONFIG)["cpu"] == "8"


@pytest.mark.parametrize(
    "odd",
    [
        node("b", ready="False"),
        node("b", unschedulable=True),
        node("b", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        node("b", labels={"pool": "cpu"}),
    ],
)
def test_nodes_that_would_not_take_us_do_not_count(odd: dict[str, Any]) -> None:
    """By condition, cordon, taint or selector."""
    config = replace(CONFIG, node_selector={"pool": "gpu"})

    assert room([node("a", labels={"pool": "gpu"}), odd], [], CLUSTER_ID, config)["cpu"] == "8"


@pytest.mark.parametrize("toleration", [{"key": "gpu"}, {"operator": "Exists"}])
def test_taints_that_are_tolerated_keep_nobody_out(toleration: dict[str, str]) -> None:
    """By key, or all of them."""
    tainted = node("a", taints=[{"key": "gpu", "effect": "NoExecute"}])
    config = replace(CONFIG, tolerations=(toleration,))

    assert room([tainted], [], CLUSTER_ID, config)["cpu"] == "8"


def test_a_soft_taint_keeps_nobody_out() -> None:
    """It only prefers."""
    tainted = node("a", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}])

    assert room([tainted], [], CLUSTER_ID, CONFIG)["cpu"] == "8"


def test_a_reserve_is_kept_and_nothing_goes_below_zero() -> None:
    """Overcommitted clusters have no room."""
    config = replace(CONFIG, reserve={"cpu": "7", "memory": "99Ti"})

    found = room([node("a")], [pod("a")], CLUSTER_ID, config)

    assert (found["cpu"], found["memory"]) == ("0", "0")


def test_no_node_is_no_room() -> None:
    """Not a fault."""
    assert room([], [], CLUSTER_ID, CONFIG) == {}
