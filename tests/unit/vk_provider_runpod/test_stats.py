"""Usage out of RunPod's percentages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from vk_provider_runpod.stats import stats_of

from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider.testing.builders import CLUSTER_ID, uid_of

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MakePod = Callable[..., dict[str, Any]]


def test_gpus_are_told_as_shares(backend_pod: MakePod) -> None:
    """By their index; what is not measured is absent."""
    gpus = [{"util": 94, "memoryUtil": 78}, {"util": None}, {"util": True}, {"util": 140}]

    found = stats_of([backend_pod(runtime={"uptime": 60, "gpus": gpus})], CLUSTER_ID, NOW)

    main = ContainerStats("main", NOW, gpu_utilization={"0": 0.94, "3": 1.0})
    assert found == (InstanceStats(uid_of("app-1"), (main,)),)


def test_memory_is_told_where_its_size_is_known(backend_pod: MakePod) -> None:
    """Of a CPU pod."""
    runtime = {"uptime": 60, "memory": {"util": 25}}

    (found,) = stats_of([backend_pod(cpu={"memory": 8}, runtime=runtime)], CLUSTER_ID, NOW)

    assert found.containers[0].memory_working_set_bytes == 2_000_000_000
    assert found.containers[0].memory_usage_bytes == 2_000_000_000


def test_only_our_running_instances_are_told_of(backend_pod: MakePod) -> None:
    """Not a stopped one's last figures, not a stranger's, not one that has none yet."""
    runtime = {"uptime": 60}
    pods = [
        backend_pod(status="EXITED", runtime=runtime),
        backend_pod(env={}, runtime=runtime),
        backend_pod(runtime=None),
    ]

    assert stats_of(pods, CLUSTER_ID, NOW) == ()
    assert stats_of([backend_pod(runtime=runtime)], "cluster-2", NOW) == ()
