"""An observed instance as a reading of its meter: from when until when it is billed, at what price.

Fed by lists; feeds :mod:`.meters`. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from vk_provider.pods.types import InstancePhase, Observation, Running, Terminated


class Key(NamedTuple):
    """An instance: its backend, and its id there."""

    backend: str
    instance: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One instance as a list shows it. ``since``: when its bill began; None: nobody tells.
    ``until``: when its bill ended by itself. ``is_billed`` False: its bill has not begun yet.
    ``usd_per_hour`` None: the backend tells no price (this time)."""

    key: Key
    namespace: str
    pod_uid: str
    usd_per_hour: float | None
    since: datetime | None = None
    until: datetime | None = None
    is_billed: bool = True


@dataclass(frozen=True, slots=True)
class Billing:
    """How a backend bills (see ``provider.ProviderTraits``), and what an instance is reckoned at
    for which it tells no price."""

    ended_is_free: bool = False
    starting_is_free: bool = False
    unpriced_usd_per_hour: float = 0.0


def reading_of(backend: str, seen: Observation, billing: Billing, now: datetime) -> Reading:
    """What a list says about one instance's bill."""
    is_over = seen.phase is InstancePhase.ENDED and (
        billing.ended_is_free or seen.usd_per_hour is None
    )
    is_early = seen.phase is InstancePhase.STARTING and billing.starting_is_free
    price = seen.usd_per_hour
    if price is None and billing.unpriced_usd_per_hour and not is_over:
        price = billing.unpriced_usd_per_hour
    return Reading(
        key=Key(backend, seen.ref.id),
        namespace=seen.stamp.namespace,
        pod_uid=seen.stamp.pod_uid,
        usd_per_hour=price,
        since=_since(seen, billing),
        until=(max(_ends(seen), default=now) if is_over else None),
        is_billed=not is_early,
    )


def _since(seen: Observation, billing: Billing) -> datetime | None:
    if not billing.starting_is_free:
        return seen.created_at
    return min(_starts(seen), default=seen.created_at)


def _starts(seen: Observation) -> Iterator[datetime]:
    for each in (*seen.init_containers, *seen.containers):
        if isinstance(each.state, Running | Terminated) and each.state.started_at is not None:
            yield each.state.started_at


def _ends(seen: Observation) -> Iterator[datetime]:
    for each in seen.containers:
        if isinstance(each.state, Terminated) and each.state.finished_at is not None:
            yield each.state.finished_at


def price_of(usd_per_hour: float | None) -> float | None:
    """None for what is no price: absent, NaN, infinite, negative."""
    if usd_per_hour is None or not 0 <= usd_per_hour < math.inf:
        return None
    return usd_per_hour
