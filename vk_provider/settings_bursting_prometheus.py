"""The block ``prometheus`` of kind ``Bursting``: a second opinion on whether home has room. Pure.

Fed by :mod:`vk_provider.settings_bursting`; read by ``controllers.prometheus_signal``. The default
queries need kube-state-metrics and, for queued training, Kueue's own; ``{resource}`` is the
resource as kube-state-metrics writes it, ``{resource_name}`` as Kueue does, ``{gpus}`` the GPUs of
one pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.fields import Fields
from vk_provider.secrets import SecretSource
from vk_provider.urls import http_url

_USABLE = (
    'max by (node) (kube_node_status_condition{condition="Ready",status="true"} == 1)'
    " and on (node) (max by (node) (kube_node_spec_unschedulable) == 0)"
    " and on (node) (max by (node) "
    '(kube_node_status_allocatable{resource="{resource}"}) > 0)'
    ' unless on (node) kube_node_spec_taint{key="virtual-kubelet.io/provider"}'
    ' unless on (node) kube_node_spec_taint{key="vk-provider.dev/gpu-health",'
    'value=~"dead|drain"}'
)
_REQUESTED = (
    "sum by (node) (max by (namespace,pod,uid,container,node) "
    '(kube_pod_container_resource_requests{resource="{resource}",node!=""})'
    " * on (namespace,pod,uid) group_left () max by (namespace,pod,uid) "
    '(kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
)
HOME_NODES = f"count({_USABLE})"
SLOTS = (
    'sum(floor(clamp_min((max by (node) (kube_node_status_allocatable{resource="{resource}"})'
    f" and on (node) ({_USABLE})) - on (node) (({_REQUESTED}) or on (node) ({_USABLE}) * 0), 0)"
    " / {gpus}))"
)
_UNSCHEDULABLE = (
    "(sum(max by (namespace,pod,uid,container) "
    '(kube_pod_container_resource_requests{resource="{resource}"})'
    " * on (namespace,pod,uid) group_left () max by (namespace,pod,uid) "
    "(kube_pod_status_unschedulable == 1)"
    " * on (namespace,pod,uid) group_left () max by (namespace,pod,uid) "
    '(kube_pod_info{priority_class=~"training.*"})) or vector(0))'
)
_QUEUED = (
    '(sum(kueue_cluster_queue_resource_pending{resource="{resource_name}"}) or vector(0))'
    ' + ((sum(kueue_cluster_queue_resource_reservation{resource="{resource_name}"})'
    ' - sum(kueue_cluster_queue_resource_usage{resource="{resource_name}"})) or vector(0))'
)
TRAINING_WAITING = f"{_UNSCHEDULABLE} + {_QUEUED}"
AGE = 'time() - max(timestamp(kube_node_status_allocatable{resource="{resource}"}))'


@dataclass(frozen=True, slots=True)
class PrometheusQueries:
    """Each gives one number; an empty ``age`` query means that an answer is as old as its call."""

    home_nodes: str = HOME_NODES
    slots: str = SLOTS
    training_waiting: str = TRAINING_WAITING
    age: str = AGE


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Where Prometheus answers, how often it is asked, and what."""

    url: str
    every: float = 15.0
    timeout: float = 10.0
    bearer_token: SecretSource | None = field(default=None, repr=False)
    ca_file: str | None = None
    queries: PrometheusQueries = PrometheusQueries()


def parse_prometheus(block: Fields) -> PrometheusSettings | None:
    """None where there is no such block: the watches alone decide then."""
    if not block.raw():
        return None
    usual = PrometheusQueries()
    queries = block.child("queries")
    settings = PrometheusSettings(
        url=_url(block),
        every=block.number("everySeconds", 15.0, 0.1),
        timeout=block.number("timeoutSeconds", 10.0, 0.1),
        bearer_token=block.secret("bearerToken", required=False),
        ca_file=block.optional_text("caFile"),
        queries=PrometheusQueries(
            home_nodes=queries.text("homeNodes", usual.home_nodes),
            slots=queries.text("slots", usual.slots),
            training_waiting=queries.text("trainingWaiting", usual.training_waiting),
            age=queries.text("age", usual.age),
        ),
    )
    queries.done()
    block.done()
    return settings


def _url(block: Fields) -> str:
    found = block.text("url")
    if found and http_url(found) is None:
        block.wrong("url", found, "http://HOST:PORT or https://…")
    return found
