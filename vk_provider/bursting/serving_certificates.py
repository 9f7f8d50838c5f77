"""When the webhook's authority and certificate are made, renewed and forgotten. Pure.

Two parties hold something: we the certificate, the API server the authorities that it believes. So
a new authority is believed before it signs, and an old one is forgotten after nothing uses it.

Fed by ``controllers.webhook_certificates`` with what the Secret holds; feeds it the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

FORGET_AFTER = timedelta(hours=1)
"""How long an old authority stays believed: every replica has the new certificate by then."""


class Step(StrEnum):
    """What is to be done with the Secret next."""

    NOTHING = "Nothing"
    BEGIN = "Begin"
    """A new authority and a certificate by it, whatever there was."""
    ADD_AUTHORITY = "AddAuthority"
    """A new authority beside the old one, which still signs for what is served."""
    RENEW = "Renew"
    """A new certificate by the newest authority."""
    FORGET = "Forget"
    """The newest authority alone."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the Secret holds. Renewal is due before anything ends."""

    authorities: int
    authority_renewal: datetime
    authority_end: datetime
    names: frozenset[str]
    is_signed_by_newest: bool
    signed_at: datetime
    renewal: datetime


def next_step(held: Held | None, names: frozenset[str], is_believed: bool, now: datetime) -> Step:
    """``held`` None: no Secret, or nothing in it that can be used. ``is_believed``: the API server
    has been given all authorities of the Secret."""
    if held is None or now >= held.authority_end:
        return Step.BEGIN
    if held.is_signed_by_newest and now >= held.authority_renewal:
        return Step.ADD_AUTHORITY
    is_current = held.is_signed_by_newest and held.names == names and now < held.renewal
    if not is_current:
        return Step.RENEW if is_believed else Step.NOTHING
    if held.authorities > 1 and now - held.signed_at >= FORGET_AFTER:
        return Step.FORGET
    return Step.NOTHING
