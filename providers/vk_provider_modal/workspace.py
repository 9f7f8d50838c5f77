"""One Modal workspace as the provider sees it: errands with our faults, whole lists, safe creates.

Connects when it is first needed, and anew after the tokens were refused, so that rotated ones are
read. Fed by ``survey``, ``provider``, ``logs`` and ``streams``; rests on ``client`` (the SDK) and
``answers`` (what a refusal means).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from modal_proto import api_pb2

from vk_provider.faults import (
    GarbledAnswerError,
    OutcomeUnknownError,
    OutOfCapacityError,
)
from vk_provider_modal.answers import BUILD, CREATE, fault_of
from vk_provider_modal.budget import CreateBudget
from vk_provider_modal.client import (
    CallRefusedError,
    Client,
    Sending,
    Sendings,
    Start,
    refusals,
)
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.facts import LogPiece, Result, Sandbox
from vk_provider_modal.messages import listed_sandbox
from vk_provider_modal.processes import Process

ReadTokens = Callable[[], Awaitable[tuple[str, str]]]
MOST_PAGES = 1000
MOST_IMAGES = 256
_DENIED = ("AuthError", "PermissionDeniedError")
_NO_MACHINE = ("TimeoutError", "ResourceExhaustedError")


@dataclass(slots=True)
class Built:
    """One image, built once for all who wait for it."""

    image: Any
    is_built: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Connection:
    """The client in use, and the images that were built through it."""

    config: ModalConfig
    app_name: str
    read_tokens: ReadTokens
    sendings: Sendings = field(default_factory=Sendings)
    images: dict[str, Built] = field(default_factory=dict)
    is_stale: bool = False
    _tokens: tuple[str, str] | None = None
    _client: Client | None = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def client(self) -> Client:
        """A client that is open."""
        async with self._opening:
            if self._client is not None and not self.is_stale:
                return self._client
            tokens = await self.read_tokens()
            self.is_stale = False
            # A refusal that new tokens can't cure is no reason to cut off whoever streams.
            if self._client is None or tokens != self._tokens:
                await self.close()
                self._client, self._tokens = await self._opened(tokens), tokens
            return self._client

    async def _opened(self, tokens: tuple[str, str]) -> Client:
        with self.faults():
            return await Client.open(
                self.config.base_url,
                tokens,
                self.sendings,
                (self.app_name, self.config.environment),
                self.config.request_timeout_seconds,
            )

    async def close(self) -> None:
        """End the connection; the next errand opens another."""
        client, self._client = self._client, None
        self.images.clear()
        if client is not None:
            await client.close()

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turns a refused call into the fault that it stands for."""
        try:
            yield
        except CallRefusedError as error:
            # The tokens may have been changed: they are read anew with the next call.
            self.is_stale = self.is_stale or error.refusal.kind in _DENIED
            raise fault_of(error.refusal) from error


class Workspace:
    """Errands at Modal. Raises faults only."""

    def __init__(self, config: ModalConfig, app_name: str, read_tokens: ReadTokens) -> None:
        self._config = config
        self._connection = Connection(config, app_name, read_tokens)
        self.sendings = self._connection.sendings
        self._budget = CreateBudget(config.creates_per_second, config.create_burst)

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    async def create_sandbox(self, request: Mapping[str, Any]) -> Sandbox:
        """Build the image, make the sandbox, and wait until it has a machine."""
        await self._budget.spend()
        client = await self._connection.client()
        with self._connection.faults():
            image = await _built_image(self._connection, client, request)
            sending = Sending()
            by_name = self._connection.sendings.by_name
            by_name[request["name"]] = sending
            try:
                made = await _placed(self._config, client, request, image, sending)
            except CallRefusedError as error:
                if error.refusal.kind == "NotFoundError":
                    # Perhaps the image: Modal forgets those that nobody has used for long.
                    self._connection.images.clear()
                raise
            finally:
                del by_name[request["name"]]
        return Sandbox(made, request["tags"], request["name"], timeout_seconds=request["timeout"])

    async def delete_sandbox(self, sandbox_id: str) -> None:
        """Order the end; raises ``InstanceNotFoundError`` for one that Modal doesn't know."""
        client = await self._connection.client()
        with self._connection.faults():
            await client.about("end", sandbox_id)

    async def list_sandboxes(
        self, tags: Mapping[str, str], ended_since: float | None
    ) -> list[Sandbox]:
        """Every running sandbox with these tags; also ended ones that were made since then."""
        client = await self._connection.client()
        request = api_pb2.SandboxListRequest(
            include_finished=ended_since is not None,
            tags=[api_pb2.SandboxTag(tag_name=k, tag_value=v) for k, v in tags.items()],
        )
        with self._connection.faults():
            return await _walk(client, request, ended_since or 0.0)

    async def result_of(self, sandbox_id: str) -> Result:
        """How it ended, an empty result while it runs."""
        client = await self._connection.client()
        with self._connection.faults():
            return await client.result(sandbox_id)

    async def tunnels_of(self, sandbox_id: str) -> Mapping[int, str]:
        """Container port -> address outside."""
        client = await self._connection.client()
        with self._connection.faults():
            return await client.tunnels(sandbox_id)

    async def tags_of(self, sandbox_id: str) -> Mapping[str, str]:
        """The tags of one sandbox."""
        client = await self._connection.client()
        with self._connection.faults():
            found: Mapping[str, str] = await client.about("tags", sandbox_id)
        return found

    async def ask(self, operation: str, what: str, *request: Any) -> Any:
        """``rates`` or ``costs`` of the whole workspace."""
        client = await self._connection.client()
        with self._connection.faults():
            return await client.ask(operation, what, *request)

    async def start_process(self, sandbox_id: str, start: Start) -> Process:
        """Run a command in a sandbox that runs."""
        client = await self._connection.client()
        with self._connection.faults():
            started = await client.about("start", sandbox_id, start)
        return Process(started, self._stream_faults)

    async def log_pieces(
        self, sandbox_id: str, since: datetime | None, until: datetime, tail: int
    ) -> AsyncGenerator[LogPiece, None]:
        """Output from ``since`` on, or the last ``tail`` entries."""
        client = await self._connection.client()
        with self._connection.faults():
            async with aclosing(client.log_pieces(sandbox_id, since, until, tail)) as pieces:
                async for piece in pieces:
                    yield piece

    @contextmanager
    def _stream_faults(self) -> Iterator[None]:
        with self._connection.faults(), refusals("exec"):
            yield


async def _built_image(connection: Connection, client: Client, request: Mapping[str, Any]) -> Any:
    """The image of a definition, built at Modal the first time it is asked for."""
    wanted, images = request["image"], connection.images
    key = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
    built = images.get(key)
    if built is None or wanted.get("forceBuild"):
        built = Built(client.image(wanted))
        while len(images) >= MOST_IMAGES:
            del images[next(iter(images))]
        images[key] = built
    secrets = _secrets(request)
    # Who waits here for another's build tries for itself where that one failed or gave up.
    async with built.turn:
        if not built.is_built:
            with refusals(BUILD, secrets):
                async with asyncio.timeout(connection.config.image_build_timeout_seconds):
                    await client.build(built.image, BUILD, secrets)
            built.is_built = True
    return built.image


async def _placed(
    config: ModalConfig,
    client: Client,
    request: Mapping[str, Any],
    image: Any,
    sending: Sending,
) -> str:
    """Make a sandbox and wait for its machine, as long as the configuration allows."""
    seconds = config.capacity_wait_seconds + config.request_timeout_seconds
    try:
        with refusals(CREATE, _secrets(request), sending):
            async with asyncio.timeout(seconds):
                return await client.create(request, image, config.environment)
    except CallRefusedError as error:
        made = error.refusal.sandbox_id
        if made is None:
            raise
        if error.refusal.kind == "ConflictError":
            # It has ended without ever starting: the next list tells why.
            return made
        if error.refusal.kind not in _NO_MACHINE:
            raise
        await _give_up(client, made)
        message = f"Modal, {CREATE}: no machine within {config.capacity_wait_seconds:g} s"
        raise OutOfCapacityError(message) from error


async def _give_up(client: Client, sandbox_id: str) -> None:
    """End what never got a machine. The SDK tried, but keeps to itself whether it could."""
    try:
        await client.about("end", sandbox_id)
    except CallRefusedError as error:
        if error.refusal.kind != "NotFoundError":
            message = f"Modal, {CREATE}: no machine, and {sandbox_id} could not be ended"
            raise OutcomeUnknownError(f"{message}: {error.refusal.kind}") from error


async def _walk(client: Client, request: api_pb2.SandboxListRequest, since: float) -> list[Sandbox]:
    """All pages. They may shift, and times may be equal, so an id counts once."""
    found: dict[str, Sandbox] = {}
    for _ in range(MOST_PAGES):
        infos = (await client.ask("list sandboxes", "page", request)).sandboxes
        if any(not info.id for info in infos):
            raise GarbledAnswerError("Modal, list sandboxes: an entry has no id")
        new = [info for info in infos if info.id not in found]
        found.update((info.id, listed_sandbox(info)) for info in new)
        if not infos or infos[-1].created_at < since:
            return list(found.values())
        last = infos[-1].created_at
        if not new and infos[0].created_at > last:
            return list(found.values())
        # A little later than the last one, lest others of the same moment be passed over.
        request.before_timestamp = math.nextafter(last, math.inf) if new else last
    raise GarbledAnswerError("Modal, list sandboxes: the pages never end")


def _secrets(request: Mapping[str, Any]) -> tuple[str, ...]:
    login = request["image"].get("login", {})
    return (*request["env"].values(), *login.values())
