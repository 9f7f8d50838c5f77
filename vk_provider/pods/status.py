"""What a pod's status should be, and the smallest patch that makes it so.

Fed by the pod as the API server has it and the last Observation of its instance; feeds
``kube.writer``. Level-triggered: the same input gives the same status, whoever changed the API's
copy meanwhile, so a status that somebody else overwrote is restored without news from the backend.

Three rules decide the rest. A terminal phase is never left. What was not observed is not written
(an end that nobody saw is exit code 137, ``ContainerStatusUnknown``). In a terminal phase in which
no container ever started there are no container statuses: a Failed pod waits for nothing, and
``kubectl get pods`` would print the waiting reason in place of the pod's. Where one started, the
others that did not stay ``waiting``, as a kubelet leaves them when an init container fails.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from vk_provider.pods.conditions import ConditionInput, objects, render_conditions
from vk_provider.pods.container_facts import has_started, mapping, timestamp
from vk_provider.pods.container_status import (
    ContainerInput,
    Status,
    complete_init,
    finish,
    message_share,
    render_container,
)
from vk_provider.pods.ephemeral import ended_statuses, refused_statuses
from vk_provider.pods.events import WaitingReason
from vk_provider.pods.status_patch import status_patch
from vk_provider.pods.types import (
    ContainerObservation,
    InstancePhase,
    Json,
    Observation,
    Verdict,
    Waiting,
)

__all__ = ["StatusInput", "render_status", "status_patch"]

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class StatusInput:
    """What is known about a pod beside its own JSON.

    ``observation`` is the last known one, None before anything exists (or when it is gone).
    ``waiting`` says why nothing runs yet, for containers that have not started; without a reason
    it is ``ContainerCreating`` or ``PodInitializing``. ``verdict`` is the terminal phase to write.
    ``ending``: the pod's end is decided, but its instance is not gone; nothing is Ready any more.
    ``direct``: home reaches the instance's own addresses, so they are the pod's.
    ``adds_containers``: the backend starts ephemeral containers.
    """

    observation: Observation | None
    waiting: Waiting | None = None
    verdict: Verdict | None = None
    host_ip: str | None = None
    backend: str | None = None
    direct: bool = False
    probes_run: bool = False
    ending: bool = False
    adds_containers: bool = False


def render_status(pod: Json, given: StatusInput, now: datetime) -> dict[str, Any]:
    """The complete status that the API should hold. Fields of other owners are carried as found;
    the pod is not changed, and no malformed pod makes it raise."""
    current = mapping(pod.get("status"))
    if given.observation and given.observation.phase is InstancePhase.UNKNOWN:
        if given.verdict is None:
            return dict(current)
        given = replace(given, observation=None)
    verdict = _verdict(current, given.verdict)
    containers, init = _container_statuses(pod, given, is_over=verdict is not None)
    phase = verdict.phase if verdict else _phase(current, given, containers)
    conditions = ConditionInput(
        pod=pod,
        phase=phase,
        containers=containers,
        init_containers=init,
        has_instance=_has_instance(given, [*containers, *init]),
        verdict=given.verdict if phase != current.get("phase") else None,
        resizing=_resizing(given),
    )
    status = {**current, "phase": phase, "conditions": render_conditions(conditions, now)}
    status["startTime"] = current.get("startTime") or timestamp(now)
    _put(status, "reason", verdict and verdict.reason)
    _put(status, "message", verdict and verdict.message)
    _put(status, "observedGeneration", _generation(pod, given, is_over=verdict is not None))
    _put(status, "containerStatuses", containers)
    _put(status, "initContainerStatuses", init)
    debuggers = _ephemeral_statuses(pod, given, is_over=verdict is not None)
    _put(status, "ephemeralContainerStatuses", debuggers)
    _put_addresses(status, given, is_over=verdict is not None)
    return status


def _generation(pod: Json, given: StatusInput, *, is_over: bool) -> object:
    """Which version of the spec the status speaks of: not of one that the backend has yet to see.
    Nothing of a spec counts any more once the pod ends."""
    metadata = mapping(pod.get("metadata"))
    now = metadata.get("generation")
    seen = given.observation.generation if given.observation is not None else None
    if seen is None or is_over or "deletionTimestamp" in metadata or not isinstance(now, int):
        return now
    before = mapping(pod.get("status")).get("observedGeneration")
    return max(before if isinstance(before, int) else 0, min(now, seen))


def _resizing(given: StatusInput) -> Sequence[Json] | None:
    if given.observation is None or given.observation.generation is None:
        return None
    return given.observation.resizing


def _put(status: dict[str, Any], name: str, value: object) -> None:
    """A field that is there only when it says something."""
    if value:
        status[name] = value
    else:
        status.pop(name, None)


def _verdict(current: Json, verdict: Verdict | None) -> Verdict | None:
    """The first terminal phase stands, with its own words; ours comes second."""
    phase = current.get("phase")
    if phase not in TERMINAL_PHASES:
        return verdict
    return Verdict(phase, reason=current.get("reason"), message=current.get("message"))


def _phase(current: Json, given: StatusInput, containers: Sequence[Json]) -> str:
    """Pending until every container has started once; from then on Running until a verdict."""
    if current.get("phase") == "Running":
        return "Running"
    is_ending = given.ending or _is_in(given.observation, InstancePhase.ENDED)
    has_run = bool(containers) and all(map(has_started, containers))
    return "Running" if has_run and not is_ending else "Pending"


def _is_in(seen: Observation | None, *phases: InstancePhase) -> bool:
    return seen is not None and seen.phase in phases


def _has_instance(given: StatusInput, statuses: Sequence[Json]) -> bool:
    """Whether the backend has got as far as containers. A backend that only says "starting" has
    not, and saying otherwise would cost every pod one more PATCH."""
    seen = given.observation
    if any(map(has_started, statuses)) or _is_in(seen, InstancePhase.RUNNING, InstancePhase.ENDED):
        return True
    if seen is None:
        return False
    told = [one.state for one in (*seen.containers, *seen.init_containers)]
    return bool(seen.addresses) or any(isinstance(one, Waiting) and one.reason for one in told)


def _container_statuses(
    pod: Json, given: StatusInput, *, is_over: bool
) -> tuple[list[Status], list[Status]]:
    """The statuses of the regular containers, by name, and of the init containers, in order."""
    spec, current, seen = mapping(pod.get("spec")), mapping(pod.get("status")), given.observation
    specs, init_specs = objects(spec.get("containers")), objects(spec.get("initContainers"))
    count = len(specs) + len(init_specs)
    frame = _Frame(given, count, _default_waiting(given, has_init=bool(init_specs)))
    containers = frame.render(
        specs, current.get("containerStatuses"), seen.containers if seen else ()
    )
    init = frame.render(
        init_specs, current.get("initContainerStatuses"), seen.init_containers if seen else ()
    )
    containers.sort(key=lambda status: str(status["name"]))
    is_past = any(map(has_started, containers))
    pairs = zip(init_specs, init, strict=True)
    init = [complete_init(one, status, is_past=is_past) for one, status in pairs]
    if not is_over:
        return containers, init
    if not any(map(has_started, [*containers, *init])):
        return [], []
    return list(map(finish, containers)), list(map(finish, init))


def _ephemeral_statuses(pod: Json, given: StatusInput, *, is_over: bool) -> list[Status]:
    """In the order of the spec. They count for nothing: neither for the phase nor for Ready."""
    if not given.adds_containers:
        return [] if is_over else refused_statuses(pod)
    specs = objects(mapping(pod.get("spec")).get("ephemeralContainers"))
    current, seen = mapping(pod.get("status")), given.observation
    # What the pod as a whole waits for is no news about a container that is added to it.
    frame = _Frame(given, len(specs) + 1, Waiting(WaitingReason.CONTAINER_CREATING.value))
    statuses = frame.render(
        specs,
        current.get("ephemeralContainerStatuses"),
        seen.ephemeral_containers if seen else (),
    )
    return ended_statuses(statuses) if is_over else statuses


def _default_waiting(given: StatusInput, *, has_init: bool) -> Waiting:
    """What a container that has not started waits for: the backend's word, ours, the kubelet's."""
    default = WaitingReason.POD_INITIALIZING if has_init else WaitingReason.CONTAINER_CREATING
    seen = given.observation
    told = given.waiting or Waiting()
    if seen and seen.phase is InstancePhase.STARTING and (seen.reason or seen.message):
        told = Waiting(seen.reason, seen.message)
    return Waiting(told.reason or default.value, told.message)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all containers of one pod have in common while their statuses are rendered."""

    given: StatusInput
    count: int
    waiting: Waiting

    def render(
        self, specs: Sequence[Json], statuses: object, seen: Sequence[ContainerObservation]
    ) -> list[Status]:
        """One status for each container of the spec; what the backend calls otherwise is left."""
        before = {status.get("name"): status for status in objects(statuses)}
        shown = {observation.name: observation for observation in seen}
        return [
            render_container(self._input(spec, shown.get(name), mapping(before.get(name))))
            for spec in specs
            for name in [str(spec.get("name", ""))]
        ]

    def _input(self, spec: Json, seen: ContainerObservation | None, before: Json) -> ContainerInput:
        return ContainerInput(
            spec=spec,
            seen=seen,
            before=before,
            waiting=self._waiting(before),
            container_id=self._container_id(str(spec.get("name", ""))),
            probes_run=self.given.probes_run,
            serving=self._is_serving(seen),
            message_bytes=message_share(self.count),
        )

    def _waiting(self, before: Json) -> Waiting:
        """On its way out a container waits for what it waited for; nothing new is to be said."""
        last = mapping(mapping(before.get("state")).get("waiting"))
        is_leaving = _is_in(self.given.observation, InstancePhase.DELETING, InstancePhase.ENDED)
        if last.get("reason") and self.given.waiting is None and (is_leaving or self.given.ending):
            return Waiting(last["reason"], last.get("message"))
        return self.waiting

    def _container_id(self, name: str) -> str | None:
        seen = self.given.observation
        if seen is None or self.given.backend is None:
            return None
        whole = f"{self.given.backend}://{seen.ref.id}"
        return whole if self.count == 1 else f"{whole}/{name}"

    def _is_serving(self, seen: ContainerObservation | None) -> bool:
        """An instance on its way out gets no new traffic, unless its own kubelet says Ready."""
        if self.given.ending or _is_in(self.given.observation, InstancePhase.ENDED):
            return False
        is_leaving = _is_in(self.given.observation, InstancePhase.DELETING)
        return not is_leaving or (seen is not None and seen.ready is not None)


def _put_addresses(status: dict[str, Any], given: StatusInput, *, is_over: bool) -> None:
    """The node's address always, the instance's own only where home reaches them. An ended pod
    keeps what it had."""
    if given.host_ip and not (is_over and status.get("hostIP")):
        status["hostIP"] = given.host_ip
        status["hostIPs"] = [{"ip": given.host_ip}]
    if is_over:
        return
    addresses = _one_per_family(given.observation.addresses if given.observation else ())
    if given.direct and not addresses:
        return
    if not given.direct:
        addresses = []
    _put(status, "podIP", addresses[0] if addresses else None)
    _put(status, "podIPs", [{"ip": address} for address in addresses])


def _one_per_family(addresses: Sequence[str]) -> list[str]:
    """The first valid address of each family; the API server refuses more, and anything else."""
    found: dict[int, str] = {}
    for address in addresses:
        try:
            found.setdefault(ipaddress.ip_address(address).version, address)
        except ValueError:
            continue
    return list(found.values())
