"""Everything that may speak against bringing pods home, in words for a person. Pure.

Fed by :mod:`.situation`; feeds :mod:`.gate`, which returns when there is none, and the log.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from vk_provider.bursting.gate_state import GateState
from vk_provider.bursting.limits import GateLimits
from vk_provider.bursting.situation import Situation, failed_quiet, is_failed_lately


def objection(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> str | None:
    """Why no pod is brought home now, in words for a person; None if nothing speaks against it."""
    objections = itertools.chain(
        _standing_objections(state, situation, limits, now),
        _passing_objections(state, situation, limits, now),
    )
    return next(filter(None, objections), None)


def _standing_objections(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> Iterator[str | None]:
    yield "no pod is outside" if situation.outside == 0 else None
    yield situation.trust.why if not situation.trust.may_move else None
    if situation.unavailable is not None:
        yield f"the node takes no pods ({situation.unavailable}): none could go back"
    if is_failed_lately(state, limits, now):
        until = state.failed[-1] + failed_quiet(state, limits)
        yield f"a homecoming failed: not before {until:%H:%M:%S}"
    if situation.others_open is not None:
        yield f"the gate of {situation.others_open} is open"
    yield "another node comes first" if not situation.is_turn else None
    yield situation.loss


def _passing_objections(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> Iterator[str | None]:
    supply = situation.supply
    yield second_objection(situation, close_slots(situation, limits))
    if supply.training_waiting > 0:
        yield f"training waits for {supply.training_waiting} GPUs"
    if state.quiet_since is None:
        yield f"{supply.least_spare} spare slots at home are too few"
    elif not has_held(state.quiet_since, situation.quiet_for, now):
        yield f"home must be free for {situation.quiet_for:.0f} s"
    if not has_held(state.since, limits.dwell, now):
        yield f"the gate has moved within {limits.dwell:.0f} s"


def close_slots(situation: Situation, limits: GateLimits) -> int:
    """How many spare slots are room enough."""
    return max(limits.close_slots, math.ceil(limits.close_fraction * situation.all_outside))


def second_objection(situation: Situation, wanted: int) -> str | None:
    """Why Prometheus would not bring anybody home; it may only say no."""
    second = situation.trust.second
    if second is None:
        return None
    if second.training_waiting > 0:
        return f"Prometheus sees training wait for {second.training_waiting:g} GPUs"
    for gpus, slots in second.slots.items():
        if slots < wanted:
            return f"Prometheus sees {slots:g} free slots of {gpus} GPUs"
    return None


def has_held(since: datetime | None, seconds: float, now: datetime) -> bool:
    """Whether a condition that holds since then has held for so long."""
    return since is not None and now - since >= timedelta(seconds=seconds)
