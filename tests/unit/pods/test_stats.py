"""The Summary API: facts, and nothing where there is none."""

from datetime import UTC, datetime
from typing import Any

from vk_provider.pods.stats import summary
from vk_provider.pods.types import PodUID
from vk_provider.pods.usage import ContainerStats
from vk_provider.pods.usage_history import NodeUsage, PodUsage

AT = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
TIME = "2026-01-01T00:00:10Z"
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u-1"},
    "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
    "status": {"startTime": "2026-01-01T00:00:00Z"},
}
MEASURED = ContainerStats(
    name="c",
    at=AT,
    started_at=AT,
    cpu_nanoseconds=5,
    cpu_nanocores=6,
    memory_working_set_bytes=7,
    memory_usage_bytes=8,
    memory_rss_bytes=9,
    filesystem_used_bytes=10,
    gpu_utilization={"gpu-0": 0.504},
    gpu_memory_used_bytes={"gpu-0": 11, "gpu-1": 12},
)


def rendered(usage: NodeUsage, *, only: bool = False) -> dict[str, Any]:
    """The answer for POD."""
    return summary("burst", AT, usage, [POD], only_cpu_and_memory=only)


def of_pod(usage: PodUsage) -> NodeUsage:
    """A node with that pod."""
    return NodeUsage(at=AT, pods={PodUID("u-1"): usage}, memory_rss_bytes=1)


def test_an_unmeasured_pod_is_listed_with_its_containers() -> None:
    """It runs: that is known."""
    answer = rendered(NodeUsage())

    assert answer["node"] == {"nodeName": "burst", "startTime": TIME}
    assert answer["pods"] == [
        {
            "podRef": {"name": "p", "namespace": "ns", "uid": "u-1"},
            "startTime": "2026-01-01T00:00:00Z",
            "containers": [{"name": "c"}, {"name": "d"}],
        }
    ]


def test_everything_that_is_measured_is_shown() -> None:
    """With the time of measuring."""
    usage = PodUsage(at=AT, containers=(MEASURED,), cpu_nanocores=6, network_received_bytes=3)
    answer = rendered(of_pod(usage))

    assert answer["node"]["memory"] == {"time": TIME, "rssBytes": 1}
    (pod,) = answer["pods"]
    assert pod["cpu"] == {"time": TIME, "usageNanoCores": 6}
    assert pod["network"] == {"time": TIME, "name": "", "rxBytes": 3}
    assert pod["containers"][0] == {
        "name": "c",
        "startTime": TIME,
        "cpu": {"time": TIME, "usageNanoCores": 6, "usageCoreNanoSeconds": 5},
        "memory": {"time": TIME, "usageBytes": 8, "workingSetBytes": 7, "rssBytes": 9},
        "rootfs": {"time": TIME, "usedBytes": 10},
        "accelerators": [
            {"id": "gpu-0", "dutyCycle": 50, "memoryUsed": 11},
            {"id": "gpu-1", "memoryUsed": 12},
        ],
    }


def test_an_answer_can_be_reduced_to_cpu_and_memory() -> None:
    """As ``only_cpu_and_memory=true`` asks."""
    usage = PodUsage(at=AT, containers=(MEASURED,), network_sent_bytes=3)
    (pod,) = rendered(of_pod(usage), only=True)["pods"]

    assert "network" not in pod
    assert set(pod["containers"][0]) == {"name", "startTime", "cpu", "memory"}


def test_a_container_that_the_spec_does_not_name_is_shown_too() -> None:
    """An init container, or one that the backend added; without a start nobody knows."""
    usage = PodUsage(at=AT, containers=(ContainerStats("extra", AT),))
    (pod,) = rendered(of_pod(usage))["pods"]

    assert [each["name"] for each in pod["containers"]] == ["c", "d", "extra"]
    assert pod["containers"][2] == {"name": "extra"}
    assert "network" not in pod
