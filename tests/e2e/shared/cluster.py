"""One cluster for training and inference, with everything around it: Kueue, Prometheus, exporters.

Feeds the tests of what looks at such a cluster and sets it right: GPU health, quotas, the checkup
of Kueue, and all queries that are shipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.gpu_metrics import GpuMetrics, gpu_metrics
from tests.rig.kueue import Kueue, create, kueue, queue_of
from tests.rig.kwok import Stages
from tests.rig.polling import eventually
from tests.rig.ports import Ports
from tests.rig.prometheus import prometheus
from tests.rig.recipes import CONTROL_PLANE
from tests.rig.state_metrics import StateMetrics, state_metrics

GPU = "nvidia.com/gpu"
POOL = {"pool": "home"}
HOME = ("home-1", "home-2", "home-3", "home-4")
GPUS_PER_NODE = 2
RULES = sorted((Path(__file__).parents[3] / "deploy" / "monitoring" / "rules").glob("*.yaml"))
CLASSES: Mapping[str, tuple[int, str]] = {
    "training": (100_000, "PreemptLowerPriority"),
    "inference": (1_000, "Never"),
}
BUILT = (*CONTROL_PLANE, "kwok", "kueue")
"""The programs of it, as a test module's ``PROGRAMS``: they are built before its first test."""
_SCRAPER = "scraper"


@dataclass
class SharedCluster:
    """What runs, and where it answers."""

    bed: ControlPlane
    kueue: Kueue
    gpus: GpuMetrics
    states: StateMetrics
    prometheus_url: str
    targets: Path
    """Prometheus reads further targets from here, as a list of ``host:port``."""
    kubeconfig: Path = Path()
    """Of the shipped identity."""

    async def queue(self, name: str, gpus: int, **spec: Any) -> None:
        """Create a training queue with this quota, and wait until it is active."""
        await create(self.bed, queue_of(name, {GPU: str(gpus)}, POOL, **spec))

    async def quota(self, name: str) -> int:
        """The nominal quota of a queue."""
        found = await self.bed.get_json(f"{QUEUES}/{name}")
        (group,) = found["spec"]["resourceGroups"]
        return int(group["flavors"][0]["resources"][0]["nominalQuota"])

    async def drop(self, name: str) -> None:
        """Remove a queue and its flavor; returns when both are gone, workloads and all."""
        local = f"{API}/namespaces/default/localqueues/{name}"
        for path in (local, f"{QUEUES}/{name}", f"{API}/resourceflavors/{name}"):
            await self.bed.request_json("DELETE", path)
            await eventually(partial(self._is_gone, path), f"{path} gone", seconds=40)

    async def _is_gone(self, path: str) -> bool:
        try:
            await self.bed.get_json(path)
        except ApiError as error:
            return error.status == 404
        return False

    async def events(self, name: str, reason: str) -> list[str]:
        """Messages of Events about a cluster-wide object."""
        found = (await self.bed.get_json("/api/v1/namespaces/default/events"))["items"]
        return [
            str(one["message"])
            for one in found
            if one["involvedObject"]["name"] == name and one["reason"] == reason
        ]

    async def event(self, name: str, reason: str, words: str) -> str:
        """Wait for the first Event with this reason and these words: it may come after the deed."""

        async def probe() -> list[str]:
            return [one for one in await self.events(name, reason) if words in one]

        found = await eventually(probe, f"Event {reason} of {name}: {words}", seconds=30)
        return found[0]


API = "/apis/kueue.x-k8s.io/v1beta2"
QUEUES = f"{API}/clusterqueues"


@asynccontextmanager
async def shared_cluster() -> AsyncIterator[SharedCluster]:
    """Start everything; eight GPUs, no workload."""
    with Ports() as ports:
        port = ports.take()
        shown = [f"--secure-port={port}", "--bind-address=127.0.0.1"]
        async with (
            ControlPlane(audit=False, scheduler_args=shown) as bed,
            kueue(bed) as queues,
            _measured(bed, queues, port) as running,
        ):
            yield running


@asynccontextmanager
async def _measured(bed: ControlPlane, queues: Kueue, port: int) -> AsyncIterator[SharedCluster]:
    """Home nodes, priorities, and what measures them."""
    for name in HOME:
        room = {GPU: str(GPUS_PER_NODE)}
        await bed.add_home_node(name, room, POOL, stages=Stages(complete_jobs=False))
    await bed.apply([_priority(name, *how) for name, how in CLASSES.items()])
    token = await _scrapers_token(bed)
    async with gpu_metrics(bed) as gpus, state_metrics(bed) as states:
        gpus.temperatures |= dict.fromkeys(HOME, 60.0)
        targets = bed.folder / "targets.json"
        targets.write_text("[]")
        config = _scrapes(bed, queues, [gpus.port, states.port], targets, token)
        config["scrape_configs"].append(_scheduler(port, token))
        async with prometheus(bed, bed.free_port(), config, RULES) as url:
            yield SharedCluster(bed, queues, gpus, states, url, targets)


def _priority(name: str, value: int, policy: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


async def _scrapers_token(bed: ControlPlane) -> str:
    """A token that may read /metrics, as Kueue and the API server want one."""
    name = {"metadata": {"name": _SCRAPER}}
    await bed.request_json("POST", "/api/v1/namespaces/default/serviceaccounts", name)
    role = {"kind": "ClusterRole", "name": _SCRAPER, "apiGroup": "rbac.authorization.k8s.io"}
    subject = {"kind": "ServiceAccount", "name": _SCRAPER, "namespace": "default"}
    rule = {"nonResourceURLs": ["/metrics", "/metrics/resources"], "verbs": ["get"]}
    api = "rbac.authorization.k8s.io/v1"
    await bed.apply(
        [
            {"apiVersion": api, "kind": "ClusterRole", **name, "rules": [rule]},
            {
                "apiVersion": api,
                "kind": "ClusterRoleBinding",
                **name,
                "roleRef": role,
                "subjects": [subject],
            },
        ]
    )
    file = await bed.service_account_kubeconfig("default", _SCRAPER)
    kubeconfig = yaml.safe_load(file.read_text())
    return str(kubeconfig["users"][0]["user"]["token"])


def _scrapes(
    bed: ControlPlane, queues: Kueue, ports: list[int], targets: Path, token: str
) -> dict[str, Any]:
    """prometheus.yml: exporters, Kueue, the API server, and whatever is named later."""
    secured = {
        "scheme": "https",
        "authorization": {"credentials": token},
        "tls_config": {"ca_file": str(bed.ca_file)},
    }
    exporters = [f"127.0.0.1:{port}" for port in ports]
    return {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "scrape_configs": [
            # The exporters' own `instance` is the node's.
            {"job_name": "exporters", "honor_labels": True, **_static(*exporters)},
            {"job_name": "kueue", **secured, **_static(_host(queues.metrics_url))},
            {"job_name": "apiserver", **secured, **_static(_host(bed.url))},
            {
                "job_name": "vk-provider",
                "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
            },
        ],
    }


def _scheduler(port: int, token: str) -> dict[str, Any]:
    """What every pod requests, by the scheduler itself; its certificate is its own."""
    return {
        "job_name": "kube-scheduler-resources",
        "metrics_path": "/metrics/resources",
        "scheme": "https",
        "authorization": {"credentials": token},
        "tls_config": {"insecure_skip_verify": True},
        **_static(f"127.0.0.1:{port}"),
    }


def _static(*targets: str) -> dict[str, Any]:
    return {"static_configs": [{"targets": list(targets)}]}


def _host(url: str) -> str:
    return url.removeprefix("https://").removesuffix("/metrics")
