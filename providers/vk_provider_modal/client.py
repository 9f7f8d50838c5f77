"""Modal's SDK in our terms: one method per errand, and one kind of failure for all that goes wrong.

The only module that imports the SDK. The SDK retries by itself, and a create that is sent again
could leave a second sandbox behind, so :class:`_Careful` lets each one leave this machine once.
Fed by ``workspace``; speaks gRPC. Nothing here knows Kubernetes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

# The SDK reads these when it is imported: no file of whoever started us may decide, a throttled
# call is to fail so that the core can wait, and Python is not to be added to anybody's image.
os.environ.setdefault("MODAL_CONFIG_PATH", os.devnull)
os.environ.setdefault("MODAL_MAX_THROTTLE_WAIT", "0")
os.environ.setdefault("MODAL_IMAGE_BUILDER_VERSION", "2025.06")

import modal
import modal.exception
import modal.stream_type
from google.protobuf.message import DecodeError
from grpclib import GRPCError
from grpclib.exceptions import StreamTerminatedError
from modal._utils import grpc_utils
from modal._utils.async_utils import synchronize_api
from modal.client import _Client
from modal.config import config as sdk_settings
from modal.sandbox._impl_v2 import auth_metadata
from modal.sandbox._sandbox import impl_class_for_sandbox_id
from modal_proto import api_pb2

from vk_provider_modal.facts import LogPiece, Refusal, Result
from vk_provider_modal.messages import (
    created_name,
    ended_result,
    failure_words,
    retry_after,
    terminal_info,
    tunnel_address,
)

# The SDK lets 64 MiB come that nobody has asked for yet; a slow client must slow its command down.
grpc_utils.GRPC_WINDOW_SIZE = 2**20
# What it logs goes where everything goes, in one form and without secrets.
logging.getLogger("modal-client").handlers.clear()


class CallRefusedError(Exception):
    """A call went wrong. What that means is for ``answers`` to say."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.words)
        self.refusal = refusal


class SentAlreadyError(Exception):
    """The SDK was about to send a create once more."""


_FAILURES = (
    modal.exception.Error, GRPCError, StreamTerminatedError, DecodeError, OSError, UnicodeError,
    SentAlreadyError,
)  # fmt: skip


@dataclass(slots=True)
class Sending:
    """One create: whether its request has left, what came of it, how the first try failed."""

    is_sent: bool = False
    sandbox_id: str | None = None
    failure: str = ""


@dataclass(slots=True)
class Sendings:
    """Those under way, by the sandbox's name. No bare mapping, since the SDK copies those."""

    by_name: dict[str, Sending] = field(default_factory=dict)

    def names(self) -> frozenset[str]:
        """The sandboxes that somebody of this process waits for."""
        return frozenset(self.by_name)


@dataclass(frozen=True, slots=True)
class Start:
    """A command to be started. ``terminal``: columns and rows, None without a terminal."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    terminal: tuple[int, int] | None = None
    stdout: bool = True
    stderr: bool = True


class _Careful(_Client):
    """The SDK's client, in which nothing that makes a sandbox is sent twice."""

    def __init__(self, url: str, tokens: tuple[str, str], sendings: Sendings) -> None:
        super().__init__(url, api_pb2.CLIENT_TYPE_CLIENT, tokens)
        self._sendings = sendings

    async def _call_unary(
        self, grpclib_method: Any, request: Any, *, timeout: Any = None, metadata: Any = None
    ) -> Any:
        call = super()._call_unary
        sending = self._sendings.by_name.get(created_name(request))
        if sending is None:
            return await call(grpclib_method, request, timeout=timeout, metadata=metadata)
        if sending.is_sent:
            raise SentAlreadyError(sending.failure)
        sending.is_sent = True
        try:
            made = await call(grpclib_method, request, timeout=timeout, metadata=metadata)
        except (ConnectionRefusedError, socket.gaierror):
            sending.is_sent = False
            raise
        except (GRPCError, StreamTerminatedError, OSError) as error:
            sending.failure = failure_words(error)
            raise
        sending.sandbox_id = made.sandbox_id
        return made

    async def page(self, request: api_pb2.SandboxListRequest, seconds: float) -> Any:
        """One page of a list, asked for once; the SDK's own list drops names and tags."""
        metadata = await auth_metadata(self)
        return await self._stub.SandboxListV2(
            request, retry=None, timeout=seconds, metadata=metadata
        )

    async def result(self, sandbox_id: str) -> api_pb2.GenericResult:
        """How a sandbox ended, by its id."""
        found = await impl_class_for_sandbox_id(sandbox_id).lookup_by_id(self, sandbox_id)
        return found.result

    async def end(self, sandbox_id: str) -> None:
        """Order its end; one that has ended is as good."""
        await impl_class_for_sandbox_id(sandbox_id)(self, sandbox_id).terminate()

    async def tunnels(self, sandbox_id: str, seconds: int) -> dict[int, Any]:
        """Where its ports are reached."""
        return await impl_class_for_sandbox_id(sandbox_id)(self, sandbox_id).tunnels(seconds)

    async def tags(self, sandbox_id: str) -> dict[str, str]:
        """What it was marked with."""
        return await impl_class_for_sandbox_id(sandbox_id)(self, sandbox_id).get_tags()

    async def start(self, sandbox_id: str, start: Start) -> Any:
        """Start a command; the SDK's own exec can't be told the size of a terminal."""
        pipe, nowhere = modal.stream_type.StreamType.PIPE, modal.stream_type.StreamType.DEVNULL
        return await impl_class_for_sandbox_id(sandbox_id)(self, sandbox_id).exec(
            *start.command,
            pty_info=None if start.terminal is None else terminal_info(*start.terminal),
            stdout=pipe if start.stdout else nowhere,
            stderr=pipe if start.stderr else nowhere,
            timeout=None,
            workdir=None,
            env=dict(start.env),
            secrets=None,
            text=False,
            bufsize=-1,
            container_id=None,
        )

    async def costs(self, request: api_pb2.SandboxGetTimeRangeStatsRequest, seconds: float) -> Any:
        """One page of what sandboxes cost."""
        return await self._stub.SandboxGetTimeRangeStats(request, retry=None, timeout=seconds)

    async def rates(self, seconds: float) -> Mapping[str, str]:
        """What the workspace pays, as the service names it."""
        request = api_pb2.WorkspaceBillingRatesRequest()
        found = await self._stub.WorkspaceBillingRates(request, retry=None, timeout=seconds)
        return dict(found.rates)


_synchronized: Any = synchronize_api
_OpenClient = _synchronized(_Careful, __name__)
"""The same in the SDK's own thread and loop, where all of its calls run."""


class Client:
    """One connection under one pair of tokens, to one App. Raises ``CallRefusedError`` only."""

    def __init__(self, client: Any, app: Any, seconds: float) -> None:
        self._client = client
        self._app = app
        self._seconds = seconds
        self.app_id = str(app.app_id)

    @classmethod
    async def open(
        cls,
        url: str | None,
        tokens: tuple[str, str],
        sendings: Sendings,
        app: tuple[str, str | None],
        seconds: float,
    ) -> Self:
        """Connect, and look the App (its name, its environment) up or make it."""
        client = _OpenClient(url or str(sdk_settings["server_url"]), tokens, sendings)
        name, environment = app
        async with AsyncExitStack() as stack:
            # Whatever ends the attempt, its connection must not stay behind.
            stack.push_async_callback(client.close.aio)
            with refusals("connect", tokens):
                async with asyncio.timeout(seconds):
                    await client.__aenter__()
                    found = await modal.App.lookup.aio(
                        name, client=client, environment_name=environment, create_if_missing=True
                    )
            stack.pop_all()
        return cls(client, found, seconds)

    async def close(self) -> None:
        """End the connection."""
        await self._client.close.aio()

    def image(self, wanted: Mapping[str, Any]) -> Any:
        """The definition of an image; nothing is asked for yet."""
        login = wanted.get("login")
        keys = {"username": "REGISTRY_USERNAME", "password": "REGISTRY_PASSWORD"}
        return modal.Image.from_registry(
            wanted["reference"],
            secret=login and modal.Secret.from_dict({keys[each]: login[each] for each in keys}),
            setup_dockerfile_commands=list(wanted.get("dockerfile", ())),
            force_build=bool(wanted.get("forceBuild")),
        )

    async def build(self, image: Any, operation: str, secrets: Sequence[str]) -> None:
        """Have an image built, or learn that it is."""
        with refusals(operation, secrets):
            await image.build.aio(self._app)

    async def create(self, request: Mapping[str, Any], image: Any, environment: str | None) -> str:
        """Make a sandbox and wait until it has a machine; its id. Bounded by the caller."""
        made = await modal.Sandbox.create.aio(
            *request.get("args", ()),
            app=self._app,
            client=self._client,
            image=image,
            **_arguments(request, environment),
        )
        return str(made.object_id)

    async def ask(self, operation: str, what: str, *request: Any) -> Any:
        """``page``, ``rates`` or ``costs``, in good time, about our App."""
        for each in request:
            each.app_id = self.app_id
        with refusals(operation):
            return await getattr(self._client, what).aio(*request, self._seconds)

    async def about(self, what: str, sandbox_id: str, *more: Any) -> Any:
        """``end``, ``result``, ``tunnels``, ``tags`` or ``start`` of one sandbox, in good time."""
        with refusals(what):
            async with asyncio.timeout(self._seconds):
                return await getattr(self._client, what).aio(sandbox_id, *more)

    async def result(self, sandbox_id: str) -> Result:
        """How it ended, an empty result while it runs."""
        return ended_result(await self.about("result", sandbox_id))

    async def tunnels(self, sandbox_id: str) -> Mapping[int, str]:
        """Container port -> address outside."""
        found = await self.about("tunnels", sandbox_id, max(1, int(self._seconds) - 1))
        return {port: tunnel_address(tunnel) for port, tunnel in found.items()}

    async def log_pieces(
        self, sandbox_id: str, since: datetime | None, until: datetime, tail: int
    ) -> AsyncGenerator[LogPiece, None]:
        """Output from ``since`` on, or the last ``tail`` entries; none before it has a machine."""
        with refusals("read logs"):
            sandbox = await modal.Sandbox.from_id.aio(sandbox_id, client=self._client)
            entries = (
                sandbox.logs.tail.aio(tail)
                if since is None
                else sandbox.logs.fetch.aio(since=since, until=until)
            )
            try:
                async for entry in entries:
                    yield LogPiece(entry.timestamp, entry.source, entry.message)
            except modal.exception.ExecutionError:
                return  # it has no machine yet, so it has said nothing


@contextmanager
def refusals(
    operation: str, secrets: Sequence[str] = (), sending: Sending | None = None
) -> Iterator[None]:
    """Turns whatever the SDK raises into ``CallRefusedError``."""
    try:
        yield
    except _FAILURES as error:
        status = getattr(error, "_grpc_status", None)
        refusal = Refusal(
            operation,
            type(error).__name__,
            status=status.name if status is not None else "",
            words=failure_words(error),
            retry_after_seconds=retry_after(error),
            sent=sending is not None and sending.is_sent,
            sandbox_id=None if sending is None else sending.sandbox_id,
            secrets=tuple(secrets),
        )
        raise CallRefusedError(refusal) from error


def _arguments(request: Mapping[str, Any], environment: str | None) -> dict[str, Any]:
    """The keyword arguments of ``Sandbox.create``."""
    volumes = {
        path: modal.Volume.from_name(
            each["volume"], environment_name=environment
        ).with_mount_options(read_only=bool(each.get("readOnly")), sub_path=each.get("subPath"))
        for path, each in request.get("volumes", {}).items()
    }
    cpu, memory = request.get("cpu"), request.get("memory")
    return {
        "name": request["name"],
        "tags": dict(request["tags"]),
        # One Secret for all of it: each costs a call of its own.
        "secrets": [modal.Secret.from_dict(dict(request["env"]))] if request["env"] else [],
        "timeout": request["timeout"],
        "workdir": request.get("workdir"),
        "gpu": request.get("gpu"),
        "cpu": tuple(cpu) if isinstance(cpu, list) else cpu,
        "memory": tuple(memory) if isinstance(memory, list) else memory,
        "region": request.get("region"),
        "cloud": request.get("cloud"),
        "encrypted_ports": request.get("encryptedPorts", ()),
        "h2_ports": request.get("h2Ports", ()),
        "unencrypted_ports": request.get("unencryptedPorts", ()),
        "inbound_cidr_allowlist": request.get("inboundCidrs"),
        "volumes": volumes,
    }
