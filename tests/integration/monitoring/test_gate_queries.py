"""The gate's default questions to Prometheus, on series as exporters write them."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.rig.prometheus import promtool
from vk_provider.controllers.prometheus_signal import filled_in
from vk_provider.settings_bursting_prometheus import PrometheusQueries

RESOURCE = "nvidia.com/gpu"
QUERIES = PrometheusQueries()


def node(name: str, gpus: int, *, ready: int = 1, cordoned: int = 0) -> dict[str, str]:
    """What kube-state-metrics says of a node."""
    gpu = f'kube_node_status_allocatable{{node="{name}",resource="nvidia_com_gpu",unit="integer"}}'
    return {
        f'kube_node_status_condition{{node="{name}",condition="Ready",status="true"}}': str(ready),
        f'kube_node_spec_unschedulable{{node="{name}"}}': str(cordoned),
        gpu: str(gpus),
    }


def pod(
    name: str, gpus: int, node: str = "", phase: str = "Running", priority: str = "inference"
) -> dict[str, str]:
    """What it says of a pod; one without a node is unschedulable."""
    of = f'namespace="d",pod="{name}",uid="{name}"'
    asked = f'{of},container="c",resource="nvidia_com_gpu",unit="integer",node="{node}"'
    return {
        f"kube_pod_container_resource_requests{{{asked}}}": str(gpus),
        f'kube_pod_status_phase{{{of},phase="{phase}"}}': "1",
        f'kube_pod_info{{{of},priority_class="{priority}"}}': "1",
        f"kube_pod_status_unschedulable{{{of}}}": str(int(not node)),
    }


def kueue(kind: str, amount: int) -> dict[str, str]:
    """What Kueue says of a queue."""
    labels = f'cluster_queue="train",flavor="home",resource="{RESOURCE}"'
    return {f"kueue_cluster_queue_resource_{kind}{{{labels}}}": str(amount)}


HOME = {
    **node("home-0", 8),
    **node("home-1", 8),
    **node("cordoned", 8, cordoned=1),
    **node("down", 8, ready=0),
    **node("burst", 64),
    **node("sick", 8),
    'kube_node_spec_taint{node="burst",key="virtual-kubelet.io/provider",value="vk-provider"}': "1",
    'kube_node_spec_taint{node="sick",key="vk-provider.dev/gpu-health",value="drain"}': "1",
    **pod("a", 2, "home-0"),
    **pod("ended", 8, "home-0", phase="Succeeded"),
    **pod("waits", 4),
}
TRAINING = {**pod("train", 8, priority="training"), **kueue("pending", 16)}
RESERVED = {**kueue("reservation", 24), **kueue("usage", 16)}


async def answers(
    tmp_path: Path, series: dict[str, str], expected: dict[str, float | None], gpus: int = 1
) -> None:
    """Let promtool ask the default queries and compare; None: no answer at all."""
    (tmp_path / "rules.yaml").write_text("groups: []\n")
    tests = [
        {
            "expr": filled_in(getattr(QUERIES, name), RESOURCE, gpus),
            "eval_time": "5m",
            "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
        }
        for name, value in expected.items()
    ]
    written = [{"series": name, "values": f"{value}x10"} for name, value in series.items()]
    body = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": written, "promql_expr_test": tests}],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump(body))
    assert "SUCCESS" in await promtool("test", "rules", file)


async def test_usable_nodes_and_their_slots_are_counted(tmp_path: Path) -> None:
    """Not the virtual node, nor those that are cordoned, down or sick; ended pods hold nothing."""
    await answers(tmp_path, HOME, {"home_nodes": 2, "slots": 14, "training_waiting": 0, "age": 0})


async def test_slots_are_counted_node_by_node(tmp_path: Path) -> None:
    """Six and eight free GPUs are three pods of four."""
    await answers(tmp_path, HOME, {"slots": 3}, gpus=4)


async def test_training_waits_as_pods_and_in_the_queue(tmp_path: Path) -> None:
    """Unschedulable, pending, and reserved without being used."""
    await answers(tmp_path, HOME | TRAINING, {"training_waiting": 8 + 16})
    await answers(tmp_path, HOME | TRAINING | RESERVED, {"training_waiting": 8 + 16 + 8})


async def test_without_kube_state_metrics_there_is_no_answer(tmp_path: Path) -> None:
    """Which the gate takes for unknown, not for zero."""
    await answers(tmp_path, {"up": "1"}, {"home_nodes": None, "slots": None, "age": None})
