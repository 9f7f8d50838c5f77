"""What the metrics tell of the pods of one node: phases, who is held, how long a start takes.

Fed by ``loops.pod_accounts``; feeds ``metrics``.
"""

from __future__ import annotations

from vk_provider.loops.shell import Shell
from vk_provider.pods import desired
from vk_provider.pods.types import Json, Observation, PodUID, Running

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


class PodGauges:
    """Kept up to date per pod, so that nothing is counted anew."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._phases: dict[PodUID, str] = {}
        self._held: set[PodUID] = set()
        self._starting: dict[PodUID, float] = {}
        for phase in PHASES:
            self._shell.metrics.pods.labels(shell.node, phase).set(0)
        self._show_held()

    def seen(self, uid: PodUID, pod: Json) -> None:
        """The pod's latest version."""
        phase = desired.phase(pod)
        before = self._phases.get(uid)
        is_new = desired.placement(pod) is None and not desired.is_daemonset(pod)
        if before is None and phase == "Pending" and is_new:
            self._starting[uid] = self._shell.clock.steady()
        if before != phase:
            self._leave(before)
            self._shell.metrics.pods.labels(self._shell.node, phase).inc()
            self._phases[uid] = phase

    def observed(self, uid: PodUID, seen: Observation) -> None:
        """A backend shows the pod's instance: its first running container ends the start."""
        if uid in self._starting and any(isinstance(c.state, Running) for c in seen.containers):
            took = self._shell.clock.steady() - self._starting.pop(uid)
            self._shell.metrics.pod_start_seconds.labels(self._shell.node).observe(took)

    def held(self, uid: PodUID, is_held: bool) -> None:
        """Whether the pod's first verdict waits for a token."""
        if is_held == (uid in self._held):
            return
        if is_held:
            self._held.add(uid)
        else:
            self._held.discard(uid)
        self._show_held()

    def forget(self, uid: PodUID) -> None:
        """The pod is gone."""
        self._starting.pop(uid, None)
        self.held(uid, False)
        self._leave(self._phases.pop(uid, None))

    def _leave(self, phase: str | None) -> None:
        if phase is not None:
            self._shell.metrics.pods.labels(self._shell.node, phase).dec()

    def _show_held(self) -> None:
        gauge = self._shell.metrics.storm_guard_held_pods
        gauge.labels(self._shell.node).set(len(self._held))
