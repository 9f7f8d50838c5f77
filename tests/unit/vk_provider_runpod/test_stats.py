"""Usage out of RunPod's percentages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from vk_provider_runpod.cgroups import Usage
from vk_provider_runpod.stats import running, stats_of

from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider.testing.builders import CLUSTER_ID, uid_of

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MakePod = Callable[..., dict[str, Any]]


def told(
    *pods: dict[str, Any], measured: dict[str, Usage] | None = None
) -> tuple[InstanceStats, ...]:
    """The stats of these pods, of which some may have let us in."""
    return stats_of(running(pods, CLUSTER_ID), measured or {}, NOW)


def test_gpus_are_told_as_shares(backend_pod: MakePod) -> None:
    """By their index; what is not measured is absent."""
    gpus = [{"util": 94, "memoryUtil": 78}, {"util": None}, {"util": True}, {"util": 140}]

    found = told(backend_pod(runtime={"uptime": 60, "gpus": gpus}))

    main = ContainerStats("main", NOW, gpu_utilization={"0": 0.94, "3": 1.0})
    assert found == (InstanceStats(uid_of("app-1"), (main,)),)


def test_memory_is_told_where_its_size_is_known(backend_pod: MakePod) -> None:
    """Of a CPU pod."""
    runtime = {"uptime": 60, "memory": {"util": 25}}

    (found,) = told(backend_pod(cpu={"memory": 8}, runtime=runtime))

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

    assert told(*pods) == ()
    assert running([backend_pod(runtime=runtime)], "cluster-2") == {}


def test_what_the_container_says_itself_is_better(backend_pod: MakePod) -> None:
    """Counters and bytes instead of percentages; GPUs' load is RunPod's to tell."""
    runtime = {"uptime": 60, "memory": {"util": 25}, "gpus": [{"util": 50}]}
    usage = Usage(9_000, 5_000, 1_000, {"0": 77})

    (found,) = told(backend_pod(cpu={"memory": 8}, runtime=runtime), measured={"abc123": usage})

    assert found.containers == (
        ContainerStats(
            "main",
            NOW,
            cpu_nanoseconds=9_000,
            memory_working_set_bytes=4_000,
            memory_usage_bytes=5_000,
            gpu_utilization={"0": 0.5},
            gpu_memory_used_bytes={"0": 77},
        ),
    )
