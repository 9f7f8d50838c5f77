"""What a session remembers of its instances."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_runpod.diagnosis import MOST_AT_ONCE, Diagnosis
from vk_provider_runpod.memory import Memory, age
from vk_provider_runpod.stamp import Mark, instance_name, stamp_env

from vk_provider.pods.types import EndCause
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
