"""The judge of the story: a sentence holds where it should, and fails where a fault is planted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import judge
from tests.story.history import EVICTED, PREEMPTED, History

HOME, OUT = "home-1", "a100"
BILL: dict[str, Any] = {"usd": 1.5, "open": [], "doubleBilled": [], "now": 50.0, "clock": 150.0}


class Told(History):
    """A history that tests tell in short words."""

    def node(self, at: float, gate: str = "", name: str = OUT) -> None:
        """A virtual node with a gate."""
        taints = [{"key": "vk-provider.dev/gate", "value": gate}] if gate else []
        labels = {"type": "virtual-kubelet"}
        found = {"kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.take({"t": at, "type": "MODIFIED", "object": {**found, "spec": {"taints": taints}}})

    def pod(self, at: float, name: str, node: str = "", **more: Any) -> None:
        """A replica: ``ready``, ``ending``, ``reason`` of its disruption, ``app``, ``type``."""
        conditions = [{"type": "Ready", "status": str(bool(more.get("ready")))}]
        if reason := more.get("reason"):
            target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
            conditions.append(target)
        metadata: dict[str, Any] = {"uid": name, "name": name}
        metadata["labels"] = {"app": more.get("app", "chat")}
        if more.get("ending"):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        status = {"phase": "Running" if node else "Pending", "conditions": conditions}
        found = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": status}
        self.take({"t": at, "type": more.get("type", "MODIFIED"), "object": found})


@pytest.fixture
def told() -> Told:
    """Two replicas that serve at home at 10, pushed out at 20, outside again at 25."""
    history = Told()
    history.node(1.0, "hold")
    for number in (1, 2):
        history.pod(10.0, f"home-{number}", HOME, ready=True)
    for number in (1, 2):
        history.pod(20.0, f"home-{number}", HOME, ready=True, ending=True, reason=PREEMPTED)
    for number in (1, 2):
        history.pod(20.5, f"out-{number}")
    for number in (1, 2):
        history.pod(25.0, f"out-{number}", OUT, ready=True)
    return history


def evict(history: Told, at: float, number: int, home_at: float) -> None:
    """One replica comes home."""
    history.pod(at, f"out-{number}", OUT, ready=True, ending=True, reason=EVICTED)
    history.pod(at + 0.1, f"back-{number}", HOME)
    history.pod(home_at, f"back-{number}", HOME, ready=True)


def test_moments_say_who_serves_where(told: Told) -> None:
    """An ending replica does not serve, whatever its condition says."""
    assert [(m.at, m.ready_home, m.ready_outside) for m in told.moments][-1] == (25.0, 0, 2)
    assert min(m.ready for m in told.between(20.0, 24.0)) == 0
    assert told.now.gate == "hold"


def test_replicas_outside_in_time(told: Told) -> None:
    """The n-th that is Ready outside answers for the n-th that was preempted."""
    assert judge.outside_in_time(told, 5.0).holds
    assert not judge.outside_in_time(told, 4.9).holds


def test_a_replica_that_never_came_is_missed(told: Told) -> None:
    """Fewer replacements than preemptions can't hold."""
    told.pod(21.0, "home-3", HOME, ready=True)
    told.pod(22.0, "home-3", HOME, ready=True, ending=True, reason=PREEMPTED)

    assert not judge.outside_in_time(told, 60.0).holds


def test_nothing_preempted_is_no_story() -> None:
    """Without a preemption there is nothing that could have been in time."""
    assert not judge.outside_in_time(History(), 60.0).holds
    assert not judge.all_ready_again(History(), 2, 60.0).holds


def test_all_ready_again(told: Told) -> None:
    """From the first preemption to the first moment with all."""
    verdict = judge.all_ready_again(told, 2, 5.0)

    assert verdict.holds
    assert "at least 0 Ready" in verdict.figure
    assert not judge.all_ready_again(told, 3, 60.0).holds


def test_a_planted_loss_counts_as_moving(told: Told) -> None:
    """One on its way and one lost are two."""
    evict(told, 30.0, 1, 32.0)
    assert judge.few_in_flight(told, 29.0, 33.0, 2, 1).holds

    told.pod(33.5, "out-2", OUT, ready=True, ending=True)
    told.pod(33.6, "back-1", HOME, ready=False)
    assert not judge.few_in_flight(told, 29.0, 34.0, 2, 1).holds


def test_serving_never_falls_below(told: Told) -> None:
    """The plain way out falls to none; that is what the other mode is for."""
    assert not judge.never_below(told, 10.0, 26.0, 1, "at all").holds
    assert judge.never_below(told, 25.0, 26.0, 2, "at all").holds


def test_nobody_may_move_while_a_signal_lies(told: Told) -> None:
    """And somebody must have moved before, or stillness says nothing."""
    assert not judge.still_while(told, judge.Injection("stale", 40.0, 50.0), 26.0).holds

    evict(told, 30.0, 1, 32.0)
    assert judge.still_while(told, judge.Injection("stale", 40.0, 50.0), 26.0).holds

    evict(told, 45.0, 2, 47.0)
    assert not judge.still_while(told, judge.Injection("stale", 40.0, 50.0), 26.0).holds


def test_the_dearest_come_home_first(told: Told) -> None:
    """No replica leaves the cheap node while the dear one has any."""
    told.node(26.0, name="l40s")
    told.pod(27.0, "cheap", "l40s", ready=True)
    evict(told, 30.0, 1, 32.0)
    told.pod(33.0, "cheap", "l40s", ready=True, ending=True, reason=EVICTED)
    assert judge.dearest_first(told, ["l40s", OUT]).holds

    evict(told, 34.0, 2, 36.0)
    assert not judge.dearest_first(told, ["l40s", OUT]).holds


def test_all_home(told: Told) -> None:
    """Nobody is outside."""
    assert not judge.all_home(told, 2).holds

    evict(told, 30.0, 1, 32.0)
    evict(told, 33.0, 2, 35.0)
    for number in (1, 2):
        told.pod(36.0, f"out-{number}", OUT, type="DELETED")
    assert judge.all_home(told, 2).holds


def test_the_bill_stops() -> None:
    """Every meter stopped before the last replica served at home; the total stands."""
    bill = {**BILL, "charges": [{"end": 40.0}]}

    assert judge.bill_stops([bill], [bill], home=141.0).holds
    assert not judge.bill_stops([bill], [bill], home=139.0).holds
    assert not judge.bill_stops([bill], [{**bill, "usd": 1.6}], home=141.0).holds
    assert not judge.bill_stops([bill], [{**bill, "charges": [{"end": None}]}], home=141.0).holds
    assert not judge.bill_stops([bill], [{**bill, "doubleBilled": [1]}], home=141.0).holds


def test_a_gap_is_told() -> None:
    """An observer that missed something can't vouch for anything."""
    history = History()
    assert judge.nothing_missed(history).holds

    history.take({"t": 1.0, "type": "GAP"})
    assert not judge.nothing_missed(history).holds
    assert judge.failures([judge.nothing_missed(history)])


def test_training_and_its_gpus_are_counted() -> None:
    """Pods of the training job that have a node hold GPUs at home."""
    history = Told()
    history.pod(1.0, "train-0", HOME, app="train")
    history.pod(1.0, "train-1", app="train")

    assert history.now.training == 1


def test_training_may_push_twice(told: Told) -> None:
    """Once is not twice."""
    assert not judge.pushed_again(told, 26.0).holds

    evict(told, 30.0, 1, 32.0)
    told.pod(33.0, "back-1", HOME, ready=True, ending=True, reason=PREEMPTED)
    assert judge.pushed_again(told, 26.0).holds
