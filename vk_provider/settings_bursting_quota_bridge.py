"""The block ``quotaBridge`` of kind ``Bursting``: Kueue's quotas follow the nodes. Pure.

Fed by :mod:`vk_provider.settings_bursting`; read by ``controllers.quota_bridge``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.bursting.quota import QuotaRules
from vk_provider.fields import Fields


@dataclass(frozen=True, slots=True)
class QuotaBridgeSettings:
    """Off, and if on only told, until somebody says otherwise. ``rules`` lacks the resource,
    which is that of the whole document."""

    enabled: bool = False
    dry_run: bool = True
    every: float = 15.0
    rules: QuotaRules = field(default_factory=QuotaRules)


def parse_quota_bridge(block: Fields) -> QuotaBridgeSettings:
    """Which quotas are kept equal to what the nodes can give, and how fast."""
    usual = QuotaRules()
    shares = block.child("shares")
    rules = QuotaRules(
        queues=frozenset(block.texts("clusterQueues")),
        per_pod=block.integer("perPod", usual.per_pod, 1),
        percent=block.number("usableCapacityPercent", usual.percent, 1, 100),
        reserve=block.integer("reserve", usual.reserve, 0),
        shares={queue: shares.number(queue, 1.0, 0) for queue in shares.raw()},
        grow_step=block.integer("growStep", usual.grow_step, 1),
        shrink_step=block.integer("shrinkStep", usual.shrink_step, 1),
        hold_down_seconds=block.number("holdDownSeconds", usual.hold_down_seconds, 0),
        shrink_every_seconds=block.number("shrinkEverySeconds", usual.shrink_every_seconds, 0),
        below_reserved=block.boolean("belowReserved", usual.below_reserved),
    )
    settings = QuotaBridgeSettings(
        enabled=block.boolean("enabled", False),
        dry_run=block.boolean("dryRun", True),
        every=block.number("everySeconds", 15.0, 0.1),
        rules=rules,
    )
    block.done()
    return settings
