"""Where crashes are staged: a control plane, one RunPod account, and two nodes that share it.

The node under test runs in replicas that are started again at once whenever they end, as a kubelet
would do it; the sibling runs undisturbed. Strangers rent in the same account: some have nothing to
do with us, some look like ours and are another cluster's, or a node's that is not configured here.
Fed by ``crashes``; offers it the cluster, the account and the processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import yaml

from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

NODE = "burst"
SIBLING = "sibling"
NAMESPACE = "default"
DEPLOYMENT = "web"
STATEFUL_SET = "db"
COMPANION = "companion"
COMPANIONS = 2
LAG_SECONDS = 5.0
LATENCY_MS = (50, 500)
STRANGERS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. ``speed`` is the account's clock: its list lag passes so many times faster."""

    kills: int = 50
    seed: int = 0
    speed: float = 1.0
    replicas: int = 2
    terminate: bool = False
    """End replicas with SIGTERM instead of SIGKILL."""
    troubles: tuple[str, ...] = ()
    """Rounds of ``crash_troubles`` to be played among the others, or alone."""
    only_troubles: bool = False

    @property
    def lag_seconds(self) -> float:
        """The account's list lag in real seconds."""
        return LAG_SECONDS / self.speed

    @property
    def believed_lag_seconds(self) -> float:
        """What a careful operator configures: the lag, the longest create, and some more."""
        return self.lag_seconds + LATENCY_MS[1] / 1000 + 0.5


class Account:
    """The simulated account, through its back door."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """GET, or POST a body."""
        return await self.call("GET" if body is None else "POST", path, body)

    async def call(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Any request to the back door; raises RuntimeError with what it answered."""
        async with self._session.request(verb, f"{self.url}/_sim{path}", json=body) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise RuntimeError(f"{verb} {path}: {text}")
            return json.loads(text)

    async def now(self) -> float:
        """The account's clock."""
        return float((await self.ask("/clock"))["now"])

    async def requests(self, after: int = -1) -> list[dict[str, Any]]:
        """Every call that came to the service after that one."""
        return list((await self.ask(f"/requests?after={after}"))["requests"])

    async def is_up(self) -> bool:
        """Whether it answers."""
        try:
            await self.ask("/clock")
        except aiohttp.ClientError:
            return False
        return True


class Replica:
    """A process that is started again whenever it ends."""

    def __init__(self, bed: ControlPlane, name: str, argv: Sequence[str]) -> None:
        self.name = name
        self.exits: list[int] = []
        self._bed = bed
        self._argv = argv
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Run it, and run it again, until :meth:`close`."""
        self._task = asyncio.create_task(self._supervise(), name=f"supervise {self.name}")

    async def close(self) -> None:
        """Leave it as it is; nobody starts it again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _supervise(self) -> None:
        environment = {**os.environ, "RUNPOD_API_KEY": "the-simulator-takes-any-key"}
        while True:
            await self._bed.start(self.name, self._argv, env=environment)
            self.exits.append(await self._bed.wait(self.name))


@dataclass(slots=True)
class CrashStage:
    """The parts, and the questions that several rounds ask."""

    plan: Plan
    bed: ControlPlane
    account: Account
    replicas: list[Replica]
    strangers: frozenset[str] = frozenset()

    async def pods(self, label: str | None = None) -> list[dict[str, Any]]:
        """The pods of the namespace, or those of one workload."""
        query = f"?labelSelector=app%3D{label}" if label else ""
        found = await self.bed.get_json(f"/api/v1/namespaces/{NAMESPACE}/pods{query}")
        return list(found["items"])

    async def scale(self, kind: str, name: str, replicas: int) -> None:
        """Set a workload's replicas."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}/{name}"
        await self.bed.request_json(
            "PATCH",
            path,
            {"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
        )

    async def delete_pod(self, pod: Mapping[str, Any], grace: int | None = None) -> None:
        """Delete one pod, by force with a grace of 0."""
        name = pod["metadata"]["name"]
        options = "" if grace is None else f"?gracePeriodSeconds={grace}"
        await self.bed.request_json(
            "DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}{options}"
        )

    async def leader(self) -> Replica | None:
        """The living replica that holds the node's Lease."""
        path = "/apis/coordination.k8s.io/v1/namespaces"
        lease = await self.bed.get_json(f"{path}/{identity.NAMESPACE}/leases/vk-provider-{NODE}")
        holder = lease["spec"].get("holderIdentity") or ""
        for replica in self.replicas:
            if f"_{self.bed.pids.get(replica.name)}_" in holder and self._lives(replica):
                return replica
        return None

    def _lives(self, replica: Replica) -> bool:
        try:
            os.kill(self.bed.pids[replica.name], 0)
        except ProcessLookupError:
            return False
        return True

    async def end(self, replica: Replica) -> None:
        """Kill a replica now; its supervisor starts it again."""
        number = signal.SIGTERM if self.plan.terminate else signal.SIGKILL
        await self.bed.signal(replica.name, number)


@asynccontextmanager
async def set_up(plan: Plan) -> AsyncIterator[CrashStage]:
    """Everything started: both nodes Ready, the sibling's pods Running, strangers renting."""
    async with ControlPlane(audit=False) as bed, aiohttp.ClientSession() as session:
        account = await _start_account(plan, bed, session)
        kubeconfig = str(await identity.install(bed))
        names = [f"{NODE}-{number}" for number in range(plan.replicas)]
        replicas = [
            Replica(bed, name, _command(plan, bed, account, (name, NODE), kubeconfig))
            for name in names
        ]
        sibling = Replica(
            bed, SIBLING, _command(plan, bed, account, (SIBLING, SIBLING), kubeconfig)
        )
        stage = CrashStage(plan, bed, account, replicas)
        try:
            for each in (*replicas, sibling):
                each.start()
            stage.strangers = await _let_strangers_in(bed, account)
            await bed.apply("\n---\n".join(_workloads()))
            await _until_companions_run(stage)
            yield stage
        finally:
            for each in (*replicas, sibling):
                await each.close()


async def _start_account(plan: Plan, bed: ControlPlane, session: aiohttp.ClientSession) -> Account:
    port = bed.free_port()
    low, high = LATENCY_MS
    flags = {
        "port": port,
        "speed": plan.speed,
        "pull-seconds": 1,
        "list-lag-seconds": LAG_SECONDS,
        "create-latency-ms": f"{low}-{high}",
        "page-size": 7,
        "foreign-pods": STRANGERS,
        "seed": plan.seed,
    }
    words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    await bed.start("simulator", [*_program(), "simulate", "runpod", *words])
    account = Account(f"http://127.0.0.1:{port}", session)
    await eventually(account.is_up, "the simulator answers", interval=0.05)
    return account


async def _let_strangers_in(bed: ControlPlane, account: Account) -> frozenset[str]:
    """Those that look like ours: another cluster's of the same names, and a node's that is gone."""
    cluster = (await bed.get_json("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    for number, (owner, node) in enumerate(
        (("another-cluster", NODE), ("another-cluster", SIBLING), (cluster, "retired"))
    ):
        stamp = {
            "CLUSTER_ID": owner,
            "NODE_NAME": node,
            "POD_NAMESPACE": NAMESPACE,
            "POD_NAME": f"{DEPLOYMENT}-{number}",
            "POD_UID": f"11111111-2222-3333-4444-55555555555{number}",
            "CONTAINER_NAME": "server",
        }
        env = {f"VK_PROVIDER_{key}": value for key, value in stamp.items()}
        await account.ask("/pods", {"name": f"looks-like-ours-{number}", "env": env})
    # Nothing of ours was asked for yet: everything that is there is somebody else's.
    return frozenset(pod["id"] for pod in (await account.ask("/pods"))["pods"])


async def _until_companions_run(stage: CrashStage) -> None:
    try:
        await eventually(lambda: _companions_run(stage), "the sibling's pods Running")
    except TimeoutError as error:
        raise TimeoutError(f"{error}\n{stage.bed.log_tail(SIBLING, 40)}") from error


async def _companions_run(stage: CrashStage) -> bool:
    pods = await stage.pods(COMPANION)
    return [pod["status"]["phase"] for pod in pods] == ["Running"] * COMPANIONS


def _program() -> list[str]:
    return [sys.executable, "-m", "vk_provider"]


def _command(
    plan: Plan, bed: ControlPlane, account: Account, names: tuple[str, str], kubeconfig: str
) -> list[str]:
    name, node = names
    file = bed.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(_configuration(plan, bed, account, node), sort_keys=False))
    flags = ["run", "-f", str(file), "--kubeconfig", kubeconfig, "--log-level", "debug"]
    return [*_program(), *flags]


def _configuration(plan: Plan, bed: ControlPlane, account: Account, node: str) -> dict[str, Any]:
    """As an operator would write it; the election is quick, so that a crash costs one second."""
    pair = bed.serving_pair("127.0.0.1")
    election: dict[str, Any] = {"namespace": identity.NAMESPACE}
    if node == NODE:
        election |= {
            "leaseDurationSeconds": 1,
            "renewDeadlineSeconds": 0.8,
            "retryPeriodSeconds": 0.2,
        }
    config = {
        "apiKey": {"env": "RUNPOD_API_KEY"},
        "baseUrl": account.url,
        "gpuTypes": ["NVIDIA L40S", "NVIDIA A100 80GB PCIe"],
        "listLagSeconds": plan.believed_lag_seconds,
        "requestsPerMinute": 6000,
    }
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": node},
        "spec": {
            "capacity": {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "64", "pods": "64"},
            "labels": {"part": node},
            "tickSeconds": max(0.4, 1 / plan.speed),
            "leaderElection": election,
            "server": {
                "address": "127.0.0.1",
                "port": bed.free_port(),
                "plainPort": bed.free_port(),
                "tls": {"certFile": str(pair.certificate), "keyFile": str(pair.key)},
            },
            "backends": [{"name": "runpod", "provider": "runpod", "config": config}],
        },
    }


def _workloads() -> list[str]:
    return [
        _workload("Deployment", COMPANION, SIBLING, COMPANIONS, ""),
        _workload("Deployment", DEPLOYMENT, NODE, 0, ""),
        # Its pods come back under the same names with other UIDs.
        _workload(
            "StatefulSet", STATEFUL_SET, NODE, 0, "serviceName: db\n  podManagementPolicy: Parallel"
        ),
    ]


def _workload(kind: str, name: str, node: str, replicas: int, more: str) -> str:
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  {more}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      nodeSelector: {{part: {node}}}
      terminationGracePeriodSeconds: 5
      tolerations: [{{key: virtual-kubelet.io/provider, operator: Exists}}]
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          resources: {{limits: {{nvidia.com/gpu: "1"}}}}
"""
