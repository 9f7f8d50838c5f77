"""The fields that Modal can't honour, and those it honours in its own way."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_modal.refusals import findings

from vk_provider.pods.types import FieldNote
from vk_provider.testing.builders import make_container, make_resolved_pod


def found(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, bool]:
    """Path -> whether it is refused (and not only noted)."""
    pod = make_resolved_pod(containers=[make_container(**(container or {}))], **spec)
    return {each.path: not isinstance(each, FieldNote) for each in findings(pod)}


@pytest.mark.parametrize(
    ("spec", "path", "is_refused"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork", True),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims", True),
        ({"hostname": "web"}, "spec.hostname", False),
        ({"hostnameOverride": "web"}, "spec.hostnameOverride", False),
        ({"resources": {"limits": {"cpu": "1"}}}, "spec.resources", True),
        ({"fieldOfNextYear": {"a": 1}}, "spec.fieldOfNextYear", True),
        ({"hostUsers": False}, "spec.hostUsers", False),
        ({"dnsPolicy": "None"}, "spec.dnsPolicy", False),
        ({"terminationGracePeriodSeconds": 5}, "spec.terminationGracePeriodSeconds", False),
        ({"os": {"name": "windows"}}, "spec.os.name", True),
        ({"securityContext": {"fsGroup": 1}}, "spec.securityContext.fsGroup", True),
        ({"securityContext": {"runAsNonRoot": True}}, "spec.securityContext.runAsNonRoot", False),
        (
            {"initContainers": [make_container("init")]},
            "spec.initContainers[0]",
            True,
        ),
    ],
)
def test_a_field_of_a_pod_is_refused_or_noted(
    spec: dict[str, Any], path: str, is_refused: bool
) -> None:
    """By its path."""
    assert found(**spec) == {path: is_refused}


@pytest.mark.parametrize(
    ("container", "path", "is_refused"),
    [
        ({"volumeDevices": [{"name": "a"}]}, "volumeDevices", True),
        ({"livenessProbe": {"exec": {}}}, "livenessProbe", False),
        ({"tty": True}, "tty", False),
        ({"stdinOnce": True}, "stdinOnce", False),
        ({"restartPolicy": "Never"}, "restartPolicy", True),
        ({"resources": {"claims": [{"name": "gpu"}]}}, "resources.claims", True),
        ({"workingDir": "here"}, "workingDir", True),
        ({"ports": [{"containerPort": 1, "protocol": "UDP"}]}, "ports[0].protocol", True),
        ({"ports": [{"containerPort": 1, "hostPort": 1}]}, "ports[0].hostPort", True),
        ({"ports": [{"containerPort": 1, "hostIP": "10.0.0.1"}]}, "ports[0].hostIP", True),
        ({"resources": {"limits": {"a.b/c": "1"}}}, "resources.limits[a.b/c]", True),
        (
            {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
            "resources.limits[ephemeral-storage]",
            False,
        ),
    ],
)
def test_a_field_of_a_container_is_refused_or_noted(
    container: dict[str, Any], path: str, is_refused: bool
) -> None:
    """By its path."""
    assert found(container) == {f"spec.containers[0].{path}": is_refused}


@pytest.mark.parametrize(
    ("context", "path", "is_refused"),
    [
        ({"privileged": True}, "privileged", True),
        ({"runAsUser": 1000}, "runAsUser", True),
        ({"allowPrivilegeEscalation": False}, "allowPrivilegeEscalation", False),
        ({"procMount": "Unmasked"}, "procMount", True),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, "capabilities.add", True),
        ({"capabilities": {"drop": ["ALL"]}}, "capabilities.drop", False),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, "seccompProfile", False),
        ({"seccompProfile": {"type": "Localhost"}}, "seccompProfile.type", True),
        ({"seLinuxOptions": {"level": "s0"}}, "seLinuxOptions", True),
    ],
)
def test_rights_are_refused_or_noted(context: dict[str, Any], path: str, is_refused: bool) -> None:
    """What is asked for is refused, what is given up only noted."""
    where = f"spec.containers[0].securityContext.{path}"

    assert found({"securityContext": context}) == {where: is_refused}


def test_user_0_is_what_images_run_as_anyway() -> None:
    """Some charts say so."""
    assert found({"securityContext": {"runAsUser": 0}}) == {}


def test_one_container_it_is() -> None:
    """Sidecars are none, either."""
    pod = make_resolved_pod(
        containers=[make_container(), make_container("other")],
        initContainers=[make_container("side", restartPolicy="Always")],
    )

    paths = [each.path for each in findings(pod)]

    assert paths == ["spec.initContainers[0]", "spec.containers[1]"]
