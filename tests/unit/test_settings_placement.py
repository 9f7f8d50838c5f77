"""The placement block in the words of the pure code."""

from __future__ import annotations

from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.settings import BudgetSettings, CapSettings
from vk_provider.settings_placement import limits_of


def test_every_cap_arrives() -> None:
    """Percent become a share."""
    given = BudgetSettings(
        CapSettings(1.0, 2.0, 3.0), {"team": CapSettings(None, 4.0)}, False, 50.0, 0.5
    )
    assert limits_of(given) == BudgetLimits(
        Caps(1.0, 2.0, 3.0), {"team": Caps(None, 4.0)}, False, 0.5, 0.5
    )


def test_the_defaults_agree() -> None:
    """Without a block there is no budget."""
    assert limits_of(BudgetSettings()) == BudgetLimits()
