"""An authority is believed before it signs, and forgotten after nothing uses it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vk_provider.bursting.serving_certificates import Held, Step, next_step

NOW = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = frozenset({"vk-provider-webhook.vk-provider.svc"})
FRESH = Held(
    authorities=1,
    authority_renewal=NOW + 292 * DAY,
    authority_end=NOW + 365 * DAY,
    names=NAMES,
    is_signed_by_newest=True,
    signed_at=NOW,
    renewal=NOW + 60 * DAY,
)


@pytest.mark.parametrize(
    ("held", "is_believed", "step"),
    [
        (None, False, Step.BEGIN),
        (FRESH, True, Step.NOTHING),
        (FRESH, False, Step.NOTHING),
        (replace(FRESH, authority_end=NOW), True, Step.BEGIN),
        (replace(FRESH, authority_renewal=NOW), True, Step.ADD_AUTHORITY),
        (replace(FRESH, renewal=NOW), True, Step.RENEW),
        (replace(FRESH, renewal=NOW), False, Step.NOTHING),
        (replace(FRESH, names=frozenset({"other"})), True, Step.RENEW),
        (replace(FRESH, authorities=2, is_signed_by_newest=False), False, Step.NOTHING),
        (replace(FRESH, authorities=2, is_signed_by_newest=False), True, Step.RENEW),
        (replace(FRESH, authorities=2), True, Step.NOTHING),
        (replace(FRESH, authorities=2, signed_at=NOW - timedelta(hours=1)), True, Step.FORGET),
    ],
)
def test_the_next_step(held: Held | None, is_believed: bool, step: Step) -> None:
    """One at a time, each seen before the next."""
    assert next_step(held, NAMES, is_believed, NOW) is step
