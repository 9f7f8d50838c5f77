"""What people see of the gates: Events, log lines, metrics.

Fed by ``controllers.gate``; feeds the API server's Events and ``/metrics``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from vk_provider.bursting.gate_state import Gate, GateReason, GateState
from vk_provider.bursting.objections import objection
from vk_provider.bursting.picture import VirtualNode
from vk_provider.bursting.signals import Trust
from vk_provider.bursting.situation import Rules, Situation
from vk_provider.controllers.means import ControllerMeans
from vk_provider.faults import KubeError
from vk_provider.kube.events import NodeRef

logger = logging.getLogger(__name__)

EVENTS = {Gate.OPEN: "GateOpened", Gate.HOLD: "GateHeld", Gate.RETURN: "GateReturning"}
FROZEN = "GateFrozen"
_OUTCOMES = {GateReason.HOMECOMING_LATE: "late", GateReason.LANDED_OUTSIDE: "outside"}
_BAD = frozenset(
    {
        GateReason.SIGNALS_IN_DOUBT,
        GateReason.HOMECOMING_LATE,
        GateReason.LANDED_OUTSIDE,
        GateReason.CONTROLLER_SILENT,
    }
)


class GateReport:
    """Tells of what has changed; numbers are set at every look."""

    def __init__(self, means: ControllerMeans) -> None:
        self._means = means
        self._faults: dict[str, str] = {}
        self._objections: dict[str, str | None] = {}
        self._doubt = ""
        self._arrived: dict[str, int] = {}

    def moved(self, node: VirtualNode, before: GateState, after: GateState) -> None:
        """A gate moved, and it was written."""
        self._faults.pop(node.name, None)
        message = f"{before.value} → {after.value}: {after.message}"
        logger.info("gate of %s: %s (%s)", node.name, message, after.reason)
        type_ = "Warning" if after.reason in _BAD else "Normal"
        reason, about = EVENTS[after.value], NodeRef(node.name, node.uid)
        self._means.events.emit(about, type_, reason, f"{after.reason}: {message}")
        labels = (node.name, before.value, after.value, after.reason)
        self._means.metrics.bursting.gate_transitions.labels(*labels).inc()
        self._arrived.pop(node.name, None)
        outcome = _OUTCOMES.get(after.reason)
        if outcome is not None:
            self._means.metrics.bursting.homecomings.labels(node.name, outcome).inc()

    def froze(self, node: VirtualNode, state: GateState) -> None:
        """A gate would move towards home and has moved too often."""
        count = len(state.transitions)
        message = f"stays {state.value}: it moved {count} times within the window"
        logger.warning("gate of %s %s", node.name, message)
        self._means.events.emit(NodeRef(node.name, node.uid), "Warning", FROZEN, message)

    def failed(self, name: str, fault: KubeError) -> None:
        """A gate could not be written; said once per cause."""
        if self._faults.get(name) != str(fault):
            self._faults[name] = str(fault)
            logger.warning("gate of %s was not written, trying again: %s", name, fault)

    def gone(self, name: str) -> None:
        """There is no such gate any more: its last numbers would be taken for the present ones."""
        metrics = self._means.metrics.bursting
        for gate in Gate:
            metrics.gate_state.remove(name, gate)
        for gauge in (
            metrics.gate_frozen,
            metrics.gate_paused,
            metrics.burst_pods,
            metrics.homecomings_in_flight,
            metrics.pods_waiting_for_gate,
        ):
            gauge.remove(name)
        for told in (self._faults, self._objections, self._arrived):
            told.pop(name, None)

    def show(
        self, name: str, state: GateState, situation: Situation, rules: Rules, now: datetime
    ) -> None:
        """The numbers of one gate, and why it brings nobody home."""
        metrics = self._means.metrics.bursting
        for gate in Gate:
            metrics.gate_state.labels(name, gate).set(gate is state.value)
        metrics.gate_frozen.labels(name).set(state.is_frozen)
        metrics.gate_paused.labels(name).set(state.is_paused)
        metrics.burst_pods.labels(name).set(situation.outside)
        metrics.homecomings_in_flight.labels(name).set(situation.homecoming.in_flight)
        self._count_arrivals(name, situation.homecoming.arrived)
        metrics.pods_waiting_for_gate.labels(name).set(len(situation.waiting))
        self._explain(name, state, situation, rules, now)

    def _count_arrivals(self, name: str, arrived: int) -> None:
        """Those that this process has not seen arrive before."""
        news = arrived - self._arrived.get(name, 0)
        if news > 0:
            self._means.metrics.bursting.homecomings.labels(name, "home").inc(news)
        self._arrived[name] = max(arrived, self._arrived.get(name, 0))

    def show_home(self, found: Mapping[str, Situation], trust: Trust) -> None:
        """The numbers of home, which are the same for all gates."""
        metrics = self._means.metrics.bursting
        metrics.gate_signals_doubted.set(not trust.may_move)
        if trust.why != self._doubt:
            self._doubt = trust.why
            logger.info("signals: %s", trust.why or "all of them are believed")
        situation = next(iter(found.values()), None)
        if situation is None:
            return
        supply = situation.supply
        metrics.home_free_gpus.set(sum(supply.free))
        metrics.home_usable_nodes.set(supply.usable_nodes)
        metrics.training_waiting_gpus.set(supply.training_waiting)
        metrics.home_spare_slots.clear()  # of pods of a size that nobody asks for any more
        for gpus in supply.shapes:
            metrics.home_spare_slots.labels(str(gpus)).set(supply.spare(gpus))

    def _explain(
        self, name: str, state: GateState, situation: Situation, rules: Rules, now: datetime
    ) -> None:
        why = None
        if state.value is Gate.HOLD and situation.outside:
            why = objection(state, situation, rules.gate, now)
        if why is not None and why != self._objections.get(name):
            logger.debug("gate of %s: nobody is brought home: %s", name, why)
        self._objections[name] = why
