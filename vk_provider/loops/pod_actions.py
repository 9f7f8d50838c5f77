"""Carries out what a pod's step decided: each action is a task, and answers exactly once.

The answer is given when the task has ended, however it ended: also one that was cancelled before
its first step, or that failed by a bug (ours or a provider's). A bug parks that pod alone; it is
told once with the pod's story and tried again ever more rarely.
Fed by ``loops.pod_workers``; what is done is in ``loops.instance_calls`` and ``loops.pod_writes``.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any

from vk_provider.faults import OutcomeUnknownError
from vk_provider.loops.instance_calls import InstanceCalls
from vk_provider.loops.means import RETRY_SECONDS, Means, Post, Work
from vk_provider.loops.parking import Parking
from vk_provider.loops.pod_writes import PodWrites
from vk_provider.loops.rollouts import Rollouts
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.desired import full_name
from vk_provider.pods.events import WaitingReason
from vk_provider.pods.slots import Record
from vk_provider.pods.types import Candidate, PodUID, Waiting

logger = logging.getLogger(__name__)


class PodActions:
    """The hands of the pod workers."""

    def __init__(self, means: Means, threshold: Threshold, shell: Shell) -> None:
        self._means = means
        self._threshold = threshold
        self._shell = shell
        self._creates: dict[PodUID, asyncio.Task[Any]] = {}
        self._parking = Parking(shell)
        self._writes = PodWrites(means, shell)
        self._rollouts = Rollouts(means.client, threshold.experience, means.events.emit, shell)
        calls = InstanceCalls(means, shell)
        self._works: dict[type, Work] = {
            todo.Prepare: self._writes.prepare,
            todo.WriteStatus: self._writes.write,
            todo.CheckOrphan: self._writes.check_orphan,
            todo.RemovePod: self._writes.remove,
            todo.CreateInstance: calls.create,
            todo.DeleteInstance: calls.delete,
            todo.DeleteExtra: calls.delete_extra,
        }

    def announce(self, record: Record, notice: news.Notice) -> None:
        """Queue an Event about the pod."""
        if record.pod is None:
            return
        self._means.events.emit(record.pod, notice.type, notice.reason, notice.message)
        logger.info("pod %s: %s: %s", full_name(record.pod), notice.reason, notice.message)

    def over(self, uid: PodUID) -> None:
        """The pod has ended: what it referred to need not be watched any more."""
        self._means.preparer.release(uid)

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self.over(uid)
        self._means.kept_logs.drop(uid)
        self._writes.forget(uid)
        self._parking.forget(uid)

    def begin(self, record: Record, action: todo.Action, post: Post) -> None:
        """Start an action; ``post`` gets its answer."""
        uid = record.uid
        if isinstance(action, todo.CancelCreate):
            task = self._creates.get(uid)
            if task is not None:
                task.cancel()
            return
        if isinstance(action, todo.CreateInstance):
            # At once, not when the task begins: the next pod's step comes before that.
            namespace = action.resolved.stamp.namespace
            self._threshold.create_begins(uid, namespace, action.candidate)
            self._rollouts.starting(record.pod or {}, action.candidate)
        task = self._shell.spawn(
            self._works[type(action)](record, action, post),
            f"{type(action).__name__} {uid}",
            lambda ended: self._ended(record, action, post, ended),
        )
        if isinstance(action, todo.CreateInstance):
            self._creates[uid] = task

    def _ended(
        self, record: Record, action: todo.Action, post: Post, task: asyncio.Task[Any]
    ) -> None:
        fault = asyncio.CancelledError() if task.cancelled() else task.exception()
        if fault is None:
            answer: news.Stimulus | None = task.result()
        else:
            answer = self._excuse(record, action, post, fault)
        if isinstance(action, todo.CreateInstance):
            self._creates.pop(record.uid, None)
            self._settle(record, action.candidate, answer)
        self._reckon(record, action, answer)
        if answer is not None:
            post(record.uid, answer)

    def _settle(self, record: Record, candidate: Candidate, answer: news.Stimulus | None) -> None:
        """The door hears what became of a create."""
        if not isinstance(answer, news.CreateFailed):
            self._threshold.created(candidate)
            return
        self._threshold.create_failed(record.uid, candidate, answer.fault)
        logger.info(
            "pod %s: backend %s: %s: %s",
            full_name(record.pod or {}), candidate.backend, answer.fault.reason, answer.fault,
        )  # fmt: skip

    def _reckon(self, record: Record, action: todo.Action, answer: news.Stimulus | None) -> None:
        """Meters run from a create's answer to the acknowledged end."""
        spending = self._threshold.spending
        match action, answer:
            case todo.CreateInstance(resolved, candidate), news.Created(ref=ref):
                spending.created(record.uid, resolved.stamp.namespace, candidate, ref)
            case todo.DeleteInstance(backend, ref), news.Deleted():
                spending.ended(backend, ref)
            case todo.DeleteExtra(backend, ref), news.ExtraDeleted():
                spending.ended(backend, ref)

    def _excuse(
        self, record: Record, action: todo.Action, post: Post, fault: BaseException
    ) -> news.Stimulus:
        """The answer of an action that gave none itself: what it did is unknown."""
        if isinstance(fault, asyncio.CancelledError):
            words, seconds = "the call was cancelled", RETRY_SECONDS
        else:
            words = f"internal error: {type(fault).__name__}; see the log"
            seconds = self._parking.park(record, type(action).__name__, fault)
        again = self._later(seconds)
        match action:
            case todo.CreateInstance(candidate=candidate):
                now = self._shell.clock.now()
                return news.CreateFailed(candidate, OutcomeUnknownError(words), now)
            case todo.DeleteInstance() | todo.DeleteExtra():
                return news.DeleteFailed(words, again)
            case todo.WriteStatus():
                return news.StatusWritten(None, retry_at=again)
            case todo.RemovePod():
                return news.RemovalFailed(again)
            case todo.CheckOrphan():
                return news.OrphanChecked(exists=True)
        stale = news.PreparationStale()
        asyncio.get_running_loop().call_later(seconds, post, record.uid, stale)
        waiting = Waiting(str(WaitingReason.PROVIDER_UNAVAILABLE), words)
        return news.Prepared(missing=waiting)

    def _later(self, seconds: float) -> datetime:
        return self._shell.clock.now() + timedelta(seconds=seconds)
