"""The blocks ``gate`` and ``homecoming`` of kind ``Bursting``. Pure.

Fed by :mod:`vk_provider.settings_bursting`; the values are those of
:mod:`vk_provider.bursting.limits`. Keys end in ``Seconds`` where they are times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.bursting.limits import (
    BreakEven,
    GateLimits,
    HomecomingLimits,
    SignalLimits,
)
from vk_provider.fields import Fields


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Everything about the gate: when it moves, whom it believes, what a move must earn."""

    limits: GateLimits = field(default_factory=GateLimits)
    signals: SignalLimits = field(default_factory=SignalLimits)
    break_even: BreakEven = field(default_factory=BreakEven)
    heartbeat_every: float = 30.0
    """How often the controller says, while pods come home, that it still watches over them."""
    deletion_cost: int | None = -100
    """Written to pods outside, so that they are the first to go when replicas shrink."""


def parse_gate(block: Fields) -> GateSettings:
    """When the gate moves."""
    signals = block.child("signals")
    worth = block.child("breakEven")
    cost = block.child("podDeletionCost")
    settings = GateSettings(
        limits=_limits(block),
        signals=_signals(signals),
        break_even=_break_even(worth),
        heartbeat_every=block.number("heartbeatSeconds", 30.0, 0.1),
        deletion_cost=_cost(cost),
    )
    for one in (signals, worth, cost, block):
        one.done()
    return settings


def _limits(block: Fields) -> GateLimits:
    usual = GateLimits()
    open_slots = block.integer("openSlots", usual.open_slots, 0)
    close_slots = block.integer("closeSlots", usual.close_slots, 1)
    if close_slots <= open_slots and block.has("closeSlots"):
        block.wrong("closeSlots", close_slots, f"more than openSlots ({open_slots})")
    return GateLimits(
        open_after=block.number("openAfterSeconds", usual.open_after, 0),
        open_slots=open_slots,
        scarce_for=block.number("scarceForSeconds", usual.scarce_for, 0),
        close_slots=close_slots,
        close_fraction=block.number("closeFraction", usual.close_fraction, 0, 1),
        close_after=block.number("closeAfterSeconds", usual.close_after, 0),
        stable_for=block.number("stableForSeconds", usual.stable_for, 0),
        cold_start_factor=block.number("coldStartFactor", usual.cold_start_factor, 0),
        cold_start=block.number("coldStartSeconds", usual.cold_start, 0),
        failed_quiet=block.number("failedQuietSeconds", usual.failed_quiet, 0),
        dwell=block.number("dwellSeconds", usual.dwell, 0),
        # Open, hold, return, and two in reserve: with fewer nobody would ever come home.
        max_transitions=block.integer("maxTransitions", usual.max_transitions, 5),
        transitions_window=block.number("transitionsWindowSeconds", usual.transitions_window, 1),
        futile_after=block.number("futileAfterSeconds", usual.futile_after, 1),
        provider_after=block.number("providerUnavailableAfterSeconds", usual.provider_after, 0),
        headroom_slots=block.integer("headroomSlots", usual.headroom_slots, 0),
    )


def _signals(block: Fields) -> SignalLimits:
    usual = SignalLimits()
    stale = block.number("staleAfterSeconds", usual.stale_after, 0.1)
    long_stale = block.number("longStaleAfterSeconds", usual.long_stale_after, 0.1)
    if long_stale < stale:
        block.wrong("longStaleAfterSeconds", long_stale, f"at least staleAfterSeconds ({stale:g})")
    return SignalLimits(
        stale_after=stale,
        long_stale_after=long_stale,
        shrunken_fraction=block.number("shrunkenFraction", usual.shrunken_fraction, 0, 1),
        shrunken_hold=block.number("shrunkenHoldSeconds", usual.shrunken_hold, 0),
    )


def _break_even(block: Fields) -> BreakEven:
    usual = BreakEven()
    return BreakEven(
        expected_quiet=block.number("expectedQuietSeconds", usual.expected_quiet, 0),
        home_usd_per_gpu_hour=block.number("homeUsdPerGpuHour", usual.home_usd_per_gpu_hour, 0),
        disruption_usd=block.number("disruptionUsd", usual.disruption_usd, 0),
    )


def _cost(block: Fields) -> int | None:
    usual = GateSettings()
    cost = block.integer("cost", usual.deletion_cost, -(2**31), 2**31 - 1)
    return cost if block.boolean("enabled", True) else None


def parse_homecoming(block: Fields) -> HomecomingLimits:
    """How pods come home."""
    usual = HomecomingLimits()
    settings = HomecomingLimits(
        max_in_flight=block.integer("maxInFlight", usual.max_in_flight, 1),
        max_in_flight_per_workload=block.integer(
            "maxInFlightPerWorkload", usual.max_in_flight_per_workload, 1
        ),
        evictions_per_cycle=block.integer("evictionsPerCycle", usual.evictions_per_cycle, 1),
        ready_within=block.number("readyWithinSeconds", usual.ready_within, 1),
        surge=block.boolean("surge", usual.surge),
    )
    if settings.evictions_per_cycle > settings.max_in_flight:
        block.wrong(
            "evictionsPerCycle",
            settings.evictions_per_cycle,
            f"at most maxInFlight ({settings.max_in_flight}), or one cycle passes it",
        )
    block.done()
    return settings
