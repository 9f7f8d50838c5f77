"""Every query that is shipped runs on a real Prometheus, and finds what it is about.

Rules, dashboard, the gate's second opinion and GPU health are collected from where they are
shipped. Prometheus scrapes a real virtual node with all metrics of ours, a real Kueue, and
exporters' series after their documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import astuple
from functools import partial
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.shared.cluster import BUILT, GPU, RULES, SharedCluster
from tests.e2e.workloads import Workloads, deployment, job, pod_template
from tests.rig import identity
from tests.rig.polling import eventually
from tests.rig.prometheus import ask
from vk_provider.settings_bursting_gpu_health import GpuHealthSettings
from vk_provider.settings_bursting_prometheus import PrometheusQueries

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROGRAMS = BUILT

DASHBOARD = RULES[0].parents[1] / "dashboard.json"
SILENT = {
    # What comes with a failure, a move or an opt-in part, none of which this cluster has; their
    # rules are tried by promtool.
    "vk_provider_homecomings", "vk_provider_gate_transitions", "vk_provider_webhook_requests",
    "vk_provider_failed_verdicts", "vk_provider:failed", "vk_provider_instances_elsewhere",
    "vk_provider_budget", "vk_provider_spend", "vk_provider_quota_refused",
    "vk_provider_quota_changes", "kube_pod_status_reason",
    "DCGM_EXP_XID_ERRORS_COUNT", "offset 10m", "changes(", "ALERTS{",
    "vk_provider_home_spare_slots", "vk_provider:start_seconds", "pod_start_seconds_bucket",
    "vk_provider_orphans_deleted",
    "vk_provider_evacua", "vk_provider_surge", "node_infiniband_local_link_integrity",
    "vk_provider:pods_outside{", "vk_provider:gpu_unscheduled_scheduler", 'node=""',
}  # fmt: skip


def rule_queries() -> Iterator[tuple[str, str]]:
    """Recording rules; an alert's query is silent where all is well."""
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                kind = "record" if "record" in rule else "alert"
                yield f"{kind} {rule[kind]}", rule["expr"]


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Every panel's, with the variables filled in as Grafana does."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            filled = target["expr"].replace("$node", ".*").replace("$__rate_interval", "1m")
            yield f"panel {panel['title']}", filled


def default_queries() -> Iterator[tuple[str, str]]:
    """Those of the gate and of GPU health."""
    names = ("home_nodes", "slots", "training_waiting", "age")
    for name, query in zip(names, astuple(PrometheusQueries()), strict=True):
        filled = query.replace("{resource}", "nvidia_com_gpu").replace("{gpus}", "1")
        yield f"gate {name}", filled
    health = GpuHealthSettings()
    yield "health presence", health.presence
    for rule in health.rules:
        yield f"health {rule.name}", rule.query


def variable_queries() -> Iterator[tuple[str, str]]:
    """`label_values(SELECTOR, LABEL)` of the dashboard's variables."""
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), \w+\)", variable["query"]["query"])
            assert found, variable
            yield f"variable {variable['name']}", found[1]


ALL = [*rule_queries(), *dashboard_queries(), *default_queries(), *variable_queries()]


def must_answer(name: str, query: str) -> bool:
    """Whether there is something to find in a healthy cluster."""
    return not name.startswith("alert ") and not any(words in query for words in SILENT)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(cluster: SharedCluster) -> AsyncIterator[SharedCluster]:
    """A virtual node that takes part in bursting, inference at home, a job that was admitted."""
    await cluster.queue("asked", 8)
    options = {
        "prometheus": {"url": cluster.prometheus_url},
        "gpuHealth": {"enabled": True, "everySeconds": 1},
        "quotaBridge": {"enabled": True, "clusterQueues": ["asked"]},
        "leaderElection": {"namespace": identity.NAMESPACE},
    }
    rules = {"apiVersion": "vk-provider.dev/v1alpha1", "kind": "Bursting", "spec": options}
    spec = {"bursting": {"gate": {"enabled": True}}}
    async with NodeUnderTest(cluster.bed, "asked", spec, beside=[rules]) as node:
        cluster.targets.write_text(json.dumps([{"targets": [f"127.0.0.1:{node.plain_port}"]}]))
        await _busy(cluster, node)
        yield cluster
    cluster.targets.write_text("[]")
    jobs = Workloads(cluster.bed, "default")
    for kind, name in (("jobs", "asked"), ("deployments", "chat")):
        path = f"{jobs.path(kind, name)}?propagationPolicy=Background"
        await cluster.bed.request_json("DELETE", path)
    await cluster.drop("asked")


async def _busy(cluster: SharedCluster, node: NodeUnderTest) -> None:
    """Wait until everything was scraped and every rule was evaluated."""
    workloads = Workloads(cluster.bed, "default")
    resources = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    template = pod_template("home-1", labels={"app": "chat"}, containers=[container])
    await workloads.create("deployments", deployment("chat", 1, template))
    spec = {"priorityClassName": "training", "containers": [container]}
    training = job("asked", {"spec": spec}, suspend=True)
    training["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "asked"}
    await workloads.create("jobs", training)

    async def running() -> str:
        found = await workloads.pods("app=chat")
        return found[0]["metadata"]["name"] if found and found[0]["spec"].get("nodeName") else ""

    cluster.gpus.pods["home-1"] = ("default", await eventually(running, "a pod at home"))
    queries = ("vk_provider_gate_state", "vk_provider:home:slots", "vk_provider:usd_per_hour")
    for query in (*queries, "kueue_admitted_active_workloads"):
        await eventually(partial(ask, cluster.prometheus_url, query), query, seconds=40)


@pytest.mark.parametrize(("name", "query"), ALL, ids=[name for name, _ in ALL])
async def test_a_query_runs_and_finds_something(busy: SharedCluster, name: str, query: str) -> None:
    """A name or a label that nobody exports is found here."""
    if not must_answer(name, query):
        await ask(busy.prometheus_url, query)
        return
    found: list[dict[str, Any]] = await eventually(
        lambda: ask(busy.prometheus_url, query), f"{name}: {query}", seconds=15
    )
    assert found


async def test_what_kueue_exports_is_what_the_rules_ask_for(busy: SharedCluster) -> None:
    """By the names of the running version, but for one that a later version brings."""
    text = " ".join(query for _, query in ALL)
    asked = set(re.findall(r"kueue_[a-z_]+", text)) - {"kueue_cluster_queue_resource_pending"}
    names = await ask(busy.prometheus_url, 'group by (__name__) ({__name__=~"kueue_.+"})')

    missing = asked - {one["metric"]["__name__"] for one in names}
    assert missing == set()


async def test_our_own_metrics_in_queries_exist(busy: SharedCluster) -> None:
    """In the exposition of the running process, with or without samples."""
    text = " ".join(query for _, query in ALL)
    asked = set(re.findall(r"\bvk_provider_[a-z_]+", text))
    (target,) = json.loads(busy.targets.read_text())[0]["targets"]
    exposed = await _exposition(target)
    known = {name.removesuffix("_total") for name in re.findall(r"# HELP (\S+)", exposed)}

    found = {re.sub(r"_(total|bucket)$", "", name) for name in asked}
    assert found - known == set()


async def _exposition(target: str) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{target}/metrics") as response,
    ):
        return await response.text()
