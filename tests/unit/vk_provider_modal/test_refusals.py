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
    ("container", "path", "is_refused"),
    [
        ({"tty": True}, "tty", False),
        ({"restartPolicy": "Never"}, "restartPolicy", True),
        ({"workingDir": "here"}, "workingDir", True),
        ({"ports": [{"containerPort": 1, "protocol": "UDP"}]}, "ports[0].protocol", True),
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


def test_a_working_directory_from_the_root_is_modals_too() -> None:
    """It goes into the request."""
    assert found({"workingDir": "/here"}) == {}


def test_the_pod_is_looked_at_from_its_fields_to_what_nobody_knows() -> None:
    """In this order, which is that of the message."""
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]

    assert found({"env": env}, hostPID=True, hostname="web", fieldOfNextYear={"a": 1}) == {
        "spec.hostPID": True,
        "spec.hostname": False,
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath": True,
        "spec.fieldOfNextYear": True,
    }
