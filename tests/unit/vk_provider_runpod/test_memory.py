"""What a session remembers of its instances."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_runpod.diagnosis import MOST_AT_ONCE, Diagnosis
from vk_provider_runpod.memory import Memory, age
from vk_provider_runpod.observe import observe
from vk_provider_runpod.stamp import Mark, instance_name, stamp_env

from vk_provider.pods.types import EndCause, InstancePhase
from vk_provider.testing.builders import CLUSTER_ID, make_stamp

Make = Callable[..., dict[str, Any]]
NOW = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


def test_only_our_clusters_pods_are_taken(backend_pod: Make) -> None:
    """Strangers and other clusters are passed over, siblings are not."""
    foreign = stamp_env(make_stamp(cluster_id="cluster-2"), "main")
    sibling = stamp_env(make_stamp(node_name="node-2"), "main")
    pods = [
        backend_pod(id="ours"),
        backend_pod(id="sibling", env=sibling),
        backend_pod(id="foreign", env=foreign),
        backend_pod(id="stranger", env={"A": "b"}),
    ]

    taken = Memory(CLUSTER_ID).take(pods, NOW)

    assert [pod["id"] for pod in taken] == ["ours", "sibling"]


def test_terminated_is_gone(backend_pod: Make) -> None:
    """It is a pod that was deleted for good."""
    assert Memory(CLUSTER_ID).take([backend_pod(status="TERMINATED")], NOW) == []


def test_memory_is_bounded_by_the_last_list(backend_pod: Make) -> None:
    """Nothing is kept of what is no longer there."""
    memory = Memory(CLUSTER_ID)
    memory.take([backend_pod(id="a"), backend_pod(id="b")], NOW)
    memory.doubtful([backend_pod(id="a")], NOW)

    memory.take([backend_pod(id="b")], NOW)

    assert list(memory.known) == ["b"]
    assert memory.asked_at == {}


def test_an_env_that_lost_our_mark_makes_a_stray(backend_pod: Make, mark: Mark) -> None:
    """Leaving the instance out would look like its death."""
    memory = Memory(CLUSTER_ID)
    stripped = backend_pod(name=instance_name(mark.stamp), env={})

    assert memory.take([stripped], NOW) == [stripped]
    assert memory.known["abc123"].mark.stamp.is_stray

    healed = backend_pod(name=instance_name(mark.stamp))
    assert memory.take([healed], NOW) == [healed]
    assert memory.known["abc123"].mark == mark


def test_a_mark_that_is_known_outlives_a_lost_env(backend_pod: Make, mark: Mark) -> None:
    """From the create call or an earlier list."""
    memory = Memory(CLUSTER_ID)
    memory.created("abc123", mark)
    stripped = backend_pod(name=instance_name(mark.stamp), env=None)

    assert memory.take([stripped], NOW) == [stripped]
    assert memory.known["abc123"].mark == mark


def test_few_hosts_are_asked_at_once(backend_pod: Make) -> None:
    """The others have their turn at the next list."""
    memory = Memory(CLUSTER_ID)
    pods = [backend_pod(id=f"p{n}") for n in range(MOST_AT_ONCE + 2)]
    memory.take(pods, NOW)

    assert len(memory.doubtful(pods, NOW)) == MOST_AT_ONCE
    assert len(memory.doubtful(pods, NOW)) == 2
    assert memory.doubtful(pods, NOW) == []


def test_what_runs_or_is_settled_is_not_doubted(backend_pod: Make) -> None:
    """Only what has not started, and nobody knows why."""
    memory = Memory(CLUSTER_ID)
    runs, settled = backend_pod(id="a", runtime={"uptime": 9}), backend_pod(id="b")
    memory.take([runs, settled], NOW)
    memory.settle("b", Diagnosis("no such image", EndCause.IMAGE))

    assert memory.doubtful([runs, settled], NOW) == []
    assert memory.known["b"].end == "no such image"


@pytest.mark.parametrize(
    ("created", "seconds"),
    [("2026-06-01T12:04:00Z", 60), ("2026-06-01T12:04:00", 0), ("soon", 0), (None, 0)],
)
def test_age_is_zero_where_it_cannot_be_read(
    backend_pod: Make, created: str | None, seconds: int
) -> None:
    """The young are left alone."""
    assert age(backend_pod(createdAt=created), NOW) == timedelta(seconds=seconds)


SPOT = ("NVIDIA L40S", "EU-RO-1")


def lists(memory: Memory, *each: list[dict[str, Any]], minutes: int = 1) -> None:
    """Complete lists, one after another, each looked into."""
    for number, pods in enumerate(each):
        now = NOW + timedelta(minutes=number * minutes)
        memory.judge(memory.take(pods, now), now)


def is_avoided(memory: Memory) -> bool:
    """Whether the one place of these tests is avoided."""
    return memory.avoiding.avoided(SPOT[0], memory.now) == (SPOT[1],)


def test_two_instances_that_are_lost_in_a_row_make_their_place_avoided(backend_pod: Make) -> None:
    """One stopped, one vanished; each counts once, however long it is shown."""
    memory, stopped = Memory(CLUSTER_ID), backend_pod(id="a", status="EXITED")
    lists(memory, [backend_pod(id="b"), stopped], [backend_pod(id="b"), stopped])
    assert not is_avoided(memory)

    lists(memory, [stopped])

    assert is_avoided(memory)


def test_an_instance_that_we_ended_or_whose_image_is_bad_is_no_fault_of_its_place(
    backend_pod: Make,
) -> None:
    """Nor is one whose container has come to its end."""
    memory = Memory(CLUSTER_ID)
    ours, bad = backend_pod(id="a"), backend_pod(id="b", status="EXITED")
    memory.take([ours, bad], NOW)
    memory.settle("b", Diagnosis("manifest unknown", EndCause.IMAGE))
    memory.judge([ours, bad], NOW)
    memory.ordered("a")

    lists(memory, [], [backend_pod(id="c")], [backend_pod(id="c", status="ERROR")])

    assert not is_avoided(memory)


def test_an_instance_that_lives_clears_its_place(backend_pod: Make) -> None:
    """Not in a row any more."""
    memory = Memory(CLUSTER_ID)
    lists(memory, [backend_pod(id="a", status="EXITED")])
    well = [backend_pod(id="b", runtime={"uptime": 60 * m}) for m in (1, 11, 21)]

    lists(memory, *([pod] for pod in well), minutes=10)
    lists(memory, [well[-1], backend_pod(id="c", status="EXITED")])

    assert not is_avoided(memory)


def test_what_was_dismissed_is_not_there_while_lists_lag(backend_pod: Make) -> None:
    """If it lives on after that, it has ended, and the core makes an end of it."""
    memory = Memory(CLUSTER_ID, timedelta(seconds=10))
    memory.dismiss("abc123", "too dear", is_ordered=True)

    assert memory.take([backend_pod()], NOW) == []
    assert memory.take([backend_pod()], NOW + timedelta(seconds=10)) == []
    (pod,) = memory.take([backend_pod()], NOW + timedelta(seconds=11))
    assert observe(pod, memory.known["abc123"]).phase is InstancePhase.ENDED
    assert observe(pod, memory.known["abc123"]).ended_by is EndCause.LOST


def test_what_could_not_be_ended_at_once_has_ended(backend_pod: Make) -> None:
    """With the reason; its place is not to blame. Once gone it is forgotten."""
    memory = Memory(CLUSTER_ID, timedelta(seconds=10))
    for _ in range(2):
        memory.dismiss("abc123", "too dear", is_ordered=False)
        lists(memory, [backend_pod()])
        assert memory.known["abc123"].end == "too dear"
        lists(memory, [])

    assert not is_avoided(memory)
    assert memory.take([backend_pod()], NOW) == [backend_pod()]
