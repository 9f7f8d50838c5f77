"""Moves the gates: one look at the cluster, one pure step per gate, one PATCH where it changed.

A gate's taint and its state (an annotation) travel in the same PATCH, conditional on the version
that was read, so no crash can part them and nobody else's taint is lost. What could not be written
has not happened: it is decided anew.
Fed by ``controllers.cluster_view`` and ``controllers.prometheus_signal``; decides nothing itself.
"""

from __future__ import annotations

import asyncio
import logging

from vk_provider.bursting import gate_state
from vk_provider.bursting.gate import step
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.picture import Picture
from vk_provider.bursting.signals import Doubts, judge
from vk_provider.bursting.situation import Rules, situations
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.gate_report import GateReport
from vk_provider.controllers.gate_writer import GateWriter
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_signal import PrometheusReader
from vk_provider.faults import KubeError
from vk_provider.settings_bursting_gate import GateSettings

logger = logging.getLogger(__name__)

BUSY_SECONDS = 0.5
IDLE_SECONDS = 5.0
SETTLE_SECONDS = 0.2
FIRST_ANSWER_SECONDS = 15.0


class GateController:
    """The gates of all virtual nodes whose own process gave them to us."""

    def __init__(
        self,
        means: ControllerMeans,
        view: ClusterView,
        rules: Rules,
        settings: GateSettings,
        prometheus: PrometheusReader | None = None,
    ) -> None:
        self._means = means
        self._view = view
        self._rules = rules
        self._settings = settings
        self._prometheus = prometheus
        self._changed = view.subscribe()
        self._doubts = Doubts()
        self._states: dict[str, GateState] = {}
        self._writer = GateWriter(means, settings.heartbeat_every)
        self._report = GateReport(means)

    def states(self) -> dict[str, GateState]:
        """Where each gate stands, as far as it was written."""
        return dict(self._states)

    async def run(self) -> None:
        """Move the gates until cancelled."""
        await self._view.wait()
        await self._first_answer()
        while True:
            self._changed.clear()
            await self.turn()
            try:
                async with asyncio.timeout(BUSY_SECONDS if self._is_busy() else IDLE_SECONDS):
                    await self._changed.wait()
                    # Changes come in swarms: one look is enough for all of them.
                    await asyncio.sleep(SETTLE_SECONDS)
            except TimeoutError:
                pass

    async def turn(self) -> None:
        """Look once and do what is due."""
        if not self._means.may_act():
            return
        now, picture = self._means.clock.now(), self._view.picture()
        self._take_up(picture)
        trust, self._doubts = judge(
            self._view.signal(),
            self._prometheus.signal() if self._prometheus is not None else None,
            self._doubts,
            self._settings.signals,
            now,
        )
        found = situations(picture, self._states, trust, self._rules, now)
        for name, situation in found.items():
            wanted = step(self._states[name], situation, self._rules, now)
            await self._publish(name, wanted, picture)
            self._report.show(name, self._states[name], situation, self._rules, now)
        self._report.show_home(found, trust)

    def _take_up(self, picture: Picture) -> None:
        """A node that is new to us is taken up where its annotation says that it stands."""
        gated = {node.name: node for node in picture.virtual if node.is_gated}
        for name in self._states.keys() - gated.keys():
            del self._states[name]
            self._report.gone(name)
        for name, node in gated.items():
            written = gate_state.read(node.gate_state)
            if name not in self._states:
                self._states[name] = written or gate_state.initial(self._means.clock.now())
                logger.info("gate of %s: resuming at %s", name, self._states[name].value)
            elif written is not None and self._was_downgraded(self._states[name], written):
                self._states[name] = written

    def _was_downgraded(self, known: GateState, written: GateState) -> bool:
        """The node itself ended a return that it took for unwatched; its word stands."""
        silent = written.reason is gate_state.GateReason.CONTROLLER_SILENT
        return silent and known.value is Gate.RETURN and written.since > known.since

    async def _publish(self, name: str, wanted: GateState, picture: Picture) -> None:
        known, node = self._states[name], picture.virtual_node(name)
        if node is None:
            return
        try:
            await self._writer.write(node, wanted)
        except KubeError as fault:
            self._report.failed(name, fault)
            if wanted.value is not known.value:
                return
        self._states[name] = wanted
        if wanted.value is not known.value:
            self._report.moved(node, known, wanted)
        if wanted.is_frozen and not known.is_frozen:
            self._report.froze(node, wanted)

    async def _first_answer(self) -> None:
        """A leader that has not asked yet would doubt everything, and stop what goes well."""
        if self._prometheus is None:
            return
        try:
            async with asyncio.timeout(FIRST_ANSWER_SECONDS):
                await self._prometheus.asked.wait()
        except TimeoutError:
            logger.warning("Prometheus has not answered within %g s", FIRST_ANSWER_SECONDS)

    def _is_busy(self) -> bool:
        """Whether something is timed: pods wait, or are on their way home."""
        waits = any(pod.is_unschedulable for pod in self._view.picture().pods)
        return waits or any(
            state.value is Gate.RETURN or state.scarce_since or state.roomy_since
            for state in self._states.values()
        )
