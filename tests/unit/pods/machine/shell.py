"""What ``loops`` does around the pure heart, without a loop: steps, tasks, answers, a restart.

Every rule that must hold after each step is asserted here, where the step is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.unit.pods.machine.api import TERMINAL, Api
from tests.unit.pods.machine.cloud import LAG, Cloud, Instance
from vk_provider.faults import OutcomeUnknownError
from vk_provider.node.door import Door, DoorLimits
from vk_provider.pods import actions as todo
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.lifecycle import decide
from vk_provider.pods.record import absorb, begin
from vk_provider.pods.slots import Record
from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import Candidate, Json, PodUID
from vk_provider.pods.world import BackendFacts, World

EPOCH = datetime(2024, 5, 1, 10, tzinfo=UTC)
MOST_TURNS = 8
BACKEND_ACTIONS = (todo.CreateInstance, todo.DeleteInstance, todo.DeleteExtra)


@dataclass
class Task:
    """An action under way; ``cancelled`` asks it to end without an answer from the backend.
    ``held``: it has happened, and its answer is on the way."""

    uid: PodUID
    action: todo.Action
    pod: Json | None
    cancelled: bool = False
    held: news.Stimulus | None = None


Outcome = Callable[["Shell", Task], news.Stimulus | None]


@dataclass
class Shell:
    """One process of the provider. A restart makes a new one over the same world."""

    api: Api
    clouds: dict[str, Cloud]
    now: datetime = EPOCH
    ended_is_free: bool = False
    records: dict[PodUID, Record] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    alarms: dict[PodUID, datetime] = field(default_factory=dict)
    seen: dict[PodUID, Json] = field(default_factory=dict)
    storm: StormGuard = field(default_factory=StormGuard)
    door: Door = field(default_factory=lambda: Door.over(["a", "b"], 8, DoorLimits(5, 20, 10)))

    @property
    def steady(self) -> float:
        """Seconds since the beginning."""
        return (self.now - EPOCH).total_seconds()

    def post(self, uid: PodUID, stimulus: news.Stimulus) -> None:
        """Take news of a pod, and make the step that follows."""
        record = self.records.get(uid)
        if record is None:
            if not isinstance(stimulus, news.PodSeen | news.Observed):
                return
            record = Record(uid, self.now)
        if isinstance(stimulus, news.Observed) and stimulus.observation.phase == "Running":
            self.storm.settle(uid)
        after = absorb(record, stimulus)
        assert after == absorb(record, stimulus)
        if record.may_exist and not after.may_exist:
            assert not self.unpaid(uid), "declared absent, and still there"
        self.records[uid] = after
        self.step(uid)

    def unpaid(self, uid: PodUID) -> list[Instance]:
        """What still bills for this pod."""
        return [one for cloud in self.clouds.values() for one in cloud.unpaid() if one.uid == uid]

    def step(self, uid: PodUID) -> None:
        """Decide and act until nothing is left to do without news."""
        for _ in range(MOST_TURNS):
            record = self.records.get(uid)
            if record is None:
                return
            wanted = decide(record, self.world(record))
            assert wanted == decide(record, self.world(record)), "the same facts, other actions"
            alarms = [action for action in wanted if isinstance(action, todo.WakeAt)]
            assert len(alarms) <= 1, "a pod has one timer"
            if alarms == wanted:
                self._set_alarm(uid, alarms)
                return
            for action in wanted:
                self._act(uid, action)
        raise AssertionError(f"no rest: {self.records[uid]}")

    def _set_alarm(self, uid: PodUID, alarms: list[todo.WakeAt]) -> None:
        for action in alarms:
            assert action.at > self.now, "a timer that never rests"
            self.alarms[uid] = action.at

    def _act(self, uid: PodUID, action: todo.Action) -> None:
        record = begin(self.records[uid], action)
        self.records[uid] = record
        owner = desired.owner_key(record.pod or {})
        match action:
            case todo.Conclude() | todo.Announce() | todo.Retry():
                self.records[uid] = absorb(record, self._at_once(record, action))
            case todo.WakeAt():
                self._set_alarm(uid, [action])
            case todo.Forget():
                self._forget(uid)
            case todo.Enter():
                self.storm.enter(owner, uid, self.steady)
            case todo.ReportShortage(backends, message, default_need):
                if default_need:
                    self.door.exhausted(backends or self.clouds, message, self.steady, 0.0)
            case _:
                self._start(uid, action, record)

    def _at_once(self, record: Record, action: todo.Action) -> news.Stimulus:
        if isinstance(action, todo.Announce):
            assert action.key not in record.announced, "an Event told twice"
            return news.Announced(frozenset({action.key}))
        if isinstance(action, todo.Conclude):
            if action.verdict.phase == "Failed":
                owner = desired.owner_key(record.pod or {})
                self.storm.charge(owner, record.uid, self.steady)
            return news.Concluded(action.verdict, self.now)
        return news.Retried()

    def _forget(self, uid: PodUID) -> None:
        rest = [one.action for one in self.tasks if one.uid == uid]
        assert set(map(type, rest)) <= {todo.RemovePod}, "forgotten while at work"
        assert not self.unpaid(uid), "forgotten while something bills"
        del self.records[uid]
        self.alarms.pop(uid, None)
        self.storm.settle(uid)

    def _start(self, uid: PodUID, action: todo.Action, record: Record) -> None:
        if isinstance(action, todo.CancelCreate):
            for task in self.tasks:
                task.cancelled |= task.uid == uid and isinstance(task.action, todo.CreateInstance)
            return
        if isinstance(action, BACKEND_ACTIONS):
            busy = [t for t in self.tasks if t.uid == uid and isinstance(t.action, BACKEND_ACTIONS)]
            assert not busy, f"{action} beside {busy}"
        if isinstance(action, todo.CreateInstance):
            assert action.resolved.stamp.pod_uid == uid
            assert record.pod is not None
            wanted = record.pod["spec"]["containers"][0]["image"]
            assert action.resolved.containers[0].image == wanted, "an old preparation"
            assert desired.placement(self.api.pods.get(uid, record.pod or {})) is not None
            self.door.entered(self.steady)
        if isinstance(action, todo.DeleteInstance | todo.DeleteExtra):
            owner = self.clouds[action.backend].instances[action.ref.id].uid
            assert owner == uid, "somebody else's instance"
        if isinstance(action, todo.RemovePod):
            assert not self.unpaid(uid), "the pod leaves before its instance"
        if isinstance(action, todo.WriteStatus):
            self._check_verdict(record, action)
        self.tasks.append(Task(uid, action, record.pod))

    def _check_verdict(self, record: Record, action: todo.WriteStatus) -> None:
        """A terminal phase comes after the instance, or after the time for that is up."""
        if action.patch.get("status", {}).get("phase") not in TERMINAL:
            return
        begun = record.verdict_at or self.now
        is_late = self.now >= begun + timedelta(seconds=300)
        left = [one for one in self.unpaid(record.uid) if one.is_live or not self.ended_is_free]
        assert is_late or not left, "Failed is written while something bills"

    def world(self, record: Record) -> World:
        """The view of one pod at this moment."""
        view, owner = self.door.view(self.steady), desired.owner_key(record.pod or {})

        def held_until() -> datetime | None:
            until = self.storm.held_until(owner, record.uid, self.steady)
            return None if until is None else EPOCH + timedelta(seconds=until)

        def cooled(candidate: Candidate) -> bool:
            return self.door.cooled(candidate.backend, candidate.offer.id, self.steady)

        facts = BackendFacts(ended_is_free=self.ended_is_free)
        return World(
            now=self.now,
            facts=dict.fromkeys(self.clouds, facts),
            held_until=held_until,
            refusal=lambda _: None,
            cooled=cooled,
            door_closed=None if view.closed is None else str(view.closed),
            headroom=view.headroom,
            host_ip="10.0.0.9",
        )

    def deliver(self) -> None:
        """One event of the watch arrives."""
        uid, pod = self.api.undelivered.pop(0)
        if pod is None:
            self.seen.pop(uid, None)
            self.post(uid, news.PodGone())
        else:
            self.seen[uid] = pod
            self.post(uid, news.PodSeen(pod))

    def hand_out(self, cloud: Cloud, started_at: datetime, shown: list[news.Observed]) -> None:
        """A complete list reaches the pods: what it shows, and what it does not."""
        for seen in shown:
            self.post(seen.observation.stamp.pod_uid, seen)
        found = {seen.observation.stamp.pod_uid for seen in shown}
        miss = news.Missed(cloud.name, started_at, LAG.total_seconds())
        for uid, record in list(self.records.items()):
            if uid not in found and record.backend == cloud.name and record.may_exist:
                self.post(uid, miss)

    def take_list(self, cloud: Cloud, slip: int | None = None) -> list[news.Observed]:
        """Group a list by pod: one instance is the pod's, others are doubles. A ``slip`` leaves
        one out that nobody ordered to end, once in a while."""
        groups: dict[PodUID, list[news.Observed]] = {}
        for number, seen in enumerate(cloud.shown(self.now)):
            known = self.records.get(seen.stamp.pod_uid)
            if number == slip and known and known.deleted_at is None and not known.missed_at:
                continue
            lag = LAG.total_seconds()
            groups.setdefault(seen.stamp.pod_uid, []).append(
                news.Observed(cloud.name, seen, self.now, lag)
            )
        return [
            news.Observed(
                first.backend,
                first.observation,
                first.at,
                first.list_lag_seconds,
                tuple(one.observation.ref for one in rest),
            )
            for first, *rest in groups.values()
        ]

    def ring(self) -> None:
        """Alarms that are due go off; the door may have opened meanwhile."""
        for uid, at in list(self.alarms.items()):
            if at <= self.now:
                del self.alarms[uid]
                self.post(uid, news.Woken())

    def finish(self, task: Task, outcome: Outcome, *, hold: bool = False) -> None:
        """A task happens, and its answer comes at once or later."""
        stimulus = task.held or outcome(self, task)
        if hold and task.held is None and stimulus is not None:
            task.held = stimulus
            return
        self.tasks.remove(task)
        if stimulus is not None:
            self.post(task.uid, stimulus)


def cancelled(shell: Shell, task: Task) -> news.Stimulus:
    """The answer of a create that was cancelled."""
    assert isinstance(task.action, todo.CreateInstance)
    shell.door.left()
    fault = OutcomeUnknownError("the create call was cancelled")
    return news.CreateFailed(task.action.candidate, fault, shell.now)
