"""What a pod may not ask of RunPod, and what it may ask for in vain."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_runpod.refusals import findings, ports

from vk_provider.faults import FieldProblem
from vk_provider.pods.types import FieldNote, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

C = "spec.containers[0]"


def pod_with(container: dict[str, Any] | None = None, **spec: Any) -> ResolvedPod:
    """A pod with fields laid over its container and its spec."""
    return make_resolved_pod(containers=[make_container(**(container or {}))], **spec)


def refused(pod: ResolvedPod) -> list[str]:
    """The paths that are refused."""
    return [each.path for each in findings(pod) if isinstance(each, FieldProblem)]


def noted(pod: ResolvedPod) -> list[str]:
    """The paths that are noted."""
    return [each.path for each in findings(pod) if isinstance(each, FieldNote)]


def test_a_plain_pod_is_neither_refused_nor_noted() -> None:
    """Nothing is made up."""
    assert findings(pod_with({"imagePullPolicy": "IfNotPresent"})) == ()


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"workingDir": "/app"}, f"{C}.workingDir"),
        (
            {"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}},
            f"{C}.resources.limits[nvidia.com/mig-1g.5gb]",
        ),
        (
            {"resources": {"requests": {"hugepages-2Mi": "1"}}},
            f"{C}.resources.requests[hugepages-2Mi]",
        ),
    ],
)
def test_a_container_field_is_refused_by_its_path(container: dict[str, Any], path: str) -> None:
    """It would make the pod behave otherwise than at home."""
    assert refused(pod_with(container)) == [path]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"tty": True}, f"{C}.tty"),
        ({"imagePullPolicy": "Always"}, f"{C}.imagePullPolicy"),
        ({"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}}, f"{C}.resources"),
    ],
)
def test_a_container_field_without_effect_is_noted(container: dict[str, Any], path: str) -> None:
    """The pod may come all the same."""
    pod = pod_with(container)

    assert (refused(pod), noted(pod)) == ([], [path])


def test_what_only_the_place_could_fill_in_is_refused() -> None:
    """Nobody knows the pod's address before it runs. So are fields that nobody here knows."""
    source = {"fieldRef": {"fieldPath": "status.podIP"}}
    env = [{"name": "IP", "valueFrom": source}]

    assert refused(pod_with({"env": env}, hostPID=True, fieldOfNextYear={"a": 1})) == [
        "spec.hostPID",
        f"{C}.env[0].valueFrom.fieldRef.fieldPath",
        "spec.fieldOfNextYear",
    ]


def test_only_tcp_without_host_ports_is_published() -> None:
    """By the port's own path."""
    published = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]

    assert [each.path for each in ports(pod_with({"ports": published}))] == [
        f"{C}.ports[1].protocol"
    ]
