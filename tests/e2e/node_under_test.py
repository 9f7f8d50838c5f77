"""A virtual node as a user runs it: the command `vk-provider run` with the identity of `deploy/`.

async with NodeUnderTest(bed, "burst", {"tickSeconds": 1}) as node:
    await node.restart()

It takes a bed of `tests.rig`; what it offers feeds the end-to-end tests, the demo and the chaos
tests alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.rig import identity
from tests.rig.access import ADMIN_GROUP, ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.pki import Pair
from tests.rig.polling import eventually
from tests.rig.processes import ProcessError

COMMAND = Path(sys.executable).parent / "vk-provider"
USER = identity.USER
READY_SECONDS = 60.0
FAKE: Sequence[Mapping[str, Any]] = ({"name": "fake", "provider": "fake"},)
CAPACITY = {"cpu": "1000", "memory": "4Ti", "nvidia.com/gpu": "64", "pods": "500"}

RUNNING: weakref.WeakSet[NodeUnderTest] = weakref.WeakSet()
"""Those that have been started and have not left: whose log explains a failure."""
_kubeconfigs: weakref.WeakKeyDictionary[ControlPlane, Path] = weakref.WeakKeyDictionary()


async def kubeconfig_of(bed: ControlPlane) -> Path:
    """The kubeconfig of the shipped identity; it is installed once per bed."""
    if bed not in _kubeconfigs:
        _kubeconfigs[bed] = await identity.install(bed)
    return _kubeconfigs[bed]


class NodeUnderTest:
    """One replica of one virtual node. Two with the same name and different `replica` compete.

    `spec` is laid over a small default; `process` is its name in the bed. `beside` are further
    documents of the configuration.
    """

    def __init__(
        self,
        bed: ControlPlane,
        name: str,
        spec: Mapping[str, Any] | None = None,
        *,
        replica: str = "a",
        wait: bool = True,
        beside: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.bed = bed
        self.name = name
        self.process = f"{name}-{replica}"
        self.faults_file = bed.folder / f"{self.process}-faults.json"
        self.port, self.plain_port = bed.free_port(), bed.free_port()
        self._wait = wait
        self._log_from = 0
        self._pair: Pair = bed.serving_pair("127.0.0.1", name=self.process)
        self._given = dict(spec or {})
        self._beside = beside

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    @property
    def path(self) -> str:
        """The Node in the API."""
        return f"/api/v1/nodes/{self.name}"

    @property
    def lease_path(self) -> str:
        """The Node's Lease in the API."""
        return f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{self.name}"

    @property
    def log(self) -> str:
        """What all runs of the process have printed."""
        file = self.bed.log_file(self.process)
        return file.read_text(errors="replace") if file.exists() else ""

    def document(self) -> dict[str, Any]:
        """The configuration document of the node."""
        server = {
            "port": self.port,
            "plainPort": self.plain_port,
            "address": "127.0.0.1",
            "tls": {"certFile": str(self._pair.certificate), "keyFile": str(self._pair.key)},
        }
        spec: dict[str, Any] = {
            "capacity": CAPACITY,
            "tickSeconds": 1,
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": server,
            "backends": [dict(backend) for backend in FAKE],
        } | self._given
        for backend in spec["backends"]:
            if backend["provider"] == "fake":
                backend["config"] = {"faultsFile": str(self.faults_file)} | backend.get(
                    "config", {}
                )
        return {
            "apiVersion": "vk-provider.dev/v1alpha1",
            "kind": "VirtualNode",
            "metadata": {"name": self.name},
            "spec": spec,
        }

    async def start(self) -> None:
        """Start the process; returns when it leads and its Node is Ready."""
        RUNNING.add(self)
        file = self.bed.folder / f"{self.process}.yaml"
        file.write_text(yaml.safe_dump_all([self.document(), *self._beside]))
        kubeconfig = await kubeconfig_of(self.bed)
        self._log_from = len(self.log)
        command: list[str | Path] = [COMMAND, "run", "-f", file, "--kubeconfig", kubeconfig]
        await self.bed.start(self.process, command)
        if self._wait:
            await self.until_leading()

    async def until_leading(self) -> None:
        """Wait until this replica leads and the Node is Ready; fails at once if it ends."""
        ended = asyncio.create_task(self.bed.wait(self.process))
        leading = asyncio.create_task(
            eventually(self._leads, f"{self.process} leads", seconds=READY_SECONDS)
        )
        try:
            await asyncio.wait({ended, leading}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                tail = self.bed.log_tail(self.process)
                raise ProcessError(f"{self.process} ended with {ended.result()}:\n{tail}")
            await leading
        finally:
            for task in (ended, leading):
                task.cancel()
            await asyncio.gather(ended, leading, return_exceptions=True)

    async def stop(self) -> int:
        """SIGTERM; the exit code."""
        return await self.bed.stop(self.process)

    async def kill(self) -> int:
        """SIGKILL."""
        return await self.bed.kill(self.process)

    async def restart(self, *, kill: bool = False) -> None:
        """Stop (or kill) the process and start it again."""
        await (self.kill() if kill else self.stop())
        await self.start()

    async def leave(self) -> None:
        """Stop the process if it runs, and delete the Node, so that nothing is put there."""
        RUNNING.discard(self)
        with contextlib.suppress(ProcessError):  # it has ended already, as a test may have wanted
            await self.stop()
        try:
            await self.bed.request_json("DELETE", self.path)
        except ApiError as error:
            if error.status != 404:
                raise

    def fail(self, **faults: str) -> None:
        """Let the fake service fail: `create="OutOfCapacity"`; no argument heals it."""
        self.faults_file.unlink(missing_ok=True)
        if faults:
            draft = self.faults_file.with_suffix(".draft")
            draft.write_text(json.dumps(faults))
            draft.rename(self.faults_file)

    async def node(self) -> dict[str, Any]:
        """The Node as the API server has it."""
        found: dict[str, Any] = await self.bed.get_json(self.path)
        return found

    async def leader(self) -> str:
        """Who holds the leader election's Lease; empty if it was given up."""
        group = "/apis/coordination.k8s.io/v1/namespaces"
        path = f"{group}/{identity.NAMESPACE}/leases/vk-provider-{self.name}"
        lease = await self.bed.get_json(path)
        return str(lease["spec"].get("holderIdentity") or "")

    async def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Every sample of `/metrics`, by name: its labels and value."""
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families((await self.plain("/metrics"))[1]):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
        return found

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that carry these labels."""
        return sum(
            value
            for found, value in (await self.metrics()).get(name, [])
            if labels.items() <= found.items()
        )

    async def plain(self, path: str) -> tuple[int, str]:
        """GET from the plain port: status and text."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.plain_port}{path}") as response,
        ):
            return response.status, await response.text()

    async def kubelet(self, path: str, *, known: bool = True) -> tuple[int, str]:
        """GET from the kubelet port, as an administrator or as nobody: status and text."""
        trust = ssl.create_default_context(cafile=str(self.bed.ca_file))
        if known:
            pair = self.bed.authority.issue("kubelet-caller", "caller", [ADMIN_GROUP])
            trust.load_cert_chain(pair.certificate, pair.key)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{self.port}{path}", ssl=trust) as response,
        ):
            return response.status, await response.text()

    async def _leads(self) -> bool:
        if "is up, kubelet port" not in self.log[self._log_from :]:
            return False
        try:
            status, _ = await self.plain("/readyz")
        except aiohttp.ClientError:
            return False
        return status == 200 and condition(await self.node(), "Ready").get("status") == "True"


def condition(thing: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A condition of a pod, node, job; empty if it has none of that type."""
    for one in thing.get("status", {}).get("conditions") or []:
        if one["type"] == kind:
            return dict(one)
    return {}
