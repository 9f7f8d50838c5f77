"""Modal's SDK in our terms: one method per errand; what goes wrong is one of our faults.

The only module that imports the SDK. The SDK retries by itself, and a create that is sent again
could leave a second sandbox behind, so :class:`_Careful` lets each one leave this machine once.
Fed by ``provider``, ``logs`` and ``streams``; speaks gRPC. Nothing here knows Kubernetes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import socket
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
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

from vk_provider.faults import GarbledAnswerError, OutcomeUnknownError, OutOfCapacityError
from vk_provider_modal.answers import BUILD, CREATE, RATES, fault_of
from vk_provider_modal.budget import CreateBudget
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.facts import LogPiece, Refusal, Result, Sandbox
from vk_provider_modal.messages import (
    created_name,
    ended_result,
    listed_sandbox,
    tunnel_address,
)
from vk_provider_modal.processes import Process

ReadTokens = Callable[[], Awaitable[tuple[str, str]]]
MOST_PAGES = 1000
MOST_IMAGES = 256
# The SDK lets 64 MiB come that nobody has asked for yet; a slow client must slow its command down.
grpc_utils.GRPC_WINDOW_SIZE = 2**20
# What it logs goes where everything goes, in one form and without secrets.
logging.getLogger("modal-client").handlers.clear()
_FAILURES = (
    modal.exception.Error, GRPCError, StreamTerminatedError, DecodeError, OSError, UnicodeError,
)  # fmt: skip


@dataclass(slots=True)
class _Sending:
    """One create: whether its request has left, what came of it, how the first try failed."""

    is_sent: bool = False
    sandbox_id: str | None = None
    failure: str = ""


@dataclass(slots=True)
class _Sendings:
    """Those under way, by the sandbox's name. No bare mapping, since the SDK copies those."""

    by_name: dict[str, _Sending] = field(default_factory=dict)


class _SentAlreadyError(Exception):
    """The SDK was about to send a create once more."""


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

    def __init__(self, url: str, tokens: tuple[str, str], sendings: _Sendings) -> None:
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
            raise _SentAlreadyError(sending.failure)
        sending.is_sent = True
        try:
            made = await call(grpclib_method, request, timeout=timeout, metadata=metadata)
        except (ConnectionRefusedError, socket.gaierror):
            sending.is_sent = False
            raise
        except (GRPCError, StreamTerminatedError, OSError) as error:
            sending.failure = _words(error)
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
            pty_info=None if start.terminal is None else _terminal(*start.terminal),
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

    async def rates(self, seconds: float) -> Mapping[str, str]:
        """What the workspace pays, as the service names it."""
        request = api_pb2.WorkspaceBillingRatesRequest()
        found = await self._stub.WorkspaceBillingRates(request, retry=None, timeout=seconds)
        return dict(found.rates)


_synchronized: Any = synchronize_api
_OpenClient = _synchronized(_Careful, __name__)
"""The same in the SDK's own thread and loop, where all of its calls run."""


@dataclass(slots=True)
class _Session:
    """One connection under one pair of tokens, and what was looked up through it."""

    client: Any
    app: Any
    images: dict[str, Any] = field(default_factory=dict)


class ModalClient:
    """One workspace. Use as an async context manager; it connects when it is first needed."""

    def __init__(self, config: ModalConfig, app_name: str, read_tokens: ReadTokens) -> None:
        self._config = config
        self._app_name = app_name
        self._read_tokens = read_tokens
        self._sendings = _Sendings()
        self._budget = CreateBudget(config.creates_per_second, config.create_burst)
        self._session: _Session | None = None
        self._opening = asyncio.Lock()
        self._is_stale = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._close()

    async def create_sandbox(self, request: Mapping[str, Any]) -> Sandbox:
        """Build the image, make the sandbox, and wait until it has a machine."""
        secrets = _secrets(request)
        await self._budget.spend()
        session = await self._open()
        with self._faults(BUILD, secrets):
            image = await self._image(session, request["image"])
        sending = _Sending()
        self._sendings.by_name[request["name"]] = sending
        try:
            with self._faults(CREATE, secrets, sending):
                made = await self._create(session, request, image, sending)
        finally:
            del self._sendings.by_name[request["name"]]
        return Sandbox(made, request["tags"], timeout_seconds=request["timeout"])

    async def delete_sandbox(self, sandbox_id: str) -> None:
        """Order the end; raises ``InstanceNotFoundError`` for one that Modal doesn't know."""
        session = await self._open()
        with self._faults("end sandbox"):
            async with asyncio.timeout(self._config.request_timeout_seconds):
                await session.client.end.aio(sandbox_id)

    async def list_sandboxes(
        self, tags: Mapping[str, str], ended_since: float | None
    ) -> list[Sandbox]:
        """Every running sandbox with these tags; also ended ones that were made since then."""
        session = await self._open()
        request = api_pb2.SandboxListRequest(
            app_id=session.app.app_id,
            include_finished=ended_since is not None,
            tags=[api_pb2.SandboxTag(tag_name=k, tag_value=v) for k, v in tags.items()],
        )
        with self._faults("list sandboxes"):
            return await self._walk(session, request, ended_since or 0.0)

    async def result_of(self, sandbox_id: str) -> Result:
        """How it ended, an empty result while it runs."""
        session = await self._open()
        with self._faults("get sandbox"):
            async with asyncio.timeout(self._config.request_timeout_seconds):
                return ended_result(await session.client.result.aio(sandbox_id))

    async def tunnels_of(self, sandbox_id: str) -> Mapping[int, str]:
        """Container port -> address outside."""
        session = await self._open()
        seconds = self._config.request_timeout_seconds
        with self._faults("get tunnels"):
            async with asyncio.timeout(seconds):
                found = await session.client.tunnels.aio(sandbox_id, max(1, int(seconds) - 1))
        return {port: tunnel_address(tunnel) for port, tunnel in found.items()}

    async def rates(self) -> Mapping[str, str]:
        """The workspace's live price table, raw."""
        session = await self._open()
        with self._faults(RATES):
            found: Mapping[str, str] = await session.client.rates.aio(
                self._config.request_timeout_seconds
            )
        return found

    async def log_pieces(
        self, sandbox_id: str, since: datetime | None, until: datetime, tail: int
    ) -> AsyncGenerator[LogPiece, None]:
        """Output from ``since`` on, or the last ``tail`` entries; none before it has a machine."""
        session = await self._open()
        with self._faults("read logs"):
            sandbox = await modal.Sandbox.from_id.aio(sandbox_id, client=session.client)
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

    async def start_process(self, sandbox_id: str, start: Start) -> Process:
        """Run a command in a sandbox that runs."""
        session = await self._open()
        with self._faults("exec"):
            async with asyncio.timeout(self._config.request_timeout_seconds):
                started = await session.client.start.aio(sandbox_id, start)
        return Process(started, lambda: self._faults("exec"))

    async def tags_of(self, sandbox_id: str) -> Mapping[str, str]:
        """The tags of one sandbox."""
        session = await self._open()
        with self._faults("get sandbox"):
            async with asyncio.timeout(self._config.request_timeout_seconds):
                found: Mapping[str, str] = await session.client.tags.aio(sandbox_id)
        return found

    async def _create(
        self, session: _Session, request: Mapping[str, Any], image: Any, sending: _Sending
    ) -> str:
        config = self._config
        seconds = config.capacity_wait_seconds + config.request_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                made = await modal.Sandbox.create.aio(
                    *request.get("args", ()),
                    app=session.app,
                    client=session.client,
                    image=image,
                    **_arguments(request, self._config.environment),
                )
        except modal.exception.ConflictError:
            # It was made and has ended without ever starting: the next list tells why.
            if sending.sandbox_id is None:
                raise
            return sending.sandbox_id
        except (TimeoutError, modal.exception.ResourceExhaustedError) as error:
            if sending.sandbox_id is None:
                raise
            await self._give_up(session, sending.sandbox_id)
            raise OutOfCapacityError(
                f"Modal, {CREATE}: no machine within {config.capacity_wait_seconds:g} s"
            ) from error
        return str(made.object_id)

    async def _give_up(self, session: _Session, sandbox_id: str) -> None:
        """End what never got a machine. The SDK tried, but keeps to itself whether it could."""
        try:
            async with asyncio.timeout(self._config.request_timeout_seconds):
                await session.client.end.aio(sandbox_id)
        except modal.exception.NotFoundError:
            return
        except _FAILURES as error:
            message = f"Modal, {CREATE}: no machine, and {sandbox_id} could not be ended"
            raise OutcomeUnknownError(f"{message}: {type(error).__name__}") from error

    async def _image(self, session: _Session, wanted: Mapping[str, Any]) -> Any:
        """The image of a definition, built at Modal the first time it is asked for."""
        key = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
        image = session.images.get(key)
        if image is None or wanted.get("forceBuild"):
            login = wanted.get("login")
            image = modal.Image.from_registry(
                wanted["reference"],
                secret=None if login is None else modal.Secret.from_dict(_registry_keys(login)),
                setup_dockerfile_commands=list(wanted.get("dockerfile", ())),
                force_build=bool(wanted.get("forceBuild")),
            )
            while len(session.images) >= MOST_IMAGES:
                del session.images[next(iter(session.images))]
            session.images[key] = image
        try:
            async with asyncio.timeout(self._config.image_build_timeout_seconds):
                await image.build.aio(session.app)
        except _FAILURES:
            session.images.pop(key, None)
            raise
        return image

    async def _walk(
        self, session: _Session, request: api_pb2.SandboxListRequest, since: float
    ) -> list[Sandbox]:
        """All pages. They may shift, and times may be equal, so an id counts once."""
        found: dict[str, Sandbox] = {}
        for _ in range(MOST_PAGES):
            page = await session.client.page.aio(request, self._config.request_timeout_seconds)
            infos = list(page.sandboxes)
            if any(not info.id for info in infos):
                raise GarbledAnswerError("Modal, list sandboxes: an entry has no id")
            new = [info for info in infos if info.id not in found]
            found.update((info.id, listed_sandbox(info)) for info in new)
            if not infos or infos[-1].created_at < since:
                return list(found.values())
            last = infos[-1].created_at
            # A little later than the last one, lest others of the same moment be passed over.
            request.before_timestamp = math.nextafter(last, math.inf) if new else last
            if not new and infos[0].created_at > last:
                return list(found.values())
        raise GarbledAnswerError("Modal, list sandboxes: the pages never end")

    async def _open(self) -> _Session:
        async with self._opening:
            if self._session is not None and not self._is_stale:
                return self._session
            await self._close()
            tokens = await self._read_tokens()
            url = self._config.base_url or str(sdk_settings["server_url"])
            client = _OpenClient(url, tokens, self._sendings)
            with self._faults("connect", tokens):
                async with asyncio.timeout(self._config.request_timeout_seconds):
                    try:
                        await client.__aenter__()
                        app = await self._look_up_app(client)
                    except BaseException:
                        # Whatever ends the attempt, its connection must not stay behind.
                        await client.close.aio()
                        raise
            self._session, self._is_stale = _Session(client, app), False
            return self._session

    async def _look_up_app(self, client: Any) -> Any:
        return await modal.App.lookup.aio(
            self._app_name,
            client=client,
            environment_name=self._config.environment,
            create_if_missing=True,
        )

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.client.close.aio()

    @contextmanager
    def _faults(
        self, operation: str, secrets: Sequence[str] = (), sending: _Sending | None = None
    ) -> Iterator[None]:
        """Turns whatever the SDK raises into the fault that it stands for."""
        try:
            yield
        except (*_FAILURES, _SentAlreadyError) as error:
            kind = type(error).__name__
            if kind in ("AuthError", "ClientClosed"):
                # The tokens may have been changed: read them anew with the next call.
                self._is_stale = True
            status = getattr(error, "_grpc_status", None)
            raise fault_of(
                Refusal(
                    operation,
                    kind,
                    status=status.name if status is not None else "",
                    words=_words(error),
                    retry_after_seconds=_retry_after(error),
                    sent=sending is not None and sending.is_sent,
                    sandbox_id=None if sending is None else sending.sandbox_id,
                    secrets=tuple(secrets),
                )
            ) from error


def _arguments(request: Mapping[str, Any], environment: str | None) -> dict[str, Any]:
    """The keyword arguments of ``Sandbox.create``."""
    volumes = {
        path: modal.Volume.from_name(
            each["volume"], environment_name=environment
        ).with_mount_options(read_only=bool(each.get("readOnly")), sub_path=each.get("subPath"))
        for path, each in request.get("volumes", {}).items()
    }
    return {
        "name": request["name"],
        "tags": dict(request["tags"]),
        # One Secret for all of it: each costs a call of its own.
        "secrets": [modal.Secret.from_dict(dict(request["env"]))] if request["env"] else [],
        "timeout": request["timeout"],
        "workdir": request.get("workdir"),
        "gpu": request.get("gpu"),
        "cpu": _amount(request.get("cpu")),
        "memory": _amount(request.get("memory")),
        "region": request.get("region"),
        "cloud": request.get("cloud"),
        "encrypted_ports": request.get("encryptedPorts", ()),
        "h2_ports": request.get("h2Ports", ()),
        "unencrypted_ports": request.get("unencryptedPorts", ()),
        "inbound_cidr_allowlist": request.get("inboundCidrs"),
        "volumes": volumes,
    }


def _terminal(columns: int, rows: int) -> api_pb2.PTYInfo:
    return api_pb2.PTYInfo(
        enabled=True,
        winsz_rows=rows,
        winsz_cols=columns,
        env_term="xterm-256color",
        pty_type=api_pb2.PTYInfo.PTY_TYPE_SHELL,
        no_terminate_on_idle_stdin=True,
    )


def _amount(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found


def _registry_keys(login: Mapping[str, str]) -> dict[str, str | None]:
    return {"REGISTRY_USERNAME": login["username"], "REGISTRY_PASSWORD": login["password"]}


def _secrets(request: Mapping[str, Any]) -> tuple[str, ...]:
    login = request["image"].get("login", {})
    return (*request["env"].values(), *login.values())


def _words(error: BaseException) -> str:
    # The SDK's own exceptions are GRPCErrors as well, for now, and warn whoever relies on it.
    if isinstance(error, GRPCError) and not isinstance(error, modal.exception.Error):
        return f"{error.status.name}: {error.message or 'no details'}"
    return str(error) or type(error).__name__


def _retry_after(error: BaseException) -> float | None:
    for detail in getattr(error, "_grpc_details", None) or ():
        if isinstance(detail, api_pb2.RPCRetryPolicy):
            return float(detail.retry_after_secs)
    return None
