"""The books kept over all pods: who holds capacity, who has spent tokens, who costs money.

Pods are judged one by one; what they share is reckoned here, in the same step.
Fed by ``loops.pod_workers``; writes to ``loops.admitted``, ``loops.threshold`` and the metrics.
"""

from __future__ import annotations

from datetime import datetime

from vk_provider.loops.admitted import Admitted
from vk_provider.loops.pace import Pace
from vk_provider.loops.pod_gauges import PodGauges
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods import actions as todo
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.events import FailedReason, counted
from vk_provider.pods.slots import Record
from vk_provider.pods.types import InstancePhase, PodUID, Verdict


class PodAccounts:
    """One set of books per node."""

    def __init__(self, admitted: Admitted, threshold: Threshold, pace: Pace, shell: Shell) -> None:
        self._admitted = admitted
        self._threshold = threshold
        self._pace = pace
        self._shell = shell
        self._gauges = PodGauges(shell)

    def note(self, record: Record, stimulus: news.Stimulus) -> None:
        """News of a pod, as it was absorbed."""
        uid = record.uid
        match stimulus:
            case news.Observed(backend=backend, observation=seen):
                self._threshold.experience.observed(uid, record.pod, backend, seen)
                self._gauges.observed(uid, seen)
                if seen.phase is InstancePhase.RUNNING:
                    self._pace.settle(uid)
            case news.PodSeen(pod):
                self._threshold.experience.seen(pod)
                self._gauges.seen(uid, pod)
                if desired.is_terminal(pod):
                    self._admitted.remove(uid)
                    self._threshold.spending.release(uid)
                    self._threshold.experience.over(uid)
                    self._gauges.held(uid, False)
                elif desired.placement(pod) is not None:
                    self._admitted.add(uid, pod)

    def held_until(self, record: Record) -> datetime | None:
        """Until when the storm guard holds this pod's first verdict."""
        until = self._pace.held_until(desired.owner_key(record.pod or {}), record.uid)
        self._gauges.held(record.uid, until is not None)
        return until

    def prepare(self, record: Record) -> None:
        """The pod has passed the admission gate and holds its share from now on."""
        if record.pod is not None:
            self._admitted.add(record.uid, record.pod)

    def enter(self, record: Record) -> None:
        """A first verdict begins: a create."""
        self._pace.enter(desired.owner_key(record.pod or {}), record.uid)

    def conclude(self, record: Record, verdict: Verdict) -> None:
        """The pod's end is decided; its owner is charged for a failure."""
        if verdict.phase == "Failed" and record.pod is not None:
            self._pace.charge(desired.owner_key(record.pod), record.uid)
        reason, backend = verdict.reason, record.backend
        is_loss = reason in (FailedReason.PROVIDER_LOST, FailedReason.PREEMPTED)
        if is_loss and backend is not None and record.uid not in self._threshold.spending.dismissed:
            self._threshold.experience.lost(record.uid, backend, record.observation)
        if verdict.reason is not None:
            verdicts = self._shell.metrics.failed_verdicts
            verdicts.labels(self._shell.node, counted(verdict.reason)).inc()

    def shortage(
        self, record: Record, action: todo.ReportShortage, backends: tuple[str, ...]
    ) -> None:
        """A pod found nothing. ``backends`` are all of the node's: what an answer of no offer at
        all is about."""
        if not action.default_need:
            return
        candidates = record.prepared.candidates if record.prepared is not None else ()
        spent = record.tried | record.rejected
        left = [each for each in candidates if each not in spent]
        namespace = str((record.pod or {}).get("metadata", {}).get("namespace", ""))
        self._threshold.exhausted(action.backends or backends, action.message, left, namespace)

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self._pace.settle(uid)
        self._threshold.spending.release(uid)
        self._threshold.experience.over(uid)
        self._admitted.remove(uid)
        self._gauges.forget(uid)
