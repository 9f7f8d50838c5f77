"""Ephemeral containers wait for ever, and say why."""

from datetime import UTC, datetime

from vk_provider.pods.ephemeral import NOT_SUPPORTED, ephemeral_statuses
from vk_provider.pods.status import StatusInput, render_status
from vk_provider.pods.status_patch import status_patch
from vk_provider.pods.types import Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEBUGGER = {"name": "debugger", "image": "busybox:1"}


def pod() -> dict[str, object]:
    """A pod that somebody wants to debug."""
    spec = {"containers": [{"name": "main"}], "ephemeralContainers": [DEBUGGER]}
    return {"metadata": {"uid": "u"}, "spec": spec, "status": {"phase": "Running"}}


def test_each_has_a_status_that_says_why_it_waits() -> None:
    """As kubectl debug prints it."""
    (status,) = ephemeral_statuses(pod())

    assert (status["name"], status["image"]) == ("debugger", "busybox:1")
    waiting = {"reason": "CreateContainerError", "message": NOT_SUPPORTED}
    assert status["state"] == {"waiting": waiting}


def test_it_is_written_once() -> None:
    """And is no reason to write again."""
    rendered = render_status(pod(), StatusInput(None), NOW)
    patch = status_patch(pod(), rendered)

    assert patch is not None
    assert patch["status"]["ephemeralContainerStatuses"] == ephemeral_statuses(pod())
    held = {**pod(), "status": rendered}
    assert "ephemeralContainerStatuses" not in str(status_patch(held, rendered))


def test_a_pod_that_is_over_has_none_that_waits() -> None:
    """Nothing waits in a terminal phase."""
    status = render_status(pod(), StatusInput(None, verdict=Verdict("Failed")), NOW)

    assert "ephemeralContainerStatuses" not in status
