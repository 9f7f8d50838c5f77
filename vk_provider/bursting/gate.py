"""The gate: open, hold, return, and when it moves from one to the other. Pure.

Towards serving it is fast and needs nobody's permission; towards home it is slow, wants every
signal fresh, and gives up at the first sign that it goes wrong. A hard cap on moves per hour keeps
enough in reserve that there always is one left to open.

``step(state, situation, rules, now)`` is all there is: fed by :mod:`.situation`; the new state is
what ``controllers.gate`` writes on the Node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from vk_provider.bursting.gate_state import Gate, GateReason, GateState
from vk_provider.bursting.limits import GateLimits, HomecomingLimits
from vk_provider.bursting.objections import close_slots, has_held, objection, second_objection
from vk_provider.bursting.situation import MOST_FAILED, Rules, Situation

_RESERVE = {Gate.OPEN: 0, Gate.HOLD: 1, Gate.RETURN: 2}
"""Moves that must be left after this one: back to hold, and from there to open."""
_FAILURES = (GateReason.HOMECOMING_LATE, GateReason.LANDED_OUTSIDE)
_WELL = (GateReason.ALL_HOME,)


@dataclass(frozen=True, slots=True)
class Move:
    """A value that the gate should take on, and why."""

    to: Gate
    reason: GateReason
    message: str


def step(state: GateState, situation: Situation, rules: Rules, now: datetime) -> GateState:
    """The gate's state at ``now``; the same object's equal if nothing has changed."""
    state = _forget(state, rules.gate, now)
    if not situation.trust.is_blind:
        state = _keep_time(state, situation, rules.gate, now)
    move = _wanted(state, situation, rules, now)
    if move is None:
        return replace(
            state, is_frozen=False, is_paused=_is_paused(state, situation, rules.homecoming)
        )
    if not _is_permitted(state, move, rules.gate):
        return replace(state, is_frozen=True)
    return _moved(state, move, now)


def _moved(state: GateState, move: Move, now: datetime) -> GateState:
    failed = state.failed
    if move.reason in _FAILURES:
        failed = (*failed, now)[-MOST_FAILED:]
    elif move.reason in _WELL:
        failed = ()
    return replace(
        state,
        value=move.to,
        since=now,
        reason=move.reason,
        message=move.message,
        transitions=(*state.transitions, now),
        opened_until=now if move.reason is GateReason.SPARE_AT_HOME else state.opened_until,
        failed=failed,
        is_paused=False,
        is_frozen=False,
    )


def dead_man(state: GateState | None, now: datetime) -> GateState:
    """What the node itself makes of a gate in ``return`` whose controller is silent: hold."""
    message = "nobody watches the pods on their way home"
    move = Move(Gate.HOLD, GateReason.CONTROLLER_SILENT, message)
    return _moved(state or GateState(Gate.RETURN, now), move, now)


def _forget(state: GateState, limits: GateLimits, now: datetime) -> GateState:
    """Moves that have left the window count no longer."""
    oldest = now - timedelta(seconds=limits.transitions_window)
    if not state.transitions or state.transitions[0] > oldest:
        return state
    return replace(state, transitions=tuple(one for one in state.transitions if one > oldest))


def _keep_time(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> GateState:
    """Since when each condition has held; a doubted signal is no condition."""
    trust, spare = situation.trust, situation.supply.least_spare
    is_scarce = spare < limits.open_slots and trust.may_open
    is_roomy = spare >= close_slots(situation, limits) and trust.may_close
    is_quiet = (
        is_roomy
        and trust.may_move
        and situation.supply.training_waiting == 0
        and second_objection(situation, close_slots(situation, limits)) is None
    )
    return replace(
        state,
        scarce_since=_since(state.scarce_since, is_scarce, now),
        roomy_since=_since(state.roomy_since, is_roomy, now),
        quiet_since=_since(state.quiet_since, is_quiet, now),
        provider_since=_since(state.provider_since, situation.unavailable is not None, now),
    )


def _since(before: datetime | None, holds: bool, now: datetime) -> datetime | None:
    return (before or now) if holds else None


def _wanted(state: GateState, situation: Situation, rules: Rules, now: datetime) -> Move | None:
    if situation.trust.is_blind:
        return _doubted(situation) if state.value is Gate.RETURN else None
    if situation.override is not None:
        return _overridden(state, situation.override)
    if state.value is not Gate.OPEN:
        opening = _opening(state, situation, rules.gate, now)
        if opening is not None:
            return opening
    if state.value is Gate.OPEN:
        return _closing(state, situation, rules.gate, now)
    if state.value is Gate.HOLD:
        return _returning(state, situation, rules.gate, now)
    return _stopping(situation)


def _overridden(state: GateState, wanted: Gate) -> Move | None:
    """A person's word stands above every rule and every count."""
    if state.value is wanted:
        return None
    return Move(wanted, GateReason.OVERRIDDEN, "a person wants it so, by annotation")


def _opening(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> Move | None:
    """Fast: pods wait, or soon would. An unavailable provider could not take them."""
    if situation.unavailable is not None:
        return None
    waiting = [since for since in situation.waiting if not _is_futile(since, state, limits)]
    if waiting and has_held(waiting[0], limits.open_after, now):
        count = f"{len(waiting)} pod{'s' if len(waiting) > 1 else ''}"
        return Move(Gate.OPEN, GateReason.PODS_WAITING, f"{count} found no place at home")
    is_due = has_held(state.scarce_since, limits.scarce_for, now)
    if state.value is Gate.HOLD and is_due and has_held(state.since, limits.dwell, now):
        spare = situation.supply.least_spare
        return Move(Gate.OPEN, GateReason.HOME_IS_FULL, f"{spare} spare slots at home")
    return None


def _is_futile(since: datetime, state: GateState, limits: GateLimits) -> bool:
    """It found no place while the gate stood open for long enough: that is not what it lacks."""
    until = state.opened_until
    return until is not None and until - since >= timedelta(seconds=limits.futile_after)


def _closing(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> Move | None:
    if has_held(state.provider_since, limits.provider_after, now):
        return _provider_away(situation)
    if not has_held(state.roomy_since, limits.close_after, now):
        return None
    # Who has waited for longer than that is not helped by an open gate.
    hopeful = not has_held(state.since, limits.futile_after, now) or any(
        not has_held(one, limits.futile_after, now) for one in situation.waiting
    )
    if (situation.waiting and hopeful) or not has_held(state.since, limits.dwell, now):
        return None
    spare = situation.supply.least_spare
    return Move(Gate.HOLD, GateReason.SPARE_AT_HOME, f"{spare} spare slots at home")


def _provider_away(situation: Situation) -> Move:
    if situation.unavailable == "budget":
        return Move(Gate.HOLD, GateReason.BUDGET_EXHAUSTED, "the node's budget is used up")
    message = f"the node takes no pods: {situation.unavailable}"
    return Move(Gate.HOLD, GateReason.PROVIDER_UNAVAILABLE, message)


def _returning(
    state: GateState, situation: Situation, limits: GateLimits, now: datetime
) -> Move | None:
    """Slow: home is free and has been for long, and nothing at all speaks against it."""
    if objection(state, situation, limits, now) is not None:
        return None
    message = (
        f"{situation.supply.least_spare} spare slots at home, {situation.outside} pods outside"
    )
    return Move(Gate.RETURN, GateReason.HOME_IS_FREE, message)


def _doubted(situation: Situation) -> Move:
    return Move(Gate.HOLD, GateReason.SIGNALS_IN_DOUBT, situation.trust.why)


def _stopping(situation: Situation) -> Move | None:
    """The first sign that bringing pods home goes wrong ends it."""
    return next(itertools.chain(_wrong(situation), _overtaken(situation)), None) or _finished(
        situation
    )


def _wrong(situation: Situation) -> Iterator[Move]:
    """What the way home itself shows."""
    seen = situation.homecoming
    if not situation.trust.may_move:
        yield _doubted(situation)
    if seen.outside:
        yield Move(Gate.HOLD, GateReason.LANDED_OUTSIDE, f"{seen.outside[0]} went out again")
    if seen.late:
        yield Move(Gate.HOLD, GateReason.HOMECOMING_LATE, f"{seen.late[0]} is not Ready in time")


def _overtaken(situation: Situation) -> Iterator[Move]:
    """What has changed around it."""
    if situation.unavailable is not None:
        yield _provider_away(situation)
    if situation.supply.training_waiting > 0:
        message = f"training waits for {situation.supply.training_waiting} GPUs"
        yield Move(Gate.HOLD, GateReason.TRAINING_WAITING, message)
    second = second_objection(situation, 0)
    if second is not None:
        yield Move(Gate.HOLD, GateReason.TRAINING_WAITING, second)
    if situation.others_open is not None:
        message = f"the gate of {situation.others_open} is open"
        yield Move(Gate.HOLD, GateReason.OTHER_GATE_OPEN, message)


def _finished(situation: Situation) -> Move | None:
    if situation.outside == 0:
        if situation.homecoming.in_flight:
            return None
        return Move(Gate.HOLD, GateReason.ALL_HOME, "no pod is outside any more")
    if situation.supply.least_spare < 1:
        message = f"home is full, {situation.outside} pods stay outside"
        return Move(Gate.HOLD, GateReason.NO_ROOM, message)
    return None


def _is_paused(state: GateState, situation: Situation, limits: HomecomingLimits) -> bool:
    """Whether one more cycle of the descheduler could put too many on their way at once."""
    seen = situation.homecoming
    too_many = seen.in_flight + limits.evictions_per_cycle > limits.max_in_flight
    of_one = seen.most_of_one > limits.max_in_flight_per_workload
    return state.value is Gate.RETURN and (too_many or of_one)


def _is_permitted(state: GateState, move: Move, limits: GateLimits) -> bool:
    """Opening and stopping are never refused: what they need was kept in reserve. (A cap that was
    lowered meanwhile may be passed by them, and only by them.)"""
    is_ordered = move.reason is GateReason.OVERRIDDEN
    if is_ordered or move.to is Gate.OPEN or state.value is Gate.RETURN:
        return True
    return len(state.transitions) + 1 + _RESERVE[move.to] <= limits.max_transitions
