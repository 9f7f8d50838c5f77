"""PURE. Ephemeral containers, as ``kubectl debug`` adds them to a pod that runs.

The API server takes them for any node; most backends can't start one. There each waits for ever and
says why: ``kubectl debug`` prints the message of a container that waits.
Fed by the pod; feeds :mod:`vk_provider.pods.status`, which renders those that a backend starts, and
the kubelet server's refusals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vk_provider.pods.container_facts import has_started
from vk_provider.pods.container_status import finish
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json

NOT_SUPPORTED = "this pod's backend can't add a container to a running pod"
_REASON = "CreateContainerError"
"""A kubelet's word for a container that can't be made."""


def refused_statuses(pod: Json) -> list[dict[str, Any]]:
    """One status for each ephemeral container of the spec, where none can be started."""
    return [
        {
            "name": text(container, "name"),
            "image": text(container, "image"),
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": _REASON, "message": NOT_SUPPORTED}},
        }
        for _, container in mappings(mapping(pod, "spec"), "ephemeralContainers")
    ]


def ended_statuses(statuses: Iterable[Json]) -> list[dict[str, Any]]:
    """Those of a pod that is over: who never started says nothing more."""
    return [finish(status) for status in statuses if has_started(status)]
