"""The downward API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vk_provider.pods.downward import PodFields, format_map
from vk_provider.pods.lookup import Lookup
from vk_provider.testing.builders import NODE_NAME, make_container, make_pod, uid_of

METADATA = {
    "labels": {"app": "web", "tier.example/x": "front"},
    "annotations": {"note": 'say "hi"\nplease'},
}


def fields(pod: Mapping[str, Any] | None = None, host_ip: str | None = "10.1.2.3") -> PodFields:
    """The fields of a labelled pod on our node."""
    pod = make_pod(metadata=METADATA) if pod is None else pod
    allocatable = {"cpu": "8", "memory": "16Gi"}
    return PodFields(pod, NODE_NAME, host_ip, allocatable, Lookup("default", {}))


def field(path: str) -> dict[str, Any]:
    """A source that wants this field."""
    return {"fieldRef": {"fieldPath": path}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "app-1"),
        ("metadata.namespace", "default"),
        ("metadata.uid", uid_of("app-1")),
        ("metadata.labels['app']", "web"),
        ('metadata.labels["tier.example/x"]', "front"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations['note']", 'say "hi"\nplease'),
        ("metadata.labels", 'app="web"\ntier.example/x="front"'),
        ("metadata.annotations", 'note="say \\"hi\\"\\nplease"'),
        ("spec.nodeName", NODE_NAME),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "10.1.2.3"),
        ("status.hostIPs", "10.1.2.3"),
    ],
)
def test_every_field_path_of_a_kubelet_reads(path: str, value: str) -> None:
    """Labels and annotations with either quote."""
    assert fields().read(field(path), "p", {}) == value


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("status.podIP", "status.podIP is not known before the pod runs"),
        ("status.podIPs", "status.podIPs is not known before the pod runs"),
        ("spec.nope", "spec.nope is no field of the downward API"),
        ("metadata.labels['a\"]", "metadata.labels['a\"] is no field of the downward API"),
        ("", "nothing is no field of the downward API"),
    ],
)
def test_what_is_not_known_is_noted_with_its_path(path: str, why: str) -> None:
    """The provider decides whether the place where it runs can fill it in."""
    pod = fields()

    assert pod.read(field(path), "env[0].valueFrom", {}) is None

    (problem,) = pod.lookup.unresolvable
    assert (problem.path, problem.message) == ("env[0].valueFrom.fieldRef.fieldPath", why)


def test_a_node_without_an_address_has_no_host_ip() -> None:
    """Nothing is invented."""
    pod = fields(host_ip=None)

    assert pod.read(field("status.hostIP"), "p", {}) is None
    assert pod.lookup.unresolvable


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1", "1"),
        ("limits.memory", "1Mi", "64"),
        ("requests.memory", None, "0"),
        ("limits.memory", "0", str(64 * 2**20)),
        ("limits.memory", "nonsense", str(64 * 2**20)),
        ("limits.hugepages-2Mi", None, "0"),
    ],
)
def test_resources_are_divided_and_rounded_up(
    resource: str, divisor: str | None, value: str
) -> None:
    """A divisor that is absent or zero is one."""
    limits = {"cpu": "1500m", "memory": "64Mi"}
    container = make_container(resources={"limits": limits, "requests": {"cpu": "250m"}})
    reference = {"resource": resource} | ({} if divisor is None else {"divisor": divisor})

    assert fields().read({"resourceFieldRef": reference}, "p", container) == value


def test_an_unset_limit_is_the_pods_and_then_the_nodes() -> None:
    """Requests have no such default."""
    wants = {"resourceFieldRef": {"resource": "limits.cpu"}}
    of_pod = fields(make_pod(resources={"limits": {"cpu": "3"}}))

    zero = make_container(resources={"limits": {"cpu": "0"}})

    assert fields().read(wants, "p", make_container()) == "8"
    assert fields().read(wants, "p", zero) == "8"
    assert of_pod.read(wants, "p", make_container()) == "3"


def test_a_volume_names_the_container_it_means() -> None:
    """Init containers too; one that isn't there has no resources of its own."""
    main = make_container("a", resources={"requests": {"cpu": "2"}})
    init = make_container("b", resources={"requests": {"cpu": "3"}})
    pod = fields(make_pod(containers=[main], initContainers=[init]))

    def read(name: str) -> str | None:
        reference = {"containerName": name, "resource": "requests.cpu"}
        return pod.read({"resourceFieldRef": reference}, "p", {})

    assert (read("a"), read("b"), read("c")) == ("2", "3", "0")


@pytest.mark.parametrize("resource", ["limits.nvidia.com/gpu", "cpu", ""])
def test_other_resources_are_refused_with_what_is_allowed(resource: str) -> None:
    """As the API server would, for whoever explains a file of their own."""
    pod = fields()

    assert pod.read({"resourceFieldRef": {"resource": resource}}, "p", {}) is None

    (problem,) = pod.lookup.unresolvable
    assert problem.path == "p.resourceFieldRef.resource"
    assert "limits. and requests. of cpu, memory" in problem.message


def test_other_sources_are_refused_by_name() -> None:
    """A ``fileKeyRef`` reads a file that only the instance has."""
    pod = fields()

    assert pod.read({"fileKeyRef": {}}, "env[0].valueFrom", {}) is None
    assert pod.read({}, "items[0]", {}) is None

    first, second = pod.lookup.unresolvable
    assert str(first).startswith("env[0].valueFrom: found fileKeyRef; only")
    assert str(second).startswith("items[0]: found nothing; only")


def test_maps_are_quoted_as_go_quotes() -> None:
    """Programs parse these files."""
    value = 'a"\\\t\x01\x7fé\u200b\U000e0001'

    assert format_map({"k": value}) == r'k="a\"\\\t\x01\x7fé\u200b\U000e0001"'
