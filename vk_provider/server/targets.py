"""Which container of which instance a stream is for, or a kubelet's refusal of it.

Fed by the lookup; feeds :mod:`.exec`, :mod:`.attach` and :mod:`.portforward`. A refusal comes
before the upgrade, so that the user sees a sentence instead of a stream that breaks.
"""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from vk_provider.pods.ephemeral import NOT_SUPPORTED
from vk_provider.pods.types import InstanceRef, Json
from vk_provider.provider import Provider
from vk_provider.server.containers import container_spec, container_status
from vk_provider.server.lookup import PodLookup, ServedPod


class StreamRefusedError(Exception):
    """Why there is no stream: an HTTP status and a sentence for the user."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Instance:
    """A pod that has an instance, and whose it is."""

    pod: Json
    provider: Provider
    ref: InstanceRef


def find_pod(lookup: PodLookup, request: web.Request) -> ServedPod:
    """The pod of the path, by its UID too if the path has one. Raises StreamRefusedError."""
    path = request.match_info
    served = lookup.find(path["namespace"], path["pod"])
    if served is None or path.get("uid", _uid(served.pod)) != _uid(served.pod):
        raise StreamRefusedError(404, "pod does not exist")
    return served


def running_instance(served: ServedPod) -> Instance:
    """The pod's instance. Raises StreamRefusedError in a kubelet's words, and ours behind them."""
    metadata = served.pod.get("metadata") or {}
    full_name = f"{metadata.get('name')}_{metadata.get('namespace')}"
    phase = (served.pod.get("status") or {}).get("phase") or "Pending"
    if phase in ("Succeeded", "Failed"):
        raise StreamRefusedError(500, f'pod not found ("{full_name}"), it has ended ({phase})')
    if served.provider is None or served.ref is None:
        text = f'pod not found ("{full_name}"), it has no instance (yet), its phase is {phase}'
        raise StreamRefusedError(500, text)
    return Instance(served.pod, served.provider, served.ref)


def running_container(served: ServedPod, container: str) -> Instance:
    """The instance of a container that runs. Raises StreamRefusedError."""
    reason = container_refusal(served.pod, container)
    if reason is not None:
        raise StreamRefusedError(500, reason)
    return running_instance(served)


def container_refusal(pod: Json, container: str) -> str | None:
    """Why nothing can be run in, or attached to, a container now; None if it runs."""
    missing = f'container not found ("{container}")'
    if container_spec(pod, container) is None:
        return missing
    state = (container_status(pod, container) or {}).get("state") or {}
    phase = (pod.get("status") or {}).get("phase")
    if "terminated" in state or phase in ("Succeeded", "Failed"):
        return f'container is in CONTAINER_EXITED state, container "{container}" has ended'
    if "running" in state:
        return None
    waits = state.get("waiting") or {}
    if waits.get("message") == NOT_SUPPORTED:
        return f"{missing}, {NOT_SUPPORTED}"
    waiting = waits.get("reason")
    return f"{missing}, it is waiting to start{f' ({waiting})' if waiting else ''}"


def _uid(pod: Json) -> object:
    return (pod.get("metadata") or {}).get("uid")
