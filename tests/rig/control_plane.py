"""A real Kubernetes control plane as an async context manager.

async with ControlPlane() as bed:
    await bed.add_home_node("home-1")
    print(await bed.kubectl("get", "nodes"))
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Self

import aiohttp

from tests.rig import audit as audit_log
from tests.rig import builds, components
from tests.rig.access import ADMIN_GROUP, Access, ApiError
from tests.rig.kwok import HomeNodes, Stages
from tests.rig.pki import Authority, service_account_keys
from tests.rig.polling import eventually
from tests.rig.ports import Ports
from tests.rig.processes import ProcessError, Processes
from tests.rig.recipes import CONTROL_PLANE, kube_version

_START_SECONDS = 120.0
_SERVER_NAMES = ("127.0.0.1", "localhost", "kubernetes.default.svc", "kubernetes", "10.0.0.1")


class ControlPlane(Access, Processes):
    """etcd, API server, controller manager and scheduler with RBAC, Node authorizer, audit log.

    Everything lives in one temp folder and on one leash: nothing outlives the caller.
    """

    def __init__(
        self,
        *,
        version: str | None = None,
        audit: bool = True,
        address: str = "127.0.0.1",
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        scheduler_args: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.kube_version = version or kube_version()
        self.home = HomeNodes(self)
        self._audit = audit
        self._address = address
        self._extra = {
            "kube-apiserver": apiserver_args,
            "kube-controller-manager": controller_manager_args,
            "kube-scheduler": scheduler_args,
        }
        self._ports = Ports(address)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        # Built before anything runs: it may take minutes, in a thread so that the loop lives on.
        wanted = (CONTROL_PLANE, self.kube_version)
        self._binaries = await asyncio.to_thread(builds.build_all, *wanted)
        async with self._stack:
            self._stack.callback(self._ports.close)
            await super().__aenter__()
            self._stack.push_async_exit(super().__aexit__)
            self._stack.push_async_callback(self.close_session)
            self._prepare()
            await self._start_all()
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def free_port(self) -> int:
        """Return a port that is reserved for the caller until the bed ends."""
        return self._ports.take()

    async def start_apiserver(self) -> None:
        """Start the API server, the first time or after `stop("kube-apiserver")` or `kill`."""
        extra = self._extra["kube-apiserver"]
        flags = components.apiserver(
            self._layout, self.kube_version, audit=self._audit, extra=extra
        )
        await self.start("kube-apiserver", [self._binaries["kube-apiserver"], *flags], stage=1)
        await self._until(self._ready, "kube-apiserver")

    async def restart_apiserver(self) -> None:
        """Stop the API server and start it again on the same port; returns when it is ready."""
        # It stops listening at once, but waits for 10 s for its clients' watches to end.
        await self.stop("kube-apiserver", grace=0.5)
        await self.start_apiserver()

    async def add_home_node(
        self,
        name: str,
        capacity: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        taints: Sequence[Mapping[str, str]] = (),
        stages: Stages | None = None,
    ) -> None:
        """Add a node that kwok plays, Ready on return; `stages` counts for the first one only."""
        await self.home.start(stages)
        await self.home.add(name, capacity, labels, taints=taints)

    async def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace; on return pods can be created in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        await self.request_json("POST", "/api/v1/namespaces", {"metadata": metadata})
        await eventually(lambda: self._takes_pods(name), f"namespace {name}", interval=0.02)

    def audit_mark(self) -> int:
        """Return the present end of the audit log, for `audit_events(since=…)`."""
        path = self._layout.audit_log
        return path.stat().st_size if path.exists() else 0

    async def settled_audit_events(self, since: int = 0) -> list[audit_log.Event]:
        """Return the requests up to now; waits until all that were answered are in the log."""
        marker = f"/version?marker={uuid.uuid4()}"
        await self.get_json(marker)

        async def arrived() -> list[audit_log.Event]:
            events = self.audit_events(since)
            return events if any(event["requestURI"] == marker for event in events) else []

        events = await eventually(arrived, "the marker in the audit log", seconds=10)
        return [event for event in events if event["requestURI"] != marker]

    def audit_events(self, since: int = 0) -> list[audit_log.Event]:
        """Return the requests in the audit log as it is, one event per request."""
        return audit_log.read(self._layout.audit_log, since)

    def _prepare(self) -> None:
        """Write certificates, kubeconfigs and the audit policy; choose ports."""
        pki = self.folder / "pki"
        pki.mkdir(mode=0o700)
        self.authority = Authority(pki)
        self._layout = components.Layout(
            folder=self.folder,
            etcd_client_port=self._ports.take(),
            etcd_peer_port=self._ports.take(),
            api_port=self._ports.take(),
            ca=self.authority.files,
            server=self.authority.issue(
                "apiserver", "kube-apiserver", hosts=[*_SERVER_NAMES, self._address]
            ),
            kubelet_client=self.authority.issue(
                "kubelet-client", "kube-apiserver-kubelet-client", [ADMIN_GROUP]
            ),
            front_proxy=self.authority.issue("front-proxy", "front-proxy"),
            service_account=service_account_keys(pki),
            address=self._address,
        )
        self.url = f"https://{self._address}:{self._layout.api_port}"
        self.kubeconfig = self.kubeconfig_for_user("admin", [ADMIN_GROUP])
        self._layout.audit_policy.write_text(audit_log.POLICY)

    async def _start_all(self) -> None:
        await self.start("etcd", [self._binaries["etcd"], *components.etcd(self._layout)], stage=0)
        await self.start_apiserver()
        manager = self.kubeconfig_for_user("system:kube-controller-manager")
        await self._start_client(
            "kube-controller-manager", components.controller_manager(self._layout, manager)
        )
        scheduler = self.kubeconfig_for_user("system:kube-scheduler")
        await self._start_client("kube-scheduler", components.scheduler(scheduler))
        # A pod created earlier would be refused: its ServiceAccount and CA bundle are missing.
        await self._until(self._default_account, "kube-controller-manager")

    async def _start_client(self, program: str, flags: list[str]) -> None:
        await self.start(program, [self._binaries[program], *flags, *self._extra[program]])

    async def _until(self, probe: Callable[[], Awaitable[bool]], program: str) -> None:
        """Wait for a probe, but give up at once if the program ends."""
        ended = asyncio.create_task(self.wait(program))
        ready = asyncio.create_task(
            eventually(probe, f"{program} ready", seconds=_START_SECONDS, interval=0.05)
        )
        try:
            await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise ProcessError(f"{program} ended with {ended.result()}")
            await ready
        except (ProcessError, TimeoutError) as error:
            raise ProcessError(f"{error}\n{self.log_tail(program)}") from error
        finally:
            for task in (ended, ready):
                task.cancel()
            await asyncio.gather(ended, ready, return_exceptions=True)

    async def _ready(self) -> bool:
        return await self._answers("/readyz")

    async def _default_account(self) -> bool:
        return await self._takes_pods("default")

    async def _takes_pods(self, namespace: str) -> bool:
        """Whether pods can be created: the controller manager made what admission adds to them."""
        objects = ("serviceaccounts/default", "configmaps/kube-root-ca.crt")
        paths = [f"/api/v1/namespaces/{namespace}/{name}" for name in objects]
        return all([await self._answers(path) for path in paths])

    async def _answers(self, path: str) -> bool:
        try:
            await self.get_json(path)
        except (ApiError, aiohttp.ClientError, OSError):
            return False
        return True
