"""Which container a stream is for, and the sentences of a refusal."""

from typing import Any

import pytest
import yaml

from vk_provider.pods.ephemeral import refused_statuses
from vk_provider.server.portforward import port_refusal
from vk_provider.server.streaming import no_mapping
from vk_provider.server.targets import container_refusal


def pod(state: dict[str, Any] | None = None, phase: str = "Running") -> dict[str, Any]:
    """A pod with a container c in that state and a debugger that nobody can start."""
    statuses = [] if state is None else [{"name": "c", "state": state}]
    spec = {
        "containers": [{"name": "c", "tty": True}],
        "ephemeralContainers": [{"name": "debugger"}],
    }
    debuggers = refused_statuses({"spec": spec})
    told = {"containerStatuses": statuses, "ephemeralContainerStatuses": debuggers}
    return {"spec": spec, "status": {"phase": phase, **told}}


@pytest.mark.parametrize(
    ("state", "phase", "words"),
    [
        ({"running": {}}, "Running", None),
        ({"running": {}}, "Failed", "container is in CONTAINER_EXITED state"),
        ({"terminated": {}}, "Running", "container is in CONTAINER_EXITED state"),
        ({"waiting": {"reason": "X"}}, "Pending", "is waiting to start (X)"),
        (None, "Pending", 'container not found ("c"), it is waiting to start'),
    ],
)
def test_only_what_runs_can_be_talked_to(
    state: dict[str, Any] | None, phase: str, words: str | None
) -> None:
    """The refusal says what it does instead."""
    refusal = container_refusal(pod(state, phase), "c")

    assert (refusal is None) if words is None else (words in str(refusal))


def test_a_debugger_is_refused_with_a_reason() -> None:
    """Kubernetes lets it be added; nobody starts it."""
    assert "can't add a container" in str(container_refusal(pod({"running": {}}), "debugger"))
    assert container_refusal(pod(), "x") == 'container not found ("x")'


def test_no_refusal_is_yaml() -> None:
    """An API server would read it as an empty Status."""
    assert isinstance(yaml.safe_load("fault: why"), dict)
    assert isinstance(yaml.safe_load(no_mapping("fault: why")), str)


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        ([], None),
        ([{"containerPort": 53}], None),
        ([{"containerPort": 53, "protocol": "UDP"}], "UDP protocol is not supported for 53"),
        ([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}], None),
    ],
)
def test_a_port_that_speaks_no_tcp_is_refused(
    ports: list[dict[str, Any]], words: str | None
) -> None:
    """Ports that the pod does not name are tried."""
    assert port_refusal({"spec": {"containers": [{"ports": ports}]}}, 53) == words
