"""One stage for each backend: a node before it, and what a test can do to the service behind.

Feeds `test_every_backend`, whose scenarios are the same for all of them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from vk_provider_modal.simulator import Options as ModalOptions
from vk_provider_modal.simulator import running as modal_running
from vk_provider_runpod.simulator import Options as RunPodOptions
from vk_provider_runpod.simulator import running as runpod_running

from tests.e2e.gate import gate
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.other import Other, backend
from tests.e2e.workloads import Json, Workloads, pod_template, steered
from tests.rig.control_plane import ControlPlane

TOKENS = ("ak-every-backend", "as-every-backend")
API_KEY = "rpa_every_backend_key_0123456789"
QUICK: Mapping[str, Any] = {
    "door": {"firstCooldownSeconds": 1, "maxCooldownSeconds": 2, "deniedCooldownSeconds": 2},
    # A killed leader's Lease must run out before the next start may lead.
    "leaderElection": {
        "namespace": "vk-provider",
        "leaseDurationSeconds": 6,
        "renewDeadlineSeconds": 4,
        "retryPeriodSeconds": 1,
    },
}
REFUSED_FIELD = "spec.volumes[0].hostPath"
SCRIPT = "echo container started; echo keeper $PPID; while sleep 0.2; do :; done"
PLAIN: Json = {"name": "main", "image": "registry.example/app:1"}
SHELL: Json = {
    **PLAIN,
    "command": ["sh", "-c", SCRIPT],
}


class Stage:
    """A node with one backend. Without a word otherwise it is the fake."""

    outlives_node = False
    """Whether instances are somewhere else than in the node's own process."""
    cannot_exec: str = ""
    """What a user is told who wants to run a command; empty where it can be run."""
    lasting: Json = PLAIN
    """A container that runs on and says that it started."""

    def __init__(self, node: NodeUnderTest) -> None:
        self.node = node

    def template(self, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
        """A pod for this node."""
        return pod_template(self.node.name, annotations, containers=[dict(self.lasting)], **spec)

    def mortal(self) -> Json:
        """A pod that can be lost."""
        return self.template()

    def refused(self) -> Json:
        """A pod that wants a folder of its host, which nobody offers."""
        return self.template(volumes=[{"name": "host", "hostPath": {"path": "/var/log"}}])

    async def ids(self) -> set[str]:
        """What is there, as the service itself knows it; nothing where that is the node."""
        return set()

    async def lose(self, workloads: Workloads, home: Json) -> None:
        """Let the instance of a mortal pod vanish."""

    async def go(self) -> None:
        """The service goes away, with all that it holds."""
        self.node.fail(list="Unavailable", create="Unavailable", delete="Unavailable")

    async def come_back(self) -> None:
        """And is there again."""
        self.node.fail()


class FakeStage(Stage):
    """The fake: in the node's process, its life written on the pod."""

    cannot_exec = "can't run commands in containers"

    def mortal(self) -> Json:
        return self.template(steered(vanish_after_seconds=3))

    def refused(self) -> Json:
        return self.template(steered(unsupported=REFUSED_FIELD))


class ProcessStage(Stage):
    """Processes of this machine, children of the node."""

    lasting = SHELL

    async def lose(self, workloads: Workloads, home: Json) -> None:
        name = home["metadata"]["name"]
        words = (await workloads.kubectl("logs", name)).split()
        os.kill(int(words[words.index("keeper") + 1]), signal.SIGKILL)


@dataclass
class Service:
    """What the stage of a service that is asked over the network needs of it."""

    ids: Callable[[], set[str]]
    vanish: Callable[[str], None]
    gate: Any = None


class CloudStage(Stage):
    """A cloud's simulator behind a gate."""

    outlives_node = True

    def __init__(self, node: NodeUnderTest, service: Service) -> None:
        super().__init__(node)
        self._service = service

    async def ids(self) -> set[str]:
        return self._service.ids()

    async def lose(self, workloads: Workloads, home: Json) -> None:
        self._service.vanish(home["metadata"]["uid"])

    async def go(self) -> None:
        await self._service.gate.close()

    async def come_back(self) -> None:
        await self._service.gate.open()


class OtherClusterStage(Stage):
    """Another cluster, whose containers are real processes."""

    outlives_node = True
    lasting = SHELL

    def __init__(self, node: NodeUnderTest, other: Other) -> None:
        super().__init__(node)
        self._other = other

    async def ids(self) -> set[str]:
        mine = "vk-provider.dev/home-node"
        pods = await self._other.pods()
        labels = [(pod["metadata"]["uid"], pod["metadata"]["labels"]) for pod in pods]
        return {uid for uid, found in labels if found[mine] == self.node.name}

    async def lose(self, workloads: Workloads, home: Json) -> None:
        name = (await self._other.pod(home))["metadata"]["name"]
        await self._other.bed.request_json("DELETE", f"{self._other.path}/pods/{name}")

    async def go(self) -> None:
        await self._other.bed.stop("kube-apiserver", grace=0.5)

    async def come_back(self) -> None:
        await self._other.bed.start_apiserver()


@dataclass(frozen=True)
class Beds:
    """What stages are built on."""

    home: ControlPlane
    folder: Path
    other: Other
    spec: Mapping[str, Any] = field(default_factory=lambda: QUICK)

    def node(self, name: str, provider: str, **config: Any) -> NodeUnderTest:
        """A node with one backend, named after it."""
        block = {"name": name, "provider": provider, "config": config}
        return NodeUnderTest(self.home, f"every-{name}", {**self.spec, "backends": [block]})

    def secret(self, name: str, value: str | bytes) -> dict[str, str]:
        """A file with a secret, as a configuration names it."""
        file = self.folder / name
        file.write_bytes(value.encode() if isinstance(value, str) else value)
        return {"file": str(file)}


@asynccontextmanager
async def fake(beds: Beds) -> AsyncIterator[Stage]:
    """The fake provider."""
    async with beds.node("fake", "fake") as node:
        yield FakeStage(node)


@asynccontextmanager
async def process(beds: Beds) -> AsyncIterator[Stage]:
    """The process provider."""
    faults = beds.home.folder / "every-process-a-faults.json"
    async with beds.node("process", "process", service="e", faultsFile=str(faults)) as node:
        assert node.faults_file == faults
        yield ProcessStage(node)


@asynccontextmanager
async def runpod(beds: Beds) -> AsyncIterator[Stage]:
    """RunPod's simulator, whose pods have SSH servers."""
    options = RunPodOptions(pull_seconds=0.5, api_key=API_KEY, runs_exec=True)
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    async with runpod_running(options) as simulator, gate(simulator.url) as door:
        model, clock = simulator.state.model, simulator.state.clock

        def vanish(uid: str) -> None:
            for pod in list(model.pods.values()):
                if uid in pod.env.values():
                    model.vanish(pod.id, clock.now())

        def ids() -> set[str]:
            return {pod.id for pod in model.pods.values() if pod.deleted_at is None}

        node = beds.node(
            "runpod", "runpod", baseUrl=door.url, apiKey=beds.secret("runpod", API_KEY),
            listLagSeconds=1, ssh={"privateKey": beds.secret("ssh", key)},
        )  # fmt: skip
        async with node:
            yield CloudStage(node, Service(ids, vanish, door))


@asynccontextmanager
async def modal(beds: Beds) -> AsyncIterator[Stage]:
    """Modal's simulator, through the real SDK."""
    options = ModalOptions(start_seconds=0.5, tokens=TOKENS, runs_exec=True)
    async with modal_running(options) as simulator, gate(simulator.url) as door:
        model, clock = simulator.state.model, simulator.state.clock

        def vanish(uid: str) -> None:
            for sandbox in list(model.sandboxes.values()):
                if uid in sandbox.wish.tags.values():
                    model.vanish(sandbox, clock.now())

        token_id, secret = (beds.secret(f"modal-{n}", each) for n, each in enumerate(TOKENS))
        node = beds.node(
            "modal", "modal", baseUrl=door.url, tokenId=token_id, tokenSecret=secret,
            listLagSeconds=1, requestTimeoutSeconds=5,
        )  # fmt: skip
        async with node:
            yield CloudStage(node, Service(lambda: set(model.living), vanish, door))


@asynccontextmanager
async def kubernetes(beds: Beds) -> AsyncIterator[Stage]:
    """A second control plane."""
    config = backend(beds.other, "real")["config"]
    async with beds.node("kubernetes", "kubernetes", **config) as node:
        yield OtherClusterStage(node, beds.other)


STAGES = {each.__name__: each for each in (fake, process, runpod, modal, kubernetes)}
"""By the name of the provider."""
