"""Which signals are believed, and what may be done on their word. Pure.

Serving beats cost: a pod that the API server itself calls unschedulable always opens the gate.
Everything else needs fresh signals, and moving pods needs all of them: empty is unknown, not zero.
Fed by ``controllers`` (the watches' health, Prometheus' answers); feeds :mod:`.gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from vk_provider.bursting.limits import SignalLimits


class Kueue(StrEnum):
    """What is known of the training queue."""

    ABSENT = "absent"
    """The cluster has none: training is pods with a priority, and they are all there is."""
    SERVED = "served"
    MISSING = "missing"
    """It was there, or must be, and can't be read: how much training waits is unknown."""


@dataclass(frozen=True, slots=True)
class WatchSignal:
    """The API server's own word. ``broken_for`` is how long a watch has not run, in seconds."""

    is_synced: bool = True
    broken_for: float = 0.0
    home_nodes: int = 0
    kueue: Kueue = Kueue.ABSENT


@dataclass(frozen=True, slots=True)
class PrometheusSignal:
    """The last answer. ``age`` is how old its data are by now, None while there was no answer;
    ``is_empty``: a query gave no number. ``slots`` by the GPUs of one pod."""

    age: float | None = None
    is_empty: bool = False
    home_nodes: int = 0
    slots: Mapping[int, float] = field(default_factory=dict)
    training_waiting: float = 0.0


@dataclass(frozen=True, slots=True)
class Census:
    """How many home nodes a source last showed, and since when it shows far fewer."""

    nodes: int = 0
    shrunken_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Doubts:
    """What must be remembered between two looks at the signals; nothing of it outlives a leader."""

    watch: Census = Census()
    prometheus: Census = Census()
    stale_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """What may be done on the word of the signals; ``why`` says which one is doubted.

    ``may_open``: open because home has no room (a waiting pod needs no permission, unless we see
    nothing at all: ``is_blind``). ``may_close``: stop new bursts. ``may_move``: bring pods home.
    ``second`` is what Prometheus says, where it is asked.
    """

    may_open: bool = True
    may_close: bool = True
    may_move: bool = True
    is_blind: bool = False
    why: str = ""
    second: PrometheusSignal | None = None


def judge(
    watch: WatchSignal,
    prometheus: PrometheusSignal | None,
    doubts: Doubts,
    limits: SignalLimits,
    now: datetime,
) -> tuple[Trust, Doubts]:
    """What the signals are worth now. ``prometheus`` None: it is not asked."""
    if not watch.is_synced:
        unknown = "the cluster was not listed yet"
        return Trust(False, False, False, is_blind=True, why=unknown), doubts
    nodes = _count(doubts.watch, watch.home_nodes, limits, now)
    doubts = replace(doubts, watch=nodes)
    trust = Trust(second=prometheus)
    if watch.broken_for >= limits.stale_after:
        trust = _blocked(trust, f"the watches have not run for {watch.broken_for:.0f} s")
    elif nodes.shrunken_since is not None:
        trust = _blocked(trust, f"{watch.home_nodes} home nodes where there were {nodes.nodes}")
    elif watch.kueue is Kueue.MISSING:
        trust = replace(trust, may_move=False, why="Kueue's Workloads can't be read")
    if prometheus is None:
        return trust, doubts
    return _with_second(trust, prometheus, doubts, limits, now)


def _with_second(
    trust: Trust,
    prometheus: PrometheusSignal,
    doubts: Doubts,
    limits: SignalLimits,
    now: datetime,
) -> tuple[Trust, Doubts]:
    answered = prometheus.age is not None and not prometheus.is_empty
    nodes = doubts.prometheus
    if answered:
        nodes = _count(nodes, prometheus.home_nodes, limits, now)
    why = _why_stale(prometheus, nodes, limits)
    if why is None:
        return trust, replace(doubts, prometheus=nodes, stale_since=None)
    since = doubts.stale_since or now
    doubts = replace(doubts, prometheus=nodes, stale_since=since)
    is_long = (now - since).total_seconds() >= limits.long_stale_after
    trust = _blocked(trust, trust.why or why)
    return replace(trust, may_open=trust.may_open and not is_long), doubts


def _why_stale(prometheus: PrometheusSignal, nodes: Census, limits: SignalLimits) -> str | None:
    if prometheus.age is None:
        return "Prometheus has not answered yet"
    if prometheus.is_empty:
        return "Prometheus answered with nothing: unknown, not zero"
    if prometheus.age >= limits.stale_after:
        return f"Prometheus' data are {prometheus.age:.0f} s old"
    if nodes.shrunken_since is not None:
        return f"Prometheus sees {prometheus.home_nodes} home nodes where it saw {nodes.nodes}"
    return None


def _blocked(trust: Trust, why: str) -> Trust:
    return replace(trust, may_close=False, may_move=False, why=why)


def _count(before: Census, nodes: int, limits: SignalLimits, now: datetime) -> Census:
    """A step of more than the fraction is doubted until the number is back or has stood long."""
    if nodes >= before.nodes * (1 - limits.shrunken_fraction):
        return Census(nodes)
    since = before.shrunken_since or now
    if (now - since).total_seconds() >= limits.shrunken_hold:
        return Census(nodes)
    return Census(before.nodes, since)
