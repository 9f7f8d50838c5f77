"""A kubelet server on 127.0.0.1 with its CA, its judge and its pods."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.integration.server.bench import (
    Authority,
    Caller,
    Judge,
    LoggingBackend,
    Pods,
    client_context,
    make_pod,
)
from vk_provider.pods.types import InstanceRef
from vk_provider.server.app import KubeletOptions, KubeletServer
from vk_provider.server.auth import Authorizer
from vk_provider.server.limits import Limits
from vk_provider.server.logs import LogTimes
from vk_provider.server.lookup import ServedPod
from vk_provider.server.remote_command import StreamTimes
from vk_provider.server.tls import ServingNames, ServingTLS
from vk_provider.server.usage import UsageTimes

ADMIN_RIGHTS = {
    ("admin", verb, subresource)
    for verb in ("get", "create")
    for subresource in ("proxy", "metrics", "stats", "log", "checkpoint")
}

LIMITS = Limits(first_request_seconds=1.5, requests=8, connections=12, close_seconds=0.5)
STREAM_TIMES = StreamTimes(
    creation_seconds=0.5, idle_seconds=30, close_seconds=2, cancel_seconds=2, look_seconds=0.1
)


@dataclass
class Stage:
    """Everything a test may turn."""

    folder: Path
    authority: Authority = field(default_factory=lambda: Authority("clients"))
    judge: Judge = field(default_factory=lambda: Judge(rights=set(ADMIN_RIGHTS)))
    backend: LoggingBackend = field(default_factory=LoggingBackend)
    pods: Pods = field(default_factory=Pods)
    answers: list[tuple[str, int]] = field(default_factory=list)
    addresses: list[str] = field(default_factory=lambda: ["127.0.0.1"])
    limits: Limits = LIMITS
    stream_times: StreamTimes = STREAM_TIMES
    port: int = 0
    now: float = 0.0

    def __post_init__(self) -> None:
        self.pods.served = ServedPod(make_pod(), self.backend, InstanceRef("i-1"))
        self.tls = ServingTLS(
            ServingNames("burst", lambda: self.addresses), client_ca=lambda: self.authority.pem
        )
        self.server = KubeletServer(
            self.pods,
            Authorizer(self.judge, "burst", clock=lambda: self.now),
            self.tls,
            KubeletOptions(
                host="127.0.0.1",
                port=0,
                limits=self.limits,
                log_times=LogTimes(header_seconds=0.1, quiet_seconds=0.1),
                stream_times=self.stream_times,
                usage_times=UsageTimes(fresh_seconds=0.3, young_seconds=0, answer_seconds=0.3),
                node_name="burst",
                refresh_seconds=0.02,
                observe=lambda route, status: self.answers.append((route, status)),
            ),
        )


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A running server."""
    stage = Stage(tmp_path)
    stage.port = await stage.server.start()
    yield stage
    await stage.server.close()


@pytest.fixture
async def admin(stage: Stage) -> AsyncIterator[Caller]:
    """A caller whose certificate may do everything; it verifies the server, too."""
    pair = stage.authority.client(stage.folder, "admin", "admins")
    connector = aiohttp.TCPConnector(ssl=client_context(stage.tls.chain, pair))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Caller(session, f"https://127.0.0.1:{stage.port}")


@pytest.fixture
async def stranger(stage: Stage) -> AsyncIterator[Caller]:
    """A caller without a certificate."""
    connector = aiohttp.TCPConnector(ssl=client_context())
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Caller(session, f"https://127.0.0.1:{stage.port}")
