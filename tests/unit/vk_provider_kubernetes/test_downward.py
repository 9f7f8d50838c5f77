"""A pod sees itself, not its instance."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.downward import home_value, is_remote, split
from vk_provider_kubernetes.rules import HOST_ACCESS
from vk_provider_kubernetes.walk import Findings

from vk_provider.testing.builders import make_resolved_pod


@pytest.mark.parametrize(
    ("field_path", "value"),
    [
        ("metadata.name", "app-1"),
        ("metadata.namespace", "default"),
        ("metadata.labels['app']", "web"),
        ("spec.nodeName", "node-1"),
        ("status.podIP", None),
        ("status.podIPs", None),
        ("spec.no.such", None),
    ],
)
def test_home_answers_what_it_knows(field_path: str, value: str | None) -> None:
    """The address inside the container is the other cluster's to say."""
    pod = make_resolved_pod(metadata={"labels": {"app": "web"}})

    assert home_value(pod, field_path) == value


def test_only_addresses_are_left_to_the_other_cluster() -> None:
    """Names and labels are home's."""
    assert is_remote("status.podIP")
    assert not is_remote("metadata.name")


def test_with_host_access_the_host_is_the_other_clusters_node() -> None:
    """An agent of that node is found at the address of that node."""
    granted = frozenset({HOST_ACCESS})

    assert is_remote("status.hostIP", granted)
    assert not is_remote("status.hostIP")
    assert home_value(make_resolved_pod(), "status.hostIPs", granted) is None


def test_known_and_unknown_files_come_from_two_sources() -> None:
    """In one projected volume."""
    pod = make_resolved_pod()
    copies = Copies(pod.stamp, {})
    name = {"path": "name", "mode": 256, "fieldRef": {"fieldPath": "metadata.name"}}
    limit = {"path": "cpu", "resourceFieldRef": {"containerName": "a", "resource": "limits.cpu"}}
    odd = {"path": "odd", "fieldRef": {"fieldPath": "metadata.odd"}}

    found = split(pod, {"items": [name, limit, odd]}, "spec", copies, Findings())

    known = {"path": "name", "mode": 256, "key": "value-0"}
    assert found == [
        {"configMap": {"name": copies.values_name, "items": [known]}},
        {"downwardAPI": {"items": [limit, odd]}},
    ]
    assert copies.all()[0].content == {"data": {"value-0": "app-1"}}


def test_nothing_known_needs_no_copy() -> None:
    """The source goes along as it is."""
    pod = make_resolved_pod()
    copies = Copies(pod.stamp, {})
    limit = {"path": "cpu", "resourceFieldRef": {"containerName": "a", "resource": "limits.cpu"}}

    assert split(pod, {"items": [limit]}, "spec", copies, Findings()) == [
        {"downwardAPI": {"items": [limit]}}
    ]
    assert copies.all() == ()
