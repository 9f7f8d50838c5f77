"""PURE. Ephemeral containers, as ``kubectl debug`` adds them to a pod that runs.

The API server takes them for any node; no backend can start one. So each waits for ever and says
why: ``kubectl debug`` prints the message of a container that waits.
Fed by the pod; feeds :mod:`vk_provider.pods.status`.
"""

from __future__ import annotations

from typing import Any

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json

NOT_SUPPORTED = "this node's backends can't add a container to a running pod"
_REASON = "CreateContainerError"
"""A kubelet's word for a container that can't be made."""


def ephemeral_statuses(pod: Json) -> list[dict[str, Any]]:
    """One status for each ephemeral container of the spec."""
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
