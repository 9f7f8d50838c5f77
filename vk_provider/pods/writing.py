"""From a record to one status PATCH, or to none when the API server already has it.

Fed by the rules of ``pods.lifecycle``; uses ``pods.status`` for the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vk_provider.pods import desired, names
from vk_provider.pods.actions import Action, WakeAt, WriteStatus
from vk_provider.pods.room import fitting, shortened
from vk_provider.pods.slots import Record
from vk_provider.pods.status import StatusInput, render_status, status_patch
from vk_provider.pods.types import (
    ContainerObservation,
    Json,
    Observation,
    Placement,
    Terminated,
    Verdict,
    Waiting,
)
from vk_provider.pods.world import BackendFacts, World


def write(
    record: Record,
    world: World,
    *,
    waiting: Waiting | None = None,
    verdict: Verdict | None = None,
    placement: Placement | None = None,
    ending: bool = False,
) -> list[Action]:
    """The PATCH that brings the API up to date, as a list of zero or one action.

    While another write is under way nothing is added: its answer brings the next decision, which
    sees the latest facts, so writes of one pod coalesce. ``ending``: nothing is Ready any more.
    """
    if record.pod is None or record.writing:
        return []
    if record.write_not_before is not None and world.now < record.write_not_before:
        return [WakeAt(record.write_not_before)]
    if waiting is not None and waiting.message is not None:
        waiting = replace(waiting, message=shortened(waiting.message))
    facts = world.facts.get(record.backend or "", BackendFacts())
    # A kubelet has read the termination message itself, and said so if there is none.
    logs = {} if facts.restarts_in_place else record.logs
    given = StatusInput(
        observation=_with_last_words(record.observation, logs),
        waiting=waiting,
        verdict=verdict,
        host_ip=world.host_ip,
        backend=record.backend,
        direct=world.direct,
        probes_run=facts.runs_probes,
        adds_containers=facts.follows_updates,
        ending=ending,
    )
    wanted = render_status(record.pod, given, world.now)
    patch = status_patch(record.pod, wanted, _annotations(record, record.pod, placement))
    if patch is None or _is_in_vain(record, patch):
        return []
    return [WriteStatus(patch)]


def print_of(patch: Json) -> int:
    """A number that stands for this PATCH."""
    return hash(repr(patch))


def _is_in_vain(record: Record, patch: Json) -> bool:
    """The very PATCH that was answered with the pod as it is: the API server drops a field that it
    does not know, or whose feature is off, and would do so for ever."""
    is_as_answered = record.answered != "" and record.answered == desired.version(record.pod or {})
    return is_as_answered and record.sent == print_of(patch)


def _annotations(record: Record, pod: Json, placement: Placement | None) -> dict[str, str]:
    """The placement comes first; whoever leaves no room for it was refused before."""
    notes = {names.PLACEMENT: desired.render_placement(placement)} if placement else {}
    if record.observation is not None:
        notes |= record.observation.annotations
    return fitting(pod, notes) if notes else notes


def _with_last_words(seen: Observation | None, logs: Mapping[str, str]) -> Observation | None:
    """The end of a container's log is its termination message, where the backend has none."""
    if seen is None or not logs:
        return seen
    return replace(
        seen,
        containers=_spoken(seen.containers, logs),
        init_containers=_spoken(seen.init_containers, logs),
    )


def _spoken(
    containers: Sequence[ContainerObservation], logs: Mapping[str, str]
) -> tuple[ContainerObservation, ...]:
    return tuple(
        replace(one, state=replace(one.state, message=logs[one.name]))
        if isinstance(one.state, Terminated) and one.state.message is None and logs.get(one.name)
        else one
        for one in containers
    )
