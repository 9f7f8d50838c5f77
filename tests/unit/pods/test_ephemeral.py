"""Ephemeral containers: reported where a backend starts them; elsewhere they wait, and say why."""

from datetime import UTC, datetime
from typing import Any

from vk_provider.pods.ephemeral import NOT_SUPPORTED, refused_statuses
from vk_provider.pods.status import StatusInput, render_status
from vk_provider.pods.status_patch import status_patch
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    Observation,
    Running,
    Terminated,
    Verdict,
    Waiting,
)
from vk_provider.testing.builders import make_observation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEBUGGER = {"name": "debugger", "image": "busybox:1"}


def pod() -> dict[str, object]:
    """A pod that somebody wants to debug."""
    spec = {"containers": [{"name": "main"}], "ephemeralContainers": [DEBUGGER]}
    return {"metadata": {"uid": "u"}, "spec": spec, "status": {"phase": "Running"}}


def test_each_has_a_status_that_says_why_it_waits() -> None:
    """As kubectl debug prints it."""
    (status,) = refused_statuses(pod())

    assert (status["name"], status["image"]) == ("debugger", "busybox:1")
    waiting = {"reason": "CreateContainerError", "message": NOT_SUPPORTED}
    assert status["state"] == {"waiting": waiting}


def test_it_is_written_once() -> None:
    """And is no reason to write again."""
    rendered = render_status(pod(), StatusInput(None), NOW)
    patch = status_patch(pod(), rendered)

    assert patch is not None
    assert patch["status"]["ephemeralContainerStatuses"] == refused_statuses(pod())
    held = {**pod(), "status": rendered}
    assert "ephemeralContainerStatuses" not in str(status_patch(held, rendered))


def test_a_pod_that_is_over_has_none_that_waits() -> None:
    """Nothing waits in a terminal phase."""
    status = render_status(pod(), StatusInput(None, verdict=Verdict("Failed")), NOW)

    assert "ephemeralContainerStatuses" not in status


def seen(*states: ContainerState) -> Observation:
    """An instance with a debugger in each of these states."""
    found = tuple(ContainerObservation("debugger", state) for state in states)
    return make_observation(ephemeral_containers=found)


def started(observation: Observation | None, **given: Any) -> list[dict[str, Any]]:
    """The statuses on a backend that starts them."""
    status = render_status(pod(), StatusInput(observation, adds_containers=True, **given), NOW)
    found: list[dict[str, Any]] = status.get("ephemeralContainerStatuses", [])
    return found


def test_where_they_can_be_started_they_are_reported() -> None:
    """Waiting first, without the words of the pod; never ready, which is no matter."""
    (waiting,) = started(seen(), waiting=Waiting("CreateBackOff", "no"))
    (running,) = started(seen(Running(NOW)))
    (ended,) = started(seen(Terminated(3)))

    assert waiting["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "running" in running["state"]
    assert ended["state"]["terminated"]["exitCode"] == 3


def test_one_that_runs_keeps_no_pod_alive() -> None:
    """Who never started is left out of a pod that is over."""
    failed = Verdict("Failed")

    (ended,) = started(seen(Running(NOW)), verdict=failed)

    assert ended["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert started(seen(), verdict=failed) == []
