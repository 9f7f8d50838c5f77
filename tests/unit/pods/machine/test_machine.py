"""The lifecycle in a world that lags, loses, repeats, refuses and restarts (hypothesis).

At most one instance per pod lives at any time, a terminal phase is final, nobody else's instance
is touched, deciding twice adds nothing, timers lie in the future; and when the world turns fair,
every deleted pod leaves the API and nothing is left that bills.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from tests.unit.pods.machine.answers import answer
from tests.unit.pods.machine.api import TERMINAL, Api
from tests.unit.pods.machine.cloud import LAG, Cloud, Instance
from tests.unit.pods.machine.shell import Shell, Task
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.actions import CreateInstance
from vk_provider.pods.types import EndCause, PodUID, Stamp

T = TypeVar("T")

MOST_PODS = 3
OUTCOMES = st.sampled_from(
    ["well", "well", "well", "unheard", "unknown", "full", "denied", "rejected"]
)
INDEX = st.integers(0, 5)
PODS = st.tuples(
    st.sampled_from(["good", "good", "good", "good", "good", "unsupported", "incomplete"]),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(["StatefulSet", "StatefulSet", "Job", "Job", "DaemonSet", None]),
)


@dataclass
class TakenList:
    """A list on its way, or kept to arrive once more, late."""

    cloud: Cloud
    at: datetime
    shown: list[news.Observed]


def make_pod(number: int, kind: str, policy: str, owner: str | None) -> dict[str, Any]:
    """A bound pod; its label ``kind`` says how its preparation ends."""
    owners = [{"kind": owner, "name": f"{owner.lower()}-x", "controller": True}] if owner else []
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": "ns",
            "uid": f"uid-{number}",
            "labels": {"kind": kind},
            "ownerReferences": owners,
        },
        "spec": {"restartPolicy": policy, "containers": [{"name": "main", "image": "img:1"}]},
        "status": {"phase": "Pending"},
    }


class Lifecycle(RuleBasedStateMachine):
    """Rules are what people, the API server, the backends and the network may do."""

    def __init__(self) -> None:
        super().__init__()
        self.api = Api()
        self.clouds = {name: Cloud(name) for name in ("a", "b")}
        self.shell = Shell(self.api, self.clouds)
        self.lists: list[TakenList] = []
        self.born = 0

    @initialize(
        ended_is_free=st.booleans(),
        pods=st.lists(PODS, min_size=1, max_size=2),
        progress=st.integers(0, 8),
        outcome=OUTCOMES,
    )
    def begin(
        self,
        ended_is_free: bool,
        pods: list[tuple[str, str, str | None]],
        progress: int,
        outcome: str,
    ) -> None:
        self.shell.ended_is_free = ended_is_free
        for pod in pods:
            self.create_pod(*pod)
        self.goes_on(progress, outcome)

    # people

    def create_pod(self, kind: str, policy: str, owner: str | None) -> None:
        """A controller makes a pod and the scheduler binds it."""
        if self.born < MOST_PODS:
            self.api.add(make_pod(self.born, kind, policy, owner))
            self.born += 1

    @rule(
        deed=st.sampled_from(["create", "create", "create", "create", "edit", "delete"]),
        index=INDEX,
        grace=st.sampled_from([30, 30, 2, 0]),
        pod=PODS,
    )
    def somebody_acts(
        self, deed: str, index: int, grace: int, pod: tuple[str, str, str | None]
    ) -> None:
        if deed == "create" or not self.api.pods:
            self.create_pod(*pod)
        elif uid := pick(list(self.api.pods), index):
            if deed == "delete":
                self.api.delete(uid, grace)
            else:
                self.api.edit(uid, f"img:{self.api.version}")

    # the network and time

    @rule(seconds=st.sampled_from([1, 3, 6, 6, 20, 200]))
    def time_passes(self, seconds: int) -> None:
        self.shell.now += timedelta(seconds=seconds)
        self.shell.ring()

    @rule(
        events=st.integers(0, 3),
        index=INDEX,
        outcome=OUTCOMES,
        lateness=st.integers(0, 5),
        hold=st.booleans(),
    )
    def a_task_ends(self, events: int, index: int, outcome: str, lateness: int, hold: bool) -> None:
        for _ in range(min(events, len(self.api.undelivered))):
            self.shell.deliver()
        if task := pick(self.shell.tasks, index):
            how = partial(ends, outcome, lateness)
            self.shell.finish(task, how, hold=hold)

    @rule(progress=st.integers(1, 8), outcome=OUTCOMES)
    def goes_on(self, progress: int, outcome: str) -> None:
        """The watch is prompt, and so many tasks end: creates like this, all others well."""
        while self.api.undelivered:
            self.shell.deliver()
        for _ in range(progress):
            if self.shell.tasks:
                task = self.shell.tasks[0]
                how = outcome if isinstance(task.action, CreateInstance) else "well"
                self.shell.finish(task, partial(ends, how, 1))
            while self.api.undelivered:
                self.shell.deliver()

    @rule(stale=st.booleans(), index=INDEX)
    def is_told_again(self, stale: bool, index: int) -> None:
        """The watch repeats itself, or something a pod refers to has changed."""
        uid = pick(list(self.shell.records), index)
        if uid is not None and stale:
            self.shell.post(uid, news.PreparationStale())
        elif uid in self.shell.seen:
            self.shell.post(uid, news.PodSeen(self.shell.seen[uid]))

    @rule(
        name=st.sampled_from(["a", "a", "b"]),
        arrives=st.booleans(),
        later=st.booleans(),
        slip=st.sampled_from([None, None, 0, 1]),
    )
    def list_is_taken(self, name: str, arrives: bool, later: bool, slip: int | None = None) -> None:
        if later:
            self.time_passes(int(LAG.total_seconds()) + 1)
        cloud = self.clouds[name]
        shown = self.shell.take_list(cloud, slip if arrives else None)
        taken = TakenList(cloud, self.shell.now, shown)
        self.lists = [*self.lists[-3:], taken]
        if arrives:
            self.shell.hand_out(cloud, taken.at, taken.shown)

    @rule(index=INDEX)
    def old_list_arrives(self, index: int) -> None:
        """Late, out of order, or once more."""
        if taken := pick(self.lists, index):
            self.shell.hand_out(taken.cloud, taken.at, taken.shown)

    @rule(count=INDEX, outcome=OUTCOMES)
    def restart(self, count: int, outcome: str) -> None:
        """Kill -9: what was under way has happened or not, and nobody hears of it."""
        old = self.shell
        for task in [one for one in old.tasks if one.held is None][: count or None]:
            answer(old, task, outcome, count)
        self.lists.clear()
        self.api.undelivered[:] = list(self.api.pods.items())
        self.shell = Shell(self.api, self.clouds, old.now, old.ended_is_free)
        while self.api.undelivered and count:
            self.shell.deliver()

    # the backends

    @rule(
        what=st.sampled_from(["runs", "runs", "ends", "vanishes", "left over"]),
        index=INDEX,
        code=st.sampled_from([0, 0, 1, None]),
        cause=st.sampled_from([None, None, None, EndCause.PREEMPTED, EndCause.IMAGE]),
    )
    def backend_acts(self, what: str, index: int, code: int | None, cause: EndCause | None) -> None:
        if what == "left over":
            self._leave_something_over()
        elif one := pick(self._unpaid(), index):
            self.list_is_taken(one.cloud, index > 0, True)
            cloud, ref = self.clouds[one.cloud], one.observation.ref.id
            if what == "vanishes":
                one.gone_at = self.shell.now
            elif what == "ends":
                cloud.exit(ref, code, cause)
            elif one.is_live:
                cloud.run(ref)
            self.list_is_taken(one.cloud, index > 1, index > 2)

    def _leave_something_over(self) -> None:
        """An instance of ours whose pod nobody remembers."""
        stamp = Stamp("c", "burst", "ns", "old", PodUID("uid-old"))
        if not any(one.uid == stamp.pod_uid for one in self._unpaid()):
            self.clouds["b"].create(stamp, self.shell.now, 0)

    def _unpaid(self) -> list[Instance]:
        return [one for cloud in self.clouds.values() for one in cloud.unpaid()]

    @invariant()
    def one_live_instance_per_pod(self) -> None:
        live = [one.uid for one in self._unpaid() if one.is_live]
        assert len(live) == len(set(live)), f"a double: {live}"

    def teardown(self) -> None:
        """The world turns fair; what must end ends."""
        self._live_fairly(40)
        for uid, pod in self.api.pods.items():
            assert not desired.is_terminating(pod), f"stuck in Terminating: {pod}"
            self._has_what_it_needs(uid)
        for uid in list(self.api.pods):
            self.api.delete(uid, 30)
        self._live_fairly(30)
        assert not self.api.pods
        assert not self._unpaid()
        assert not self.shell.records

    def _has_what_it_needs(self, uid: PodUID) -> None:
        pod = self.api.pods[uid]
        phase, kind = desired.phase(pod), pod["metadata"]["labels"]["kind"]
        count = sum(one.uid == uid for one in self._unpaid())
        assert count == (phase == "Running"), f"{phase} with {count} instances"
        if phase not in TERMINAL and kind == "good" and not desired.is_daemonset(pod):
            assert phase == "Running", f"{self.shell.records[uid]}"

    def _live_fairly(self, rounds: int) -> None:
        for _ in range(rounds):
            self._settle()
            for cloud in self.clouds.values():
                for one in cloud.unpaid():
                    if one.is_live:
                        cloud.run(one.observation.ref.id)
                self.shell.hand_out(cloud, self.shell.now, self.shell.take_list(cloud))
            self._settle()
            self.shell.now += LAG * 3
            self.shell.ring()
            for uid in list(self.shell.records):
                self.shell.step(uid)  # the door may have opened

    def _settle(self) -> None:
        for _ in range(100):
            if self.api.undelivered:
                self.shell.deliver()
            elif self.shell.tasks:
                self.shell.finish(self.shell.tasks[0], well)
            else:
                return
        raise AssertionError("the world does not come to rest")


def pick(items: list[T], index: int) -> T | None:
    """One of them, if there are any."""
    return items[index % len(items)] if items else None


def ends(how: str, lateness: int, shell: Shell, task: Task) -> news.Stimulus | None:
    """The task ends like this."""
    return answer(shell, task, how, lateness)


def well(shell: Shell, task: Task) -> news.Stimulus | None:
    """Everything works."""
    return answer(shell, task, "well", 0)


Lifecycle.TestCase.settings = settings(
    derandomize=True, max_examples=20, stateful_step_count=50, deadline=None
)
TestLifecycle = Lifecycle.TestCase
