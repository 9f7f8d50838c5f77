"""What a pod may not ask for, and what it may ask for in vain."""

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
    """With everything the API server fills in."""
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
    }

    assert findings(pod_with({"imagePullPolicy": "IfNotPresent"}, **defaults)) == ()


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"hostPID": True}, "spec.hostPID"),
        ({"hostIPC": True}, "spec.hostIPC"),
        ({"shareProcessNamespace": True}, "spec.shareProcessNamespace"),
        ({"hostAliases": [{"ip": "1.2.3.4"}]}, "spec.hostAliases"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"os": {"name": "windows"}}, "spec.os.name"),
        ({"resources": {"limits": {"cpu": "1"}}}, "spec.resources"),
        ({"fieldOfNextYear": {"a": 1}}, "spec.fieldOfNextYear"),
        ({"securityContext": {"runAsUser": 1}}, "spec.securityContext.runAsUser"),
        ({"securityContext": {"runAsGroup": 0}}, "spec.securityContext.runAsGroup"),
        ({"securityContext": {"fsGroup": 0}}, "spec.securityContext.fsGroup"),
        (
            {"securityContext": {"supplementalGroups": [1]}},
            "spec.securityContext.supplementalGroups",
        ),
        (
            {"securityContext": {"seLinuxOptions": {"level": "s0"}}},
            "spec.securityContext.seLinuxOptions",
        ),
        ({"securityContext": {"sysctls": [{"name": "a"}]}}, "spec.securityContext.sysctls"),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
            "spec.securityContext.seccompProfile.type",
        ),
    ],
)
def test_a_pod_field_is_refused_by_its_path(spec: dict[str, Any], path: str) -> None:
    """It would make the pod behave otherwise than at home."""
    assert refused(pod_with(**spec)) == [path]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"workingDir": "/app"}, f"{C}.workingDir"),
        ({"volumeDevices": [{"name": "disk"}]}, f"{C}.volumeDevices"),
        ({"restartPolicy": "Never"}, f"{C}.restartPolicy"),
        ({"resources": {"claims": [{"name": "gpu"}]}}, f"{C}.resources.claims"),
        ({"securityContext": {"privileged": True}}, f"{C}.securityContext.privileged"),
        ({"securityContext": {"procMount": "Unmasked"}}, f"{C}.securityContext.procMount"),
        (
            {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}},
            f"{C}.securityContext.capabilities.add",
        ),
        ({"securityContext": {"runAsUser": 1000}}, f"{C}.securityContext.runAsUser"),
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
    """Likewise."""
    assert refused(pod_with(container)) == [path]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"livenessProbe": {"exec": {}}}, f"{C}.livenessProbe"),
        ({"readinessProbe": {"grpc": {"port": 1}}}, f"{C}.readinessProbe"),
        ({"startupProbe": {"tcpSocket": {"port": 1}}}, f"{C}.startupProbe"),
        ({"lifecycle": {"preStop": {}}}, f"{C}.lifecycle"),
        ({"tty": True}, f"{C}.tty"),
        ({"stdinOnce": True}, f"{C}.stdinOnce"),
        ({"imagePullPolicy": "Always"}, f"{C}.imagePullPolicy"),
        (
            {"securityContext": {"allowPrivilegeEscalation": False}},
            f"{C}.securityContext.allowPrivilegeEscalation",
        ),
        (
            {"securityContext": {"readOnlyRootFilesystem": True}},
            f"{C}.securityContext.readOnlyRootFilesystem",
        ),
        (
            {"securityContext": {"capabilities": {"drop": ["ALL"]}}},
            f"{C}.securityContext.capabilities.drop",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
            f"{C}.securityContext.appArmorProfile",
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}},
            f"{C}.resources",
        ),
    ],
)
def test_a_container_field_without_effect_is_noted(container: dict[str, Any], path: str) -> None:
    """Hardened manifests and probes must be able to come here."""
    pod = pod_with(container)

    assert (refused(pod), noted(pod)) == ([], [path])


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostname": "db"}, "spec.hostname"),
        ({"subdomain": "db"}, "spec.subdomain"),
        ({"hostnameOverride": "db"}, "spec.hostnameOverride"),
        ({"setHostnameAsFQDN": True}, "spec.setHostnameAsFQDN"),
        ({"dnsConfig": {"searches": ["x"]}}, "spec.dnsConfig"),
        ({"dnsPolicy": "None"}, "spec.dnsPolicy"),
        ({"hostUsers": False}, "spec.hostUsers"),
        ({"runtimeClassName": "nvidia"}, "spec.runtimeClassName"),
        ({"terminationGracePeriodSeconds": 0}, "spec.terminationGracePeriodSeconds"),
        ({"securityContext": {"runAsNonRoot": True}}, "spec.securityContext.runAsNonRoot"),
    ],
)
def test_a_pod_field_without_effect_is_noted(spec: dict[str, Any], path: str) -> None:
    """Likewise."""
    pod = pod_with(**spec)

    assert (refused(pod), noted(pod)) == ([], [path])


def test_user_zero_is_what_images_run_as() -> None:
    """Some charts say so."""
    assert findings(pod_with(securityContext={"runAsUser": 0})) == ()


def test_further_containers_are_refused_each() -> None:
    """Init containers and sidecars by their own words."""
    pod = make_resolved_pod(
        containers=[make_container(), make_container("second")],
        initContainers=[make_container("setup"), make_container("proxy", restartPolicy="Always")],
    )

    problems = [each for each in findings(pod) if isinstance(each, FieldProblem)]

    assert [each.path for each in problems] == [
        "spec.initContainers[0]",
        "spec.initContainers[1]",
        "spec.containers[1]",
    ]
    assert "sidecars" in problems[1].message


def test_what_only_the_place_could_fill_in_is_refused() -> None:
    """Nobody knows the pod's address before it runs."""
    source = {"fieldRef": {"fieldPath": "status.podIP"}}

    assert refused(pod_with({"env": [{"name": "IP", "valueFrom": source}]})) == [
        f"{C}.env[0].valueFrom.fieldRef.fieldPath"
    ]


def test_found_values_are_shown_in_short() -> None:
    """A list of mappings by the names in it."""
    context = {"sysctls": [{"name": "net.a", "value": "1"}], "seLinuxOptions": {"level": "s0"}}

    found = findings(pod_with(securityContext=context))
    messages = [each.message for each in found if isinstance(each, FieldProblem)]

    assert "found a mapping" in messages[0]
    assert "found net.a" in messages[1]


def test_only_tcp_without_host_ports_is_published() -> None:
    """By the port's own path."""
    published = [
        {"containerPort": 80},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 81, "hostPort": 81},
    ]

    assert [each.path for each in ports(pod_with({"ports": published}))] == [
        f"{C}.ports[1].protocol",
        f"{C}.ports[2].hostPort",
    ]
