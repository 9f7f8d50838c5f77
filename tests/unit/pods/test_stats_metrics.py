"""Usage as Prometheus text."""

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from vk_provider.pods.stats_metrics import (
    Family,
    cadvisor_families,
    exposition,
    resource_families,
)
from vk_provider.pods.types import PodUID
from vk_provider.pods.usage import ContainerStats
from vk_provider.pods.usage_history import NodeUsage, PodUsage

AT = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECONDS = int(AT.timestamp() * 1000)
POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u-1"}}
CONTAINER = ContainerStats(
    name="c",
    at=AT,
    started_at=AT,
    cpu_nanoseconds=1_500_000_000,
    memory_working_set_bytes=7,
    gpu_utilization={"gpu-0": 0.25},
    gpu_memory_used_bytes={"gpu-0": 11},
)
USAGE = NodeUsage(
    at=AT,
    pods={
        PodUID("u-1"): PodUsage(
            at=AT,
            containers=(CONTAINER,),
            cpu_nanoseconds=1_500_000_000,
            memory_working_set_bytes=7,
            network_received_bytes=3,
        )
    },
    cpu_nanoseconds=2_000_000_000,
    memory_working_set_bytes=8,
)
STRANGER = {"metadata": {"name": "q", "namespace": "ns", "uid": "u-2"}}


def test_resource_metrics_are_what_metrics_server_reads() -> None:
    """Names, label order, seconds, and the moment of measuring in milliseconds."""
    lines = exposition(resource_families(USAGE, [POD, STRANGER], error=False)).splitlines()

    labels = 'namespace="ns",pod="p"'
    assert [line for line in lines if not line.startswith("#")] == [
        f"node_cpu_usage_seconds_total 2.0 {MILLISECONDS}",
        f"node_memory_working_set_bytes 8 {MILLISECONDS}",
        f"pod_cpu_usage_seconds_total{{{labels}}} 1.5 {MILLISECONDS}",
        f"pod_memory_working_set_bytes{{{labels}}} 7 {MILLISECONDS}",
        f'container_cpu_usage_seconds_total{{{labels},container="c"}} 1.5 {MILLISECONDS}',
        f'container_memory_working_set_bytes{{{labels},container="c"}} 7 {MILLISECONDS}',
        f'container_start_time_seconds{{{labels},container="c"}} {AT.timestamp()} {MILLISECONDS}',
        "resource_scrape_error 0",
    ]


def test_without_figures_there_are_no_samples() -> None:
    """Only that a backend could not be asked."""
    bare = NodeUsage(pods={PodUID("u-1"): PodUsage(AT, (ContainerStats("c", AT),))})
    text = exposition(resource_families(bare, [POD], error=True))

    assert [line for line in text.splitlines() if line[0] != "#"] == ["resource_scrape_error 1"]
    assert exposition(cadvisor_families(bare, [POD])) == ""


def test_cadvisor_metrics_have_gpus_and_network() -> None:
    """Under the names that dashboards know."""
    text = exposition(cadvisor_families(USAGE, [POD]))
    found = {
        sample.name: (sample.labels.get("acc_id"), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    assert found["container_accelerator_duty_cycle"] == ("gpu-0", 25)
    assert found["container_accelerator_memory_used_bytes"] == ("gpu-0", 11)
    assert found["container_network_receive_bytes_total"] == (None, 3)
    assert found["container_cpu_usage_seconds_total"] == (None, 1.5)
    assert "container_network_transmit_bytes_total" not in found


def test_label_values_are_escaped() -> None:
    """As the text format wants it."""
    family = Family("x", "gauge", "y")
    family.add({"l": 'a"b\\c\nd'}, 1, None)

    assert exposition([family]).splitlines()[-1] == 'x{l="a\\"b\\\\c\\nd"} 1'
