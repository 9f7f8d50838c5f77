"""Counters that never fall, from whatever a backend measures."""

from datetime import UTC, datetime, timedelta

from vk_provider.pods.types import PodUID
from vk_provider.pods.usage import ContainerStats, InstanceStats
from vk_provider.pods.usage_history import NodeUsage, UsageHistory

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = PodUID("u-1"), PodUID("u-2")


def instance(
    second: int,
    cpu: int | None = None,
    *,
    uid: PodUID = ONE,
    started: int = 0,
    nanocores: int | None = None,
    memory: int | None = None,
) -> InstanceStats:
    """An instance with a container c, measured so many seconds after the start."""
    container = ContainerStats(
        name="c",
        at=START + timedelta(seconds=second),
        started_at=START + timedelta(seconds=started),
        cpu_nanoseconds=cpu,
        cpu_nanocores=nanocores,
        memory_working_set_bytes=memory,
    )
    return InstanceStats(uid, (container,), network_received_bytes=7)


def test_a_backends_counter_is_taken_over() -> None:
    """With the rate between two looks."""
    history = UsageHistory()
    history.absorb([instance(0, 5_000)], {ONE})

    usage = history.absorb([instance(10, 25_000, memory=3)], {ONE})

    pod = usage.pods[ONE]
    assert (pod.cpu_nanoseconds, pod.cpu_nanocores) == (25_000, 2_000)
    assert (pod.memory_working_set_bytes, pod.network_received_bytes) == (3, 7)
    assert pod.containers[0].cpu_nanoseconds == 25_000
    assert (usage.cpu_nanoseconds, usage.memory_working_set_bytes) == (25_000, 3)
    assert usage.at == START + timedelta(seconds=10)


def test_a_counter_never_falls() -> None:
    """A backend's slip is not shown, nor a look that comes late."""
    history = UsageHistory()
    history.absorb([instance(10, 5_000)], {ONE})

    usage = history.absorb([instance(5, 4_000)], {ONE})

    assert usage.pods[ONE].cpu_nanoseconds == 5_000
    assert usage.at == START + timedelta(seconds=10)


def test_a_restarted_container_counts_anew_but_its_pod_and_node_go_on() -> None:
    """A scraper is told of it by the container's start time."""
    history = UsageHistory()
    history.absorb([instance(0, 5_000)], {ONE})

    usage = history.absorb([instance(10, 100, started=5)], {ONE})

    assert usage.pods[ONE].containers[0].cpu_nanoseconds == 100
    assert usage.pods[ONE].cpu_nanoseconds == 5_100
    assert usage.cpu_nanoseconds == 5_100


def test_the_nodes_counter_outlives_its_pods() -> None:
    """And forgets the pods."""
    history = UsageHistory()
    history.absorb([instance(0, 5_000), instance(0, 1_000, uid=TWO)], {ONE, TWO})

    usage = history.absorb([instance(10, 2_000, uid=TWO)], {TWO})

    assert list(usage.pods) == [TWO]
    assert usage.cpu_nanoseconds == 7_000


def test_a_busy_share_is_added_up() -> None:
    """Over the time between two looks."""
    history = UsageHistory()
    first = history.absorb([instance(0, nanocores=500)], {ONE})
    second = history.absorb([instance(10, nanocores=500)], {ONE})

    assert first.pods[ONE].cpu_nanoseconds == 0
    assert second.pods[ONE].cpu_nanoseconds == 5_000
    assert second.pods[ONE].cpu_nanocores == 500


def test_what_is_not_measured_is_absent() -> None:
    """Of a container, and so of its pod and the node."""
    usage = UsageHistory().absorb([instance(0)], {ONE})

    assert usage.pods[ONE].cpu_nanoseconds is None
    assert usage.pods[ONE].memory_working_set_bytes is None
    assert (usage.cpu_nanoseconds, usage.memory_working_set_bytes) == (None, None)


def test_a_pods_sum_needs_all_its_containers() -> None:
    """Half a sum is no figure; the node adds up what there is."""
    whole = instance(0, 5, memory=2, uid=TWO)
    half = InstanceStats(ONE, (*instance(0, 5, memory=2).containers, ContainerStats("d", START)))

    usage = UsageHistory().absorb([half, whole], {ONE, TWO})

    assert usage.pods[ONE].memory_working_set_bytes is None
    assert usage.memory_working_set_bytes == 2


def test_other_nodes_instances_are_not_shown() -> None:
    """A backend may list those of the whole cluster."""
    assert UsageHistory().absorb([instance(0, 5)], set()) == NodeUsage()
