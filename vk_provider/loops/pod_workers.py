"""One serial worker per pod UID: news in, pure decision, actions out. Decides nothing itself.

A step is synchronous (absorb, decide, begin), so steps of one pod never overlap; what takes time
runs as a task and answers with a stimulus. Pods run in parallel; a pod at rest costs nothing.
Fed by ``kube.cache`` (pods), ``loops.relist`` (observations) and its own tasks; its actions go to
``loops.pod_actions``, which speaks to backends and the API server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from vk_provider.faults import InvalidTransitionError
from vk_provider.loops.alarms import Alarms
from vk_provider.loops.guarded import Guarded
from vk_provider.loops.pace import Pace
from vk_provider.loops.pod_accounts import PodAccounts
from vk_provider.loops.pod_actions import PodActions
from vk_provider.loops.pod_world import NodeFacts, Surroundings
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.loops.turns import Turns
from vk_provider.pods import actions as todo
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.lifecycle import decide, state
from vk_provider.pods.record import absorb, begin, tell
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import Json, PodUID

logger = logging.getLogger(__name__)

MAX_TURNS = 12
"""Decisions within one step: each immediate answer brings one more. More is a loop, our bug."""
_MAY_WAIT = (Existence.NONE, Existence.ABSENT)
"""Pods that have no instance: they wait for the door, or for its being published."""


class PodWorkers:
    """The records of all pods of one node, and the steps that move them on."""

    def __init__(
        self,
        facts: NodeFacts,
        threshold: Threshold,
        pace: Pace,
        acts: PodActions,
        shell: Shell,
    ) -> None:
        self.records: dict[PodUID, Record] = {}
        self.ready = asyncio.Event()
        """Set once every pod of the first complete view was handed in."""
        self._backends = tuple(facts.backends)
        self._acts = acts
        self._shell = shell
        self._accounts = PodAccounts(facts.admitted, threshold, pace, shell)
        self.surroundings = Surroundings(facts, threshold, self._accounts, shell)
        self._alarms = Alarms(shell.clock, lambda uid: self.post(uid, news.Woken()))
        self._turns = Turns(self._step)
        self._guarded = Guarded(shell, self._alarms, self.records)
        self._at_rest: set[PodUID] = set()
        """Pods whose last step found nothing to do and was not cut short."""
        threshold.board.subscribe(self._turns.look_again)

    def pod_changed(self, uid: PodUID, pod: Json | None) -> None:
        """The pod cache has a new version, or none any more."""
        if pod is not None:
            self.post(uid, news.PodSeen(pod))
            record = self.records.get(uid)
            if record is not None and desired.is_terminal(pod) and not record.preparing:
                self._acts.over(uid)
        elif uid in self.records:
            self.post(uid, news.PodGone())

    def intake_complete(self) -> None:
        """Every pod of the first complete view was handed in: absence means something now."""
        self.surroundings.is_synced = True
        self.ready.set()

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
        known = self._guarded.attempt(record, "Absorb", partial(absorb, record, stimulus))
        if known is None:
            return
        self.records[uid] = known
        self._guarded.attempt(known, "Note", partial(self._accounts.note, known, stimulus))
        if uid in self._at_rest and _shows_the_same(record, self.records[uid], stimulus):
            return  # every list shows every pod: those that run must not be decided anew each time
        self._at_rest.discard(uid)
        self._turns.schedule(uid)

    def close(self) -> None:
        """Stop all timers; records stay as they are for whoever asks."""
        self._alarms.close()

    def _step(self, uid: PodUID) -> None:
        record = self.records.get(uid)
        if record is not None:
            self._guarded.attempt(record, "Decide", partial(self._take_turns, uid))
        now = self.records.get(uid)
        self._turns.waits(uid, now is not None and now.pod is not None and now.exists in _MAY_WAIT)

    def _take_turns(self, uid: PodUID) -> None:
        for _ in range(MAX_TURNS):
            record = self.records.get(uid)
            if record is None or not self._shell.may_act():
                return
            if not self._turn(record):
                if uid in self.records:
                    self._at_rest.add(uid)
                return
        story = self.records[uid].story
        raise InvalidTransitionError("its decisions do not come to rest", story)

    def _turn(self, record: Record) -> bool:
        """One decision and its actions; True if one of them was answered at once."""
        again = False
        for action in decide(record, self.surroundings.world(record)):
            current = self.records.get(record.uid)
            if current is None:
                return False
            sentence = f"{state(record)}: {type(action).__name__}"
            logger.debug("pod %s: %s", record.uid, sentence)
            current = tell(begin(current, action), sentence)
            self.records[record.uid] = current
            answer = self._perform(current, action)
            if answer is not None:
                self.records[record.uid] = absorb(self.records[record.uid], answer)
                again = True
        return again

    def _perform(self, record: Record, action: todo.Action) -> news.Stimulus | None:
        """Carry an action out; its answer, if it is known at once."""
        match action:
            case todo.Conclude(verdict):
                self._accounts.conclude(record, verdict)
                return news.Concluded(verdict, self._shell.clock.now())
            case todo.Announce(key, notice):
                self._acts.announce(record, notice)
                return news.Announced(frozenset({key}))
            case todo.Retry():
                return news.Retried()
        self._begin(record, action)
        return None

    def _begin(self, record: Record, action: todo.Action) -> None:
        match action:
            case todo.WakeAt(at):
                self._alarms.set(record.uid, at)
            case todo.Forget():
                self._forget(record.uid)
            case todo.Enter():
                self._accounts.enter(record)
            case todo.ReportShortage():
                self._accounts.shortage(record, action, self._backends)
            case _:
                if isinstance(action, todo.Prepare):
                    self._accounts.prepare(record)
                self._acts.begin(record, action, self.post)

    def _forget(self, uid: PodUID) -> None:
        del self.records[uid]
        self._at_rest.discard(uid)
        self._guarded.forget(uid)
        self._alarms.drop(uid)
        self._accounts.forget(uid)
        self._acts.forget(uid)


def _shows_the_same(before: Record, now: Record, stimulus: news.Stimulus) -> bool:
    """Whether a list only said again that a pod's instance is there, as it was. What becomes due
    by time has its alarm, and a pod on its way out looks at every list."""
    return (
        isinstance(stimulus, news.Observed)
        and before.pod is not None
        and (before.verdict, before.deleted_at, before.missed_at) == (None, None, None)
        and not (before.gone or now.extras or before.extras)
        and (before.exists, now.exists) == (Existence.PRESENT, Existence.PRESENT)
        and (before.backend, before.ref, before.observation)
        == (now.backend, now.ref, now.observation)
    )
