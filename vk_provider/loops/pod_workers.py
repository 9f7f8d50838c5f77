"""One serial worker per pod UID: news in, pure decision, actions out. Decides nothing itself.

A step is synchronous (absorb, decide, begin), so steps of one pod never overlap; what takes time
runs as a task and answers with a stimulus. Pods run in parallel; a pod at rest costs nothing.
Fed by ``kube.cache`` (pods), ``loops.relist`` (observations) and its own tasks; its actions go to
``loops.pod_actions``, which speaks to backends and the API server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.faults import InvalidTransitionError
from vk_provider.loops.admitted import Admitted
from vk_provider.loops.pod_actions import PodActions
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods import actions as todo
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.admission import Refusal
from vk_provider.pods.lifecycle import decide, state
from vk_provider.pods.record import Record, absorb, begin, tell
from vk_provider.pods.types import InstancePhase, Json, PodUID, Verdict
from vk_provider.pods.world import BackendFacts, LifecycleLimits, World

logger = logging.getLogger(__name__)

MAX_TURNS = 12
"""Decisions within one step: each immediate answer brings one more. More is a loop, our bug."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is true of the node as a whole, for every pod's world."""

    name: str
    backends: Mapping[str, BackendFacts]
    refusal: Callable[[Json], Refusal | None]
    admitted: Admitted
    host_ip: str | None = None
    direct: bool = False
    limits: LifecycleLimits = field(default_factory=LifecycleLimits)


class PodWorkers:
    """The records of all pods of one node, and the steps that move them on."""

    def __init__(
        self, facts: NodeFacts, threshold: Threshold, acts: PodActions, shell: Shell
    ) -> None:
        self.records: dict[PodUID, Record] = {}
        self._facts = facts
        self._threshold = threshold
        self._acts = acts
        self._shell = shell
        self._due: set[PodUID] = set()
        self._timers: dict[PodUID, asyncio.TimerHandle] = {}
        self._complete = False
        threshold.subscribe(self.look_again)

    def pod_changed(self, uid: PodUID, pod: Json | None) -> None:
        """The pod cache has a new version, or none any more."""
        if pod is not None:
            self.post(uid, news.PodSeen(pod))
        elif uid in self.records:
            self.post(uid, news.PodGone())

    def intake_complete(self) -> None:
        """Every pod of the first complete view was handed in: absence means something now."""
        self._complete = True

    def references_changed(self, uids: Iterable[PodUID]) -> None:
        """A ConfigMap or Secret of these pods has changed."""
        for uid in uids:
            if uid in self.records:
                self.post(uid, news.PreparationStale())

    def post(self, uid: PodUID, stimulus: news.Stimulus) -> None:
        """Take news of a pod; the step follows as soon as the loop turns."""
        record = self.records.get(uid)
        if record is None:
            if not isinstance(stimulus, news.PodSeen | news.Observed):
                return  # an answer for a pod that was forgotten meanwhile
            record = Record(uid, self._shell.clock.now())
        self.records[uid] = absorb(record, stimulus)
        self._keep_accounts(uid, stimulus)
        self._schedule(uid)

    def look_again(self) -> None:
        """The door has changed: pods without an instance, and ends that waited for it, look."""
        for uid, record in self.records.items():
            if record.ref is None:
                self._schedule(uid)

    def _keep_accounts(self, uid: PodUID, stimulus: news.Stimulus) -> None:
        match stimulus:
            case news.Observed(observation=seen) if seen.phase is InstancePhase.RUNNING:
                self._threshold.storm.settle(uid)
            case news.PodSeen(pod) if desired.is_terminal(pod):
                self._facts.admitted.remove(uid)
            case news.PodSeen(pod) if desired.placement(pod) is not None:
                self._facts.admitted.add(uid, pod)

    def _schedule(self, uid: PodUID) -> None:
        if uid not in self._due:
            self._due.add(uid)
            asyncio.get_running_loop().call_soon(self._step, uid)

    def _step(self, uid: PodUID) -> None:
        self._due.discard(uid)
        for _ in range(MAX_TURNS):
            record = self.records.get(uid)
            if record is None or not self._shell.may_act():
                return
            if not self._turn(record):
                return
        self._invalid(uid, "decisions do not come to rest")

    def _turn(self, record: Record) -> bool:
        """One decision and its actions; True if one of them was answered at once."""
        again = False
        for action in decide(record, self._world(record)):
            current = self.records.get(record.uid)
            if current is None:
                return False
            current = tell(begin(current, action), f"{state(record)}: {type(action).__name__}")
            self.records[record.uid] = current
            again = self._perform(current, action) or again
        return again

    def _perform(self, record: Record, action: todo.Action) -> bool:
        """Carry an action out; True if it was answered at once."""
        uid = record.uid
        match action:
            case todo.Conclude(verdict):
                return self._conclude(record, verdict)
            case todo.Announce(key, notice):
                self._acts.announce(record, notice)
                return self._answer(uid, news.Announced(frozenset({key})))
            case todo.Retry():
                return self._answer(uid, news.Retried())
            case todo.WakeAt(at):
                self._wake(uid, at)
            case todo.Forget():
                self._forget(uid)
            case todo.Enter() | todo.ReportShortage():
                self._tell_threshold(record, action)
            case _:
                if isinstance(action, todo.Prepare) and record.pod is not None:
                    self._facts.admitted.add(uid, record.pod)  # it has passed the admission gate
                self._acts.begin(record, action, self.post)
        return False

    def _conclude(self, record: Record, verdict: Verdict) -> bool:
        if verdict.phase == "Failed" and record.pod is not None:
            self._threshold.charge(desired.owner_key(record.pod), record.uid)
        if verdict.reason is not None:
            self._shell.metrics.failed_verdicts.labels(self._facts.name, verdict.reason).inc()
        return self._answer(record.uid, news.Concluded(verdict, self._shell.clock.now()))

    def _tell_threshold(self, record: Record, action: todo.Enter | todo.ReportShortage) -> None:
        if isinstance(action, todo.Enter):
            self._threshold.enter(desired.owner_key(record.pod or {}), record.uid)
        elif action.default_need:
            self._threshold.exhausted(action.backends or self._facts.backends, action.message)

    def _answer(self, uid: PodUID, stimulus: news.Stimulus) -> bool:
        self.records[uid] = absorb(self.records[uid], stimulus)
        return True

    def _wake(self, uid: PodUID, at: datetime) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        delay = max(0.05, (at - self._shell.clock.now()).total_seconds())
        loop = asyncio.get_running_loop()
        self._timers[uid] = loop.call_later(delay, self.post, uid, news.Woken())

    def _forget(self, uid: PodUID) -> None:
        del self.records[uid]
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        self._threshold.storm.settle(uid)
        self._facts.admitted.remove(uid)
        self._acts.forget(uid)

    def _invalid(self, uid: PodUID, sentence: str) -> None:
        record = self.records[uid]
        fault = InvalidTransitionError(f"pod {uid}: {sentence}", record.story)
        self._shell.metrics.invalid_transitions.labels(self._facts.name).inc()
        logger.error("%s; the last steps were: %s", fault, " | ".join(fault.story))

    def _world(self, record: Record) -> World:
        view = self._threshold.view()
        owner = desired.owner_key(record.pod) if record.pod is not None else ""
        return World(
            now=self._shell.clock.now(),
            facts=self._facts.backends,
            held_until=lambda: self._threshold.held_until(owner, record.uid),
            refusal=self._facts.refusal,
            cooled=self._threshold.cooled,
            door_closed=f"{view.closed}: {view.message}" if view.closed is not None else None,
            headroom=view.headroom,
            door_published=self._threshold.published,
            synced=self._complete,
            host_ip=self._facts.host_ip,
            direct=self._facts.direct,
            limits=self._facts.limits,
        )

    def close(self) -> None:
        """Stop all timers; records stay as they are for whoever asks."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
