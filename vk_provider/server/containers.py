"""What a pod's JSON says about one of its containers and its log, in the words a kubelet uses.

Users and tools recognise these sentences. Fed by the lookup; feeds ``logs``, ``targets`` and
``attach``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vk_provider.pods.types import Json

_SPECS = ("containers", "initContainers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_IMAGE_REASONS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def container_spec(pod: Json, container: str) -> Json | None:
    """The container in the pod's spec, of any of the three kinds; None if it has none."""
    return _named(container, pod.get("spec"), _SPECS)


def container_status(pod: Json, container: str) -> Json | None:
    """The container's status; None while it has none."""
    return _named(container, pod.get("status"), _STATUSES)


def _named(container: str, part: Json | None, kinds: Sequence[str]) -> Json | None:
    entries = (entry for kind in kinds for entry in (part or {}).get(kind) or ())
    return next((entry for entry in entries if entry.get("name") == container), None)


def has_ended(pod: Json, container: str) -> bool:
    """Whether the container runs no more and will not again: its log will not grow."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    status = container_status(pod, container) or {}
    return "terminated" in (status.get("state") or {})


def log_refusal(pod: Json, container: str, previous: bool) -> str | None:
    """Why the container can have no log at this moment; None if it may have one."""
    name = (pod.get("metadata") or {}).get("name", "")
    subject = f'container "{container}" in pod "{name}"'
    status = container_status(pod, container)
    if status is None:
        return f"{subject} is not available"
    ended_before = (status.get("lastState") or {}).get("terminated")
    if previous:
        missing = f'previous terminated container "{container}" in pod "{name}" not found'
        return None if ended_before else missing
    state = status.get("state") or {}
    if "running" in state or "terminated" in state or ended_before:
        return None
    return f"{subject} is waiting to start{_waiting_for(state)}"


def _waiting_for(state: dict[str, Any]) -> str:
    reason = (state.get("waiting") or {}).get("reason")
    return f": {_IMAGE_REASONS.get(reason, reason)}" if reason else " - no logs yet"
