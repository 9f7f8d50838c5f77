"""What ``spec.placement`` asks for, in the words of the pure placement code. Pure.

Fed by :mod:`vk_provider.settings`; feeds ``app`` and ``offline``.
"""

from __future__ import annotations

from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.settings import BudgetSettings, CapSettings


def limits_of(given: BudgetSettings) -> BudgetLimits:
    """The caps of a node and of its namespaces."""
    return BudgetLimits(
        _caps(given.node),
        {name: _caps(caps) for name, caps in given.namespaces.items()},
        given.drains,
        given.warn_at_percent / 100,
        given.unpriced_usd_per_hour,
    )


def _caps(given: CapSettings) -> Caps:
    return Caps(given.usd_per_hour, given.usd_per_day, given.usd_per_month)
