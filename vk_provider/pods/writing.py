"""From a record to one status PATCH, or to none when the API server already has it.

Fed by the rules of ``pods.lifecycle``; uses ``pods.status`` for the words.
"""

from __future__ import annotations

from vk_provider.pods import desired, names
from vk_provider.pods.actions import Action, WakeAt, WriteStatus
from vk_provider.pods.record import Record
from vk_provider.pods.status import StatusInput, render_status, status_patch
from vk_provider.pods.types import Placement, Verdict, Waiting
from vk_provider.pods.world import BackendFacts, World


def write(
    record: Record,
    world: World,
    *,
    waiting: Waiting | None = None,
    verdict: Verdict | None = None,
    placement: Placement | None = None,
) -> list[Action]:
    """The PATCH that brings the API up to date, as a list of zero or one action.

    While another write is under way nothing is added: its answer brings the next decision, which
    sees the latest facts, so writes of one pod coalesce.
    """
    if record.pod is None or record.writing:
        return []
    if record.write_not_before is not None and world.now < record.write_not_before:
        return [WakeAt(record.write_not_before)]
    facts = world.facts.get(record.backend or "", BackendFacts())
    given = StatusInput(
        observation=record.observation,
        waiting=waiting,
        verdict=verdict,
        host_ip=world.host_ip,
        backend=record.backend,
        direct=world.direct,
        probes_run=facts.runs_probes,
    )
    annotations = dict(record.observation.annotations) if record.observation else {}
    if placement is not None:
        annotations[names.PLACEMENT] = desired.render_placement(placement)
    patch = status_patch(record.pod, render_status(record.pod, given, world.now), annotations)
    return [WriteStatus(patch)] if patch is not None else []
