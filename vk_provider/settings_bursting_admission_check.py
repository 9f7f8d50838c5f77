"""The block ``admissionCheck`` of kind ``Bursting``: training waits, for a bounded time. Pure.

Fed by :mod:`vk_provider.settings_bursting`; read by ``controllers.evacuation``.
"""

from __future__ import annotations

from dataclasses import dataclass

from vk_provider.fields import Fields


@dataclass(frozen=True, slots=True)
class AdmissionCheckSettings:
    """Whether Kueue's AdmissionChecks with ``controllerName: vk-provider.dev/evacuation`` are
    answered, for how long a job is held at most, and whether room is made for jobs of
    topology-aware queues as well (those can't be held: Kueue looks for nodes before it asks)."""

    enabled: bool = False
    deadline_seconds: float = 600.0
    topology: bool = False


def parse_admission_check(block: Fields) -> AdmissionCheckSettings:
    """How training is let in."""
    usual = AdmissionCheckSettings()
    settings = AdmissionCheckSettings(
        enabled=block.boolean("enabled", usual.enabled),
        deadline_seconds=block.number("deadlineSeconds", usual.deadline_seconds, 1, 86_400),
        topology=block.boolean("topology", usual.topology),
    )
    block.done()
    return settings
