"""Pods that would never come home, each with its reason and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.bursting.descheduler_pods import Surroundings, reasons, stuck

EVICTOR: dict[str, Any] = {
    "labelSelector": {"matchLabels": {"vk-provider.dev/burst": "true"}},
    "minReplicas": 2,
    "minPodAge": "10m",
    "noEvictionPolicy": "Mandatory",
    "podProtections": {
        "defaultDisabled": ["PodsWithLocalStorage"],
        "extraEnabled": ["PodsWithPVC"],
    },
}
OWNER = {"kind": "ReplicaSet", "name": "chat-1", "uid": "owner"}


def pod(name: str = "one", **changes: Any) -> dict[str, Any]:
    """A pod that would come home, but for the changes of metadata, spec and status."""
    metadata = {
        "namespace": "serving",
        "name": name,
        "labels": {"vk-provider.dev/burst": "true", "app": "chat"},
        "ownerReferences": [OWNER],
    }
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    spec: dict[str, Any] = {"priority": 1000, "volumes": [{"emptyDir": {}}]}
    return {
        "metadata": metadata | changes.get("metadata", {}),
        "spec": spec | changes.get("spec", {}),
        "status": status | changes.get("status", {}),
    }


def around(**more: Any) -> Surroundings:
    """What is usual."""
    usual: dict[str, Any] = {
        "threshold": 100_000,
        "home": [{"pool": "home"}],
        "owned": {"owner": 4},
    }
    return Surroundings(more.pop("evictor", EVICTOR), **(usual | more))


def budget(name: str = "chat", namespace: str = "serving", **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget of the pods."""
    selector = {"matchLabels": {"app": "chat"}}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, **spec},
    }


def test_a_usual_pod_would_come() -> None:
    """Its emptyDir is no hindrance with the shipped policy."""
    assert not list(reasons(pod(), around(budgets=[budget(maxUnavailable=1)])))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"metadata": {"ownerReferences": []}}, "no owner"),
        ({"metadata": {"ownerReferences": [OWNER | {"kind": "DaemonSet"}]}}, "DaemonSet"),
        ({"metadata": {"ownerReferences": [OWNER | {"uid": "lonely"}]}}, "minReplicas"),
        ({"metadata": {"labels": {}}}, "labelSelector"),
        ({"spec": {"priority": 100_000}}, "threshold"),
        ({"spec": {"volumes": [{"persistentVolumeClaim": {}}]}}, "PersistentVolumeClaim"),
        ({"status": {"startTime": None}}, "startTime"),
        ({"spec": {"tolerations": [{"operator": "Exists"}]}}, "tolerates"),
        ({"spec": {"nodeSelector": {"type": "virtual-kubelet"}}}, "nodeSelector"),
        (
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
            "static pod",
        ),
        (
            {
                "metadata": {
                    "annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}
                }
            },
            "prefer-no-eviction",
        ),
    ],
)
def test_reasons_of_the_pod(changes: dict[str, Any], word: str) -> None:
    """One each."""
    ((why, remedy),) = reasons(pod(**changes), around())

    assert word in why
    assert remedy


def test_local_storage_protects_by_default() -> None:
    """Unless the old switch or the new list says otherwise."""
    evictor = {**EVICTOR, "podProtections": {}}

    assert list(reasons(pod(), around(evictor=evictor)))
    assert not list(reasons(pod(), around(evictor={**evictor, "evictLocalStoragePods": True})))


@pytest.mark.parametrize(
    "spec", [{"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": "100%"}]
)
def test_budgets_of_nothing(spec: dict[str, Any]) -> None:
    """Such a budget means: never comes home."""
    ((why, _),) = reasons(pod(), around(budgets=[budget(**spec)]))

    assert "PodDisruptionBudget chat" in why


def test_budgets_of_others_do_not_count() -> None:
    """Another namespace, other labels."""
    other = budget(maxUnavailable=0)
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    far = budget(namespace="far", maxUnavailable=0)

    assert not list(reasons(pod(), around(budgets=[other, far])))


def test_two_budgets_stop_the_api_server() -> None:
    """It evicts nobody whom two of them cover."""
    both = [budget("a", maxUnavailable=1), budget("b", maxUnavailable=1)]

    ((why, _),) = reasons(pod(), around(budgets=both))

    assert "several budgets" in why


def test_the_annotation_that_overrules_the_evictor() -> None:
    """But neither the gate nor a budget."""
    annotations = {"descheduler.alpha.kubernetes.io/evict": "true"}
    made = pod(metadata={"annotations": annotations, "labels": {}, "ownerReferences": []})

    assert not list(reasons(made, around()))


def test_without_home_nodes_no_selector_is_judged() -> None:
    """Nothing is known then."""
    made = pod(spec={"nodeSelector": {"x": "y"}})

    assert not list(reasons(made, around(home=[])))


def test_pods_are_told_by_owner_and_reason() -> None:
    """One line for all replicas; ended and ending pods are left out."""
    pods = [pod(f"p{number}", metadata={"name": f"p{number}", "labels": {}}) for number in range(5)]
    over = pod(metadata={"labels": {}}, status={"phase": "Failed"})
    ending = pod(metadata={"labels": {}, "deletionTimestamp": "x"})
    bare = pod("bare", metadata={"name": "bare", "ownerReferences": []})

    found = stuck([*pods, over, ending, bare], around())

    lines = {one.subject: one.what for one in found}
    assert len(found) == 2
    assert "p0, p1, p2 and 2 more" in lines["serving/ReplicaSet/chat-1"]
    assert "(bare)" in lines["serving/bare"]
