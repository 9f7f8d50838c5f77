"""An instance of the process service as a list shows it.

Fed by a :class:`.process_instance.ProcessInstance`; feeds the provider's lists and watches.
"""

from __future__ import annotations

from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    Observation,
    Stamp,
)
from vk_provider.testing.process_container import Container
from vk_provider.testing.process_instance import ProcessInstance
from vk_provider.testing.process_plan import Role


def phase_of(instance: ProcessInstance) -> InstancePhase:
    """Where an instance is in its life."""
    if instance.garbled:
        return InstancePhase.UNKNOWN
    if instance.is_deleting:
        return InstancePhase.DELETING
    containers = instance.containers.values()
    if instance.is_lost or (containers and instance.is_decided and instance.is_quiet):
        return InstancePhase.ENDED
    began = any(_began(each) for each in containers if each.plan.role is Role.MAIN)
    return InstancePhase.RUNNING if began else InstancePhase.STARTING


def observe(instance: ProcessInstance, stamp: Stamp, address: str | None = None) -> Observation:
    """An instance as its owner sees it."""
    phase = phase_of(instance)
    is_lost = instance.is_lost and phase is InstancePhase.ENDED
    return Observation(
        stamp=stamp,
        ref=instance.ref,
        phase=phase,
        containers=_shown(instance, phase, Role.MAIN),
        init_containers=_shown(instance, phase, Role.INIT, Role.SIDECAR),
        ended_by=EndCause.LOST if is_lost else None,
        message="the keeper of its processes was killed" if is_lost else None,
        created_at=instance.created_at,
        addresses=(address,) if address and phase is InstancePhase.RUNNING else (),
    )


def _began(container: Container) -> bool:
    return container.pid is not None or container.is_over


def _shown(
    instance: ProcessInstance, phase: InstancePhase, *roles: Role
) -> tuple[ContainerObservation, ...]:
    if phase is InstancePhase.UNKNOWN:
        return ()
    return tuple(
        _observe(each, instance.ref.id)
        for each in instance.containers.values()
        if each.plan.role in roles
    )


def _observe(container: Container, instance: str) -> ContainerObservation:
    name, was_there = container.plan.name, container.pid is not None
    return ContainerObservation(
        name=name,
        state=container.state,
        image=container.plan.image if was_there else None,
        container_id=f"process://{instance}/{name}" if was_there else None,
    )
