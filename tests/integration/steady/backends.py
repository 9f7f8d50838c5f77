"""Backends that hold a number of running instances from the start, and the log of what they are
asked: each service's own.

Feeds the tests of what a node at rest costs; the services are the product's own simulators and the
model API server, over real sockets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.translate import translate
from vk_provider_modal.simulator import Options as ModalOptions
from vk_provider_modal.simulator import running as modal_running
from vk_provider_modal.stamp import app_name, stamp_tags
from vk_provider_runpod.simulator import Options as RunPodOptions
from vk_provider_runpod.simulator import running as runpod_running
from vk_provider_runpod.stamp import instance_name, stamp_env

from tests.support.model_apiserver import ModelApiServer
from vk_provider.pods.types import IMPLICIT_OFFER, Stamp
from vk_provider.testing.builders import make_resolved_pod
from vk_provider.testing.fake import FakeBackend, FakeProvider

CLUSTER, NODE = "home", "burst"
KEY = "rpa_integration_key_0123456789"
Calls = Counter[str]


@dataclass(frozen=True)
class Service:
    """One backend: how it is configured, and what it has been asked so far, by operation."""

    provider: str
    config: Mapping[str, Any]
    calls: Callable[[], Calls]
    lists: str
    """What its list is called."""
    requests_a_list: int = 1
    """A service may hand out its list in pages."""
    once: Mapping[str, int] = field(default_factory=dict)
    """What it is asked once after a start, and how often."""
    adopt: Callable[[Any], None] = lambda _: None
    """Given the provider once it is open, for a service that lives inside it."""


Opened = AbstractAsyncContextManager[Service]
Open = Callable[[Sequence[Stamp], pytest.MonkeyPatch], Opened]


@asynccontextmanager
async def fake(stamps: Sequence[Stamp], _: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """In the node's own process."""
    held: list[FakeBackend] = []

    def adopt(provider: FakeProvider) -> None:
        held.append(provider.backend)
        for stamp in stamps:
            provider.backend.add(stamp)

    yield Service("fake", {}, lambda: Calls(held[0].calls), "list", adopt=adopt)


@asynccontextmanager
async def runpod(stamps: Sequence[Stamp], patch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """Its simulator, whose containers run at once."""
    patch.setenv("RUNPOD_API_KEY", KEY)
    options = RunPodOptions(pull_seconds=0, log_every_seconds=0, api_key=KEY)
    async with runpod_running(options) as simulator:
        for stamp in stamps:
            simulator.state.add_foreign(instance_name(stamp), env=stamp_env(stamp, "main"))
        block = {
            "apiKey": {"env": "RUNPOD_API_KEY"},
            "baseUrl": simulator.url,
            "gpuTypes": ["NVIDIA L40S"],
        }
        requests = simulator.state.requests
        yield Service("runpod", block, lambda: Calls(r.operation for r in requests), "listPods")


@asynccontextmanager
async def modal(stamps: Sequence[Stamp], patch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """Its simulator, through the real SDK."""
    patch.setenv("MODAL_ID", "ak-steady")
    patch.setenv("MODAL_SECRET", "as-steady")
    options = ModalOptions(start_seconds=0, log_every_seconds=0, tokens=("ak-steady", "as-steady"))
    async with modal_running(options) as simulator:
        app = app_name(CLUSTER)
        for stamp in stamps:
            tags = stamp_tags(stamp, "main", IMPLICIT_OFFER, ())
            simulator.state.add_foreign(f"vk-{stamp.pod_uid}", app=app, **tags)
        block = {
            "tokenId": {"env": "MODAL_ID"},
            "tokenSecret": {"env": "MODAL_SECRET"},
            "baseUrl": simulator.url,
            "gpuTypes": ["L40S"],
        }
        requests = simulator.state.requests
        pages = -(-len(stamps) // options.page_size)
        # The walk ends with a page that brings nothing new.
        yield Service(
            "modal", block, lambda: Calls(r.operation for r in requests), "SandboxListV2", pages + 2
        )


@asynccontextmanager
async def kubernetes(stamps: Sequence[Stamp], patch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """A model of another cluster's API server, whose kubelets have started everything."""
    patch.setenv("OTHER_TOKEN", "steady")
    config = KubernetesConfig(namespace="there", backend="backend")
    async with ModelApiServer() as api:
        for stamp in stamps:
            resolved = make_resolved_pod(stamp.pod_name, cluster_id=CLUSTER, node_name=NODE)
            status = {"phase": "Running", "containerStatuses": [_RUNNING]}
            api.store.put("pods", {**translate(resolved, config).body, "status": status})
        block = {"server": api.url, "token": {"env": "OTHER_TOKEN"}, "namespace": "there"}
        # What an earlier process brought over is compared with home, since nobody knows.
        once = {"GET /api/v1/namespaces/there/pods": len(stamps)}
        calls = lambda: Calls(map(_operation, api.requests))  # noqa: E731
        yield Service("kubernetes", block, calls, "list", once=once)


_RUNNING = {
    "name": "main",
    "image": "registry.example/app:1",
    "imageID": "sha256:1",
    "containerID": "containerd://1",
    "ready": True,
    "started": True,
    "restartCount": 0,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
}


def _operation(call: Any) -> str:
    if call.query.get("watch"):
        return "watch"
    is_list = call.verb == "GET" and call.path.endswith("/pods")
    return "list" if is_list else f"{call.verb} {call.path.rpartition('/')[0]}"


BACKENDS: Mapping[str, Open] = {
    "fake": fake,
    "runpod": runpod,
    "modal": modal,
    "kubernetes": kubernetes,
}
