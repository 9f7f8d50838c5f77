"""What one gate is decided on, put together from one look at the cluster. Pure.

Fed by ``controllers.gate``; feeds :mod:`.gate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from vk_provider.bursting import names
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.homecoming import Homecoming, cold_start, homecoming
from vk_provider.bursting.limits import BreakEven, GateLimits, HomecomingLimits
from vk_provider.bursting.order import Candidate, loss, whose_turn
from vk_provider.bursting.picture import (
    Picture,
    PodView,
    Selection,
    VirtualNode,
    matches,
    may_enter,
)
from vk_provider.bursting.signals import Trust
from vk_provider.bursting.spare import Supply, supply
from vk_provider.taints import Taint

_DOUBLINGS = 3
MOST_FAILED = _DOUBLINGS + 1
"""More failures in a row mean no more, and the annotation that keeps them has an end."""
_COMING_AND_GOING = (names.GATE_TAINT, names.UNAVAILABLE_TAINT)


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything configured that a gate is decided by."""

    selection: Selection = field(default_factory=Selection)
    gate: GateLimits = field(default_factory=GateLimits)
    homecoming: HomecomingLimits = field(default_factory=HomecomingLimits)
    break_even: BreakEven = field(default_factory=BreakEven)


@dataclass(frozen=True, slots=True)
class Situation:
    """What one gate is decided on.

    ``waiting`` are the moments since when pods wait that this node could take. ``outside`` are the
    opted-in pods on this node, ``all_outside`` those on any virtual node. ``quiet_for`` is how long
    home must have had room. ``is_turn``: no other node returns or should return first.
    ``others_open`` names a gate that is open, through which an evicted pod would leave again.
    """

    supply: Supply = field(default_factory=Supply)
    trust: Trust = field(default_factory=Trust)
    waiting: tuple[datetime, ...] = ()
    outside: int = 0
    all_outside: int = 0
    unavailable: str | None = None
    homecoming: Homecoming = field(default_factory=Homecoming)
    quiet_for: float = 0.0
    is_turn: bool = True
    others_open: str | None = None
    override: Gate | None = None
    """Where a person wants the gate to stay."""
    loss: str | None = None
    """Why bringing a pod home would not pay; None if it does."""


def situations(
    picture: Picture,
    states: Mapping[str, GateState],
    trust: Trust,
    rules: Rules,
    now: datetime,
) -> dict[str, Situation]:
    """One situation per managed node that exists; ``states`` are theirs."""
    inference = [
        pod for pod in picture.pods if rules.selection.is_inference(pod) and not pod.is_over
    ]
    virtual = {node.name: node for node in picture.virtual}
    managed = [virtual[name] for name in sorted(states) if name in virtual]
    outside = {
        name: [pod for pod in inference if pod.node == name and not pod.is_terminating]
        for name in virtual
    }
    home = [pod for pod in inference if pod.node and pod.node not in virtual]
    start = cold_start(home, rules.gate.cold_start)
    common = Situation(
        supply=supply(picture, rules.selection, rules.gate.headroom_slots),
        trust=trust,
        all_outside=sum(len(pods) for pods in outside.values()),
        quiet_for=max(rules.gate.stable_for, rules.gate.cold_start_factor * start),
    )
    turn = whose_turn(_candidates(managed, outside, states, rules.gate, now))
    return {
        node.name: replace(
            common,
            waiting=_waiting(inference, node),
            outside=len(outside[node.name]),
            unavailable=node.unavailable,
            override=_override(node),
            homecoming=_homecoming(picture, states[node.name], rules, now),
            is_turn=turn in (None, node.name),
            others_open=_open_beside(node, managed, states),
            loss=loss(node, _gpus(outside[node.name]), start, rules.break_even),
        )
        for node in managed
    }


def failed_quiet(state: GateState, limits: GateLimits) -> timedelta:
    """How long nobody is brought home after the last failure: longer with each in a row."""
    doubled = min(max(0, len(state.failed) - 1), _DOUBLINGS)
    return timedelta(seconds=limits.failed_quiet * 2.0**doubled)


def is_failed_lately(state: GateState, limits: GateLimits, now: datetime) -> bool:
    """Whether a homecoming went wrong not long ago."""
    return bool(state.failed) and now - state.failed[-1] < failed_quiet(state, limits)


def _override(node: VirtualNode) -> Gate | None:
    """A return is never forced: what ends it would end it again."""
    wanted = node.gate_override
    return Gate(wanted) if wanted in (Gate.OPEN, Gate.HOLD) else None


def _candidates(
    managed: Sequence[VirtualNode],
    outside: Mapping[str, Sequence[PodView]],
    states: Mapping[str, GateState],
    limits: GateLimits,
    now: datetime,
) -> list[Candidate]:
    return [
        Candidate(
            node,
            len(outside[node.name]),
            is_returning=states[node.name].value is Gate.RETURN,
            may_return=not is_failed_lately(states[node.name], limits, now),
        )
        for node in managed
    ]


def _waiting(inference: Iterable[PodView], node: VirtualNode) -> tuple[datetime, ...]:
    """Since when pods wait that this node would take if its gate were open."""
    permanent = tuple(taint for taint in node.taints if taint.key not in _COMING_AND_GOING)
    return tuple(
        sorted(
            pod.unschedulable_since
            for pod in inference
            if pod.unschedulable_since is not None
            and not pod.is_terminating
            and _would_go(pod, node, permanent)
        )
    )


def _would_go(pod: PodView, node: VirtualNode, permanent: tuple[Taint, ...]) -> bool:
    return (
        pod.gpus <= node.gpus
        and matches(node.labels, pod.node_selector)
        and may_enter(pod.tolerations, permanent)
    )


def _homecoming(picture: Picture, state: GateState, rules: Rules, now: datetime) -> Homecoming:
    if state.value is not Gate.RETURN:
        return Homecoming()
    return homecoming(picture, rules.selection, state.since, now, rules.homecoming.ready_within)


def _open_beside(
    node: VirtualNode, managed: Sequence[VirtualNode], states: Mapping[str, GateState]
) -> str | None:
    return next(
        (
            other.name
            for other in managed
            if other.name != node.name
            and other.unavailable is None
            and states[other.name].value is Gate.OPEN
        ),
        None,
    )


def _gpus(pods: Sequence[PodView]) -> int:
    return max((pod.gpus for pod in pods), default=0)
