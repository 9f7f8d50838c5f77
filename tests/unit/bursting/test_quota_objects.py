"""Kueue's objects become what the quota bridge and the preflight look at."""

from typing import Any

import pytest

from vk_provider.bursting.quota_objects import FlavorView, QueueView, flavor_view, queue_view
from vk_provider.taints import Toleration


def queue(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    """A ClusterQueue with 16 GPUs of one flavor."""
    resources = [
        {"name": "cpu", "nominalQuota": "192"},
        {"name": "nvidia.com/gpu", "nominalQuota": 16, "lendingLimit": "8"},
    ]
    groups = [{"coveredResources": [], "flavors": [{"name": "home", "resources": resources}]}]
    return {
        "metadata": {"name": "train", "uid": "u"},
        "spec": {"resourceGroups": groups, **(spec or {})},
        "status": status,
    }


def test_a_flavor_tells_its_nodes_and_what_its_pods_tolerate() -> None:
    """And whether it asks for a topology."""
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c"}]
    spec = {"nodeLabels": {"pool": "home"}, "topologyName": "host", "tolerations": tolerations}
    view = flavor_view({"metadata": {"name": "home"}, "spec": spec})

    expected = (Toleration("a", "Exists"), Toleration("b", "Equal", "c"))
    assert view == FlavorView("home", {"pool": "home"}, expected, "host")


def test_a_flavor_without_a_spec_stands_for_every_node() -> None:
    """Which others then refuse."""
    assert flavor_view({"metadata": {"name": "any"}}) == FlavorView("any")


def test_a_quota_knows_where_it_stands_and_what_is_reserved() -> None:
    """The patch goes by index, and its test by the value as it is stored."""
    reservation = [{"name": "home", "resources": [{"name": "nvidia.com/gpu", "total": "12"}]}]
    cpu, gpu = queue_view(queue(flavorsReservation=reservation)).lines

    assert (cpu.nominal, cpu.reserved, cpu.lending_limit) == (192, 0, None)
    assert (gpu.group, gpu.position, gpu.index, gpu.raw) == (0, 0, 1, 16)
    assert (gpu.nominal, gpu.lending_limit, gpu.reserved) == (16, 8, 12)


def test_an_empty_queue_is_a_view_too() -> None:
    """Nothing in it is a fault of ours."""
    assert queue_view({"metadata": {"name": "q"}}) == QueueView("q")


def test_an_inactive_queue_says_why() -> None:
    """In Kueue's words."""
    condition = {"type": "Active", "status": "False", "message": "AdmissionCheck is not active"}
    view = queue_view(queue(conditions=[condition]))

    assert (view.is_active, view.inactive_why) == (False, "AdmissionCheck is not active")


@pytest.mark.parametrize(
    ("spec", "status", "who"),
    [
        ({"quotaManagement": "Automated"}, {}, "Kueue (spec.quotaManagement: Automated)"),
        ({"orchestratorRef": {"name": "nodes"}}, {}, "the orchestrator nodes"),
        ({}, {"orchestratorRef": "nodes"}, "the orchestrator nodes"),
        ({}, {"effectiveQuotas": [{"orchestratorRef": {"name": "n"}}]}, "the orchestrator n"),
        ({}, {"effectiveQuotas": [{"orchestratorRef": None}]}, None),
        ({}, {"effectiveQuotas": {}}, None),
    ],
)
def test_whoever_else_writes_the_quota_is_found(
    spec: dict[str, Any], status: dict[str, Any], who: str | None
) -> None:
    """Wherever Kueue's drafts have put the reference."""
    assert queue_view(queue(spec, **status)).orchestrator == who


def test_checks_and_stop_policy_are_read_in_both_forms() -> None:
    """A list of names, and a strategy."""
    strategy = {"admissionChecks": [{"name": "b", "onFlavors": []}]}
    spec = {
        "admissionChecks": ["a"],
        "admissionChecksStrategy": strategy,
        "stopPolicy": "Hold",
    }
    view = queue_view(queue(spec))

    assert (view.checks, view.stop_policy) == (("a", "b"), "Hold")
