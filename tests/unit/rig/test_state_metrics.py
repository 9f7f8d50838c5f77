"""The series of the stand-in for kube-state-metrics, as its documentation writes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rig.state_metrics import line, number, of_nodes, of_pods

NODE: dict[str, Any] = {
    "metadata": {"name": "home-1"},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"nvidia.com/gpu": "8", "memory": "2Ki"},
    },
}
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {
        "priorityClassName": "training",
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
    },
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}


def test_nodes() -> None:
    """Resources are named without dots and slashes, and have their unit."""
    series = list(of_nodes([NODE]))

    gpus = 'kube_node_status_allocatable{node="home-1",resource="nvidia_com_gpu",unit="integer"} 8'
    assert gpus in series
    assert 'kube_node_spec_unschedulable{node="home-1"} 0' in series
    assert 'kube_node_spec_taint{node="home-1",key="k",value="v",effect="NoSchedule"} 1' in series
    ready = 'kube_node_status_condition{node="home-1",condition="Ready",status="true"} 1'
    assert ready in series


def test_pods() -> None:
    """Every phase has a series; a pod that waits has one that others lack."""
    series = list(of_pods([POD]))

    who = 'namespace="n",pod="p",uid="u"'
    assert f'kube_pod_status_phase{{{who},phase="Pending"}} 1' in series
    assert f'kube_pod_status_phase{{{who},phase="Running"}} 0' in series
    assert f"kube_pod_status_unschedulable{{{who}}} 1" in series
    wanted = f'{who},container="c",node="",resource="nvidia_com_gpu",unit="integer"'
    assert f"kube_pod_container_resource_requests{{{wanted}}} 1" in series


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [("8", 8.0), ("500m", 0.5), ("2Gi", 2.0**31), ("1k", 1000.0), ("1.5Mi", 1.5 * 2**20)],
)
def test_quantities(quantity: str, expected: float) -> None:
    """As plain numbers."""
    assert number(quantity) == expected


def test_labels_are_escaped() -> None:
    """Or Prometheus would refuse the whole scrape."""
    assert line("m", {"a": 'x"\\\n'}, 1) == 'm{a="x\\"\\\\\\n"} 1'
