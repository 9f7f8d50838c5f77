"""One pod of RunPod's list as an Observation: what is known to be true, and nothing else.

``RUNNING`` alone says little: the pod is RUNNING, and billed, while its image is pulled. The
container runs once ``runtime.uptime`` counts. RunPod restarts a container that exits, for ever,
and exposes no exit code; an uptime that has begun anew is the only trace. The instance then counts
as ended, its container as ``Terminated`` without an exit code, and stays so: the core makes the
first end final and deletes what RunPod has started again. A restart that happened before this
process saw the instance for the first time leaves no trace.
Pure. Fed by ``provider`` with a :class:`Remembered`; feeds the core.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from vk_provider.pods.reading import mapping, mappings, number, text, texts
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    Running,
    Terminated,
    Waiting,
)
from vk_provider_runpod.stamp import Mark

RESTART_TOLERANCE = timedelta(seconds=10)
"""How much later a start may seem only because the answer was old: not yet a restart."""
ENDPOINT = "vk-provider.dev/endpoint-"
SSH = "vk-provider.dev/ssh"
_CARRIER_GRADE = ipaddress.ip_network("100.64.0.0/10")
_LONGEST_UPTIME = 10**9
_STARTING = ("PROVISIONING", "STARTING")
_ENDED = ("EXITED", "ERROR")


@dataclass(frozen=True, slots=True)
class Remembered:
    """What earlier lists showed of an instance; lost on our restart, never needed to be safe.

    ``started_at`` keeps the start time steady although uptime is in whole seconds of an unknown
    age. ``restarted_at`` is when its container was first seen to have begun anew. ``end`` is the
    system line that tells why its container never starts, and ``end_cause`` what that means.
    """

    mark: Mark
    started_at: datetime | None = None
    restarted_at: datetime | None = None
    end: str | None = None
    end_cause: EndCause = EndCause.IMAGE


def remember(known: Remembered, pod: Mapping[str, Any], now: datetime) -> Remembered:
    """What is known after one more list, whose answer was made at ``now``."""
    uptime = _uptime(pod)
    if uptime is None:
        return known
    started = now - timedelta(seconds=uptime)
    if known.started_at is None:
        return replace(known, started_at=started)
    if known.restarted_at is None and started > known.started_at + RESTART_TOLERANCE:
        return replace(known, restarted_at=started)
    return known


def observe(pod: Mapping[str, Any], known: Remembered) -> Observation:
    """The instance as the core's value. Equal as long as nothing has changed."""
    status = text(pod, "status")
    phase = _phase(status, known)
    ended = phase is InstancePhase.ENDED
    cost = pod.get("cost")
    running = phase is InstancePhase.RUNNING
    return Observation(
        stamp=known.mark.stamp,
        ref=InstanceRef(text(pod, "id")),
        phase=phase,
        containers=_containers(pod, known, phase),
        ended_by=_cause(known) if ended else None,
        reason=status if phase in (InstancePhase.ENDED, InstancePhase.UNKNOWN) else None,
        message=_message(status, phase, known),
        created_at=_time(pod, "createdAt"),
        gpu_type=text(mapping(pod, "gpu"), "id") or None,
        data_center=text(pod, "dataCenterId") or None,
        usd_per_hour=float(cost) if isinstance(cost, int | float) and not ended else None,
        annotations=dict(_endpoints(pod)) if running else {},
    )


def _phase(status: str, known: Remembered) -> InstancePhase:
    # RUNNING and billed, but what we were asked to run has ended, or never will start.
    if status in _ENDED or known.end or known.restarted_at:
        return InstancePhase.ENDED
    if status in _STARTING:
        return InstancePhase.STARTING
    if status != "RUNNING":
        return InstancePhase.UNKNOWN
    # A missing runtime is evidence, not proof: once seen, the container is taken to run on.
    return InstancePhase.RUNNING if known.started_at else InstancePhase.STARTING


def _containers(
    pod: Mapping[str, Any], known: Remembered, phase: InstancePhase
) -> tuple[ContainerObservation, ...]:
    state = _state(known, phase)
    if state is None:
        return ()
    image = text(pod, "image") or None
    return (ContainerObservation(name=known.mark.container, state=state, image=image),)


def _state(known: Remembered, phase: InstancePhase) -> ContainerState | None:
    """None where nothing is known: whether what has stopped ever ran, least of all."""
    if phase is InstancePhase.UNKNOWN:
        return None
    if known.started_at is None:
        if known.end and known.end_cause is EndCause.IMAGE:
            return Waiting("ErrImagePull", known.end)
        return None if phase is InstancePhase.ENDED else Waiting()
    if phase is InstancePhase.ENDED:
        again = known.restarted_at is not None
        how = "the container ended and RunPod started it again" if again else "the instance stopped"
        return Terminated(
            reason="ContainerStatusUnknown",
            message=f"{how}; RunPod tells no exit code",
            started_at=known.started_at,
            finished_at=known.restarted_at,
        )
    return Running(known.started_at)


def _cause(known: Remembered) -> EndCause | None:
    """None where it was the container's own end."""
    if known.end:
        return known.end_cause
    return None if known.restarted_at else EndCause.LOST


def _message(status: str, phase: InstancePhase, known: Remembered) -> str | None:
    if phase is InstancePhase.UNKNOWN:
        return f'RunPod shows the status "{status}", which is not a known one'
    if phase is not InstancePhase.ENDED:
        return None
    if known.restarted_at and not known.end:
        return "the container ended, and RunPod started it again"
    cause = known.end or "RunPod stopped it (no credit, a host's failure or a fatal image)"
    return f"the instance is {status}: {cause}"


def _endpoints(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where the ports are reached from outside: HTTP through RunPod's proxy, TCP directly."""
    for port in texts(pod, "ports") or ():
        private, _, protocol = port.partition("/")
        if protocol == "http" and private.isascii() and private.isdigit():
            yield f"{ENDPOINT}{private}", f"https://{text(pod, 'id')}-{private}.proxy.runpod.net"
    for _, entry in mappings(mapping(pod, "runtime"), "ports"):
        private_port, public = number(entry, "private"), number(entry, "public")
        ip = text(entry, "ip")
        if text(entry, "type") == "tcp" and private_port and public and _is_reachable(ip):
            yield f"{ENDPOINT}{private_port}", f"{ip}:{public}"
    direct = mapping(mapping(pod, "ssh"), "direct")
    if text(direct, "command"):
        yield SSH, text(direct, "command")


def _is_reachable(ip: str) -> bool:
    try:
        return ipaddress.ip_address(ip) not in _CARRIER_GRADE
    except ValueError:
        return False


def _uptime(pod: Mapping[str, Any]) -> int | None:
    """Seconds the container has run; None while it hasn't. A stopped pod's runtime is stale."""
    uptime = number(mapping(pod, "runtime"), "uptime") or 0
    is_believable = 0 < uptime < _LONGEST_UPTIME
    return uptime if text(pod, "status") == "RUNNING" and is_believable else None


def _time(pod: Mapping[str, Any], key: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text(pod, key))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
