"""What a pod can't have where an instance runs one container."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import Finding
from vk_provider.pods.one_container import OneContainer
from vk_provider.pods.types import FieldNote, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

C = "spec.containers[0]"
ACME = OneContainer("Acme", "a box", words={"tty": "Acme has no terminals"})


def pod_with(container: dict[str, Any] | None = None, **spec: Any) -> ResolvedPod:
    """A pod with fields laid over its container and its spec."""
    return make_resolved_pod(containers=[make_container(**(container or {}))], **spec)


def findings(pod: ResolvedPod) -> list[Finding]:
    """All that is found in a pod."""
    first = pod.containers[0]
    return [*ACME.of_pod(pod), *ACME.of_container(first), *ACME.of_ports(first)]


def refused(pod: ResolvedPod) -> dict[str, str]:
    """What is refused, by path, where nothing else is found."""
    found = [each for each in findings(pod) if isinstance(each, FieldProblem)]
    assert len(found) == len(findings(pod))
    return {each.path: each.message for each in found}


def noted(pod: ResolvedPod) -> dict[str, str]:
    """What is noted, by path, where nothing else is found."""
    found = [each for each in findings(pod) if isinstance(each, FieldNote)]
    assert len(found) == len(findings(pod))
    return {each.path: each.note for each in found}


def test_a_plain_pod_is_neither_refused_nor_noted() -> None:
    """With everything the API server fills in."""
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
    }

    assert findings(pod_with({"imagePullPolicy": "IfNotPresent"}, **defaults)) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"hostPID": True}, "hostPID"),
        ({"hostIPC": True}, "hostIPC"),
        ({"shareProcessNamespace": True}, "shareProcessNamespace"),
        ({"hostAliases": [{"ip": "1.2.3.4"}]}, "hostAliases"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
        ({"os": {"name": "windows"}}, "os.name"),
        ({"resources": {"limits": {"cpu": "1"}}}, "resources"),
        ({"securityContext": {"runAsUser": 1}}, "securityContext.runAsUser"),
        ({"securityContext": {"runAsGroup": 0}}, "securityContext.runAsGroup"),
        ({"securityContext": {"fsGroup": 0}}, "securityContext.fsGroup"),
        ({"securityContext": {"supplementalGroups": [1]}}, "securityContext.supplementalGroups"),
        ({"securityContext": {"seLinuxOptions": {"level": "a"}}}, "securityContext.seLinuxOptions"),
        ({"securityContext": {"sysctls": [{"name": "a"}]}}, "securityContext.sysctls"),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
            "securityContext.seccompProfile.type",
        ),
    ],
)
def test_a_pod_field_is_refused_by_its_path(spec: dict[str, Any], path: str) -> None:
    """It would make the pod behave otherwise than at home."""
    assert list(refused(pod_with(**spec))) == [f"spec.{path}"]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"volumeDevices": [{"name": "disk"}]}, "volumeDevices"),
        ({"restartPolicy": "Never"}, "restartPolicy"),
        ({"restartPolicyRules": [{"action": "Restart"}]}, "restartPolicyRules"),
        ({"resources": {"claims": [{"name": "gpu"}]}}, "resources.claims"),
        ({"securityContext": {"privileged": True}}, "securityContext.privileged"),
        ({"securityContext": {"procMount": "Unmasked"}}, "securityContext.procMount"),
        (
            {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}},
            "securityContext.capabilities.add",
        ),
        ({"securityContext": {"runAsUser": 1000}}, "securityContext.runAsUser"),
        ({"ports": [{"containerPort": 1, "protocol": "UDP"}]}, "ports[0].protocol"),
        ({"ports": [{"containerPort": 1, "hostPort": 1}]}, "ports[0].hostPort"),
        ({"ports": [{"containerPort": 1}, {"hostIP": "10.0.0.1"}]}, "ports[1].hostIP"),
    ],
)
def test_a_container_field_is_refused_by_its_path(container: dict[str, Any], path: str) -> None:
    """Likewise."""
    assert list(refused(pod_with(container))) == [f"{C}.{path}"]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"livenessProbe": {"exec": {}}}, "livenessProbe"),
        ({"readinessProbe": {"grpc": {"port": 1}}}, "readinessProbe"),
        ({"startupProbe": {"tcpSocket": {"port": 1}}}, "startupProbe"),
        ({"lifecycle": {"preStop": {}}}, "lifecycle"),
        ({"stdinOnce": True}, "stdinOnce"),
        (
            {"securityContext": {"allowPrivilegeEscalation": False}},
            "securityContext.allowPrivilegeEscalation",
        ),
        (
            {"securityContext": {"readOnlyRootFilesystem": True}},
            "securityContext.readOnlyRootFilesystem",
        ),
        (
            {"securityContext": {"capabilities": {"drop": ["ALL"]}}},
            "securityContext.capabilities.drop",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
            "securityContext.appArmorProfile",
        ),
    ],
)
def test_a_container_field_without_effect_is_noted(container: dict[str, Any], path: str) -> None:
    """Hardened manifests and probes must be able to come here."""
    assert list(noted(pod_with(container))) == [f"{C}.{path}"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostname": "db"}, "hostname"),
        ({"subdomain": "db"}, "subdomain"),
        ({"hostnameOverride": "db"}, "hostnameOverride"),
        ({"setHostnameAsFQDN": True}, "setHostnameAsFQDN"),
        ({"dnsConfig": {"searches": ["x"]}}, "dnsConfig"),
        ({"dnsPolicy": "None"}, "dnsPolicy"),
        ({"hostUsers": False}, "hostUsers"),
        ({"runtimeClassName": "nvidia"}, "runtimeClassName"),
        ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds"),
        ({"securityContext": {"runAsNonRoot": True}}, "securityContext.runAsNonRoot"),
    ],
)
def test_a_pod_field_without_effect_is_noted(spec: dict[str, Any], path: str) -> None:
    """Likewise."""
    assert list(noted(pod_with(**spec))) == [f"spec.{path}"]


def test_user_zero_is_what_images_run_as() -> None:
    """Some charts say so."""
    assert findings(pod_with(securityContext={"runAsUser": 0})) == []


def test_further_containers_are_refused_each() -> None:
    """Init containers and sidecars by their own words."""
    pod = make_resolved_pod(
        containers=[make_container(), make_container("second")],
        initContainers=[make_container("setup"), make_container("proxy", restartPolicy="Always")],
    )

    assert refused(pod) == {
        "spec.initContainers[0]": "Acme has no init containers: one container per box",
        "spec.initContainers[1]": "Acme has no sidecars: one container per box",
        "spec.containers[1]": "Acme runs one container per box; found a second one",
    }


def test_messages_speak_of_the_service() -> None:
    """With what was found, and in its own words where it has some."""
    context = {"sysctls": [{"name": "net.a", "value": "1"}]}

    assert refused(pod_with(hostPID=True, securityContext=context)) == {
        "spec.hostPID": "a box shares nothing with a host",
        "spec.securityContext.sysctls": "found net.a; Acme can't set kernel parameters",
    }
    assert noted(pod_with({"stdin": True, "tty": True})) == {
        f"{C}.stdin": "Acme attaches no standard input",
        f"{C}.tty": "Acme has no terminals",
    }
