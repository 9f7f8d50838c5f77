"""Starts a simulator: from the command line, or inside a test on a free port of loopback.

Fed by ``vk-provider simulate modal`` (:func:`add_arguments`, :func:`serve`) and by tests
(:func:`running`); runs ``service``, ``router`` and ``admin``.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from grpclib.protocol import H2Protocol
from grpclib.server import Server
from modal_proto import api_pb2, task_command_router_pb2

from vk_provider.arguments import count, port, quantity
from vk_provider.testing.simulator.back_door import add_routes
from vk_provider.testing.simulator.serving import add_flags, read_options, serve_until_told
from vk_provider_modal.simulator import admin, control
from vk_provider_modal.simulator.router import Router
from vk_provider_modal.simulator.service import DetailsCodec, Servable
from vk_provider_modal.simulator.state import Options, State


class _Server(Server):
    """grpclib's server leaves connections open when it closes; this one knows them."""

    def __init__(self, handlers: list[Any]) -> None:
        super().__init__(handlers, status_details_codec=DetailsCodec())
        self.protocols: list[H2Protocol] = []

    def _protocol_factory(self) -> H2Protocol:
        made = super()._protocol_factory()
        self.protocols.append(made)
        return made

    def abort(self) -> None:
        """Cut every connection."""
        for protocol in self.protocols:
            transport = getattr(getattr(protocol, "connection", None), "_transport", None)
            if transport is not None:
                transport.abort()


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulator that serves: where it listens, and its innards for in-process tests."""

    url: str
    admin_url: str
    state: State
    server: _Server

    async def refuse(self) -> None:
        """Stop listening and cut all connections: whoever comes now is refused."""
        self.server.close()
        self.server.abort()


@asynccontextmanager
async def running(options: Options | None = None) -> AsyncIterator[Simulator]:
    """Serve while the block runs; port 0 takes a free one."""
    chosen = options or Options()
    state = State(chosen)
    router = Router()
    server = _Server([
        Servable(
            state,
            api_pb2.DESCRIPTOR.services_by_name["ModalClient"],
            control.UNARY,
            control.STREAMED,
        ),
        Servable(
            state,
            task_command_router_pb2.DESCRIPTOR.services_by_name["TaskCommandRouter"],
            router.unary,
            router.streamed,
        ),
    ])  # fmt: skip
    listening = socket.create_server((chosen.host, chosen.port))
    state.url = f"http://{chosen.host}:{listening.getsockname()[1]}"
    await server.start(sock=listening)
    app = web.Application()
    add_routes(app, state, admin.ROUTES)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    try:
        await runner.setup()
        await web.TCPSite(runner, chosen.host, chosen.admin_port).start()
        admin_url = f"http://{chosen.host}:{runner.addresses[0][1]}"
        yield Simulator(state.url, admin_url, state, server)
    finally:
        state.closing.set()
        await router.close()
        server.close()
        server.abort()
        await server.wait_closed()
        await runner.cleanup()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``vk-provider simulate modal``; each stands for the option of its name."""
    defaults = Options()
    add_flags(parser, defaults, 8686, "sandboxes")
    add = parser.add_argument
    add("--admin-port", type=port, default=8687, metavar="PORT",
        help="port of the back door, 0 takes a free one (default %(default)s)")  # fmt: skip
    add("--token", dest="tokens", type=_token, metavar="ID:SECRET",
        help="accept only this pair (default: any)")  # fmt: skip
    add("--queue-seconds", type=quantity, default=0.0, metavar="S",
        help="how long a sandbox waits for a machine (default %(default)s)")  # fmt: skip
    add("--start-seconds", type=quantity, default=defaults.start_seconds, metavar="S",
        help="how long a container takes to start (default %(default)s)")  # fmt: skip
    add("--creates-per-second", type=quantity, default=0.0, metavar="N",
        help="rate limit of creates (default: none)")  # fmt: skip
    add("--create-burst", type=count(1), default=defaults.create_burst, metavar="N",
        help="so many creates at once under the rate limit (default %(default)s)")  # fmt: skip
    add("--allow-exec", dest="runs_exec", action="store_true",
        help="run commands of exec on this machine (default: refuse them)")  # fmt: skip
    add("--foreign-sandboxes", type=count(0), default=0, metavar="N", help="of somebody else's")


def _token(text: str) -> tuple[str, str]:
    token_id, colon, secret = text.partition(":")
    if not (token_id and colon and secret):
        # Not what was found: half a secret is one.
        raise argparse.ArgumentTypeError("allowed: ID:SECRET")
    return token_id, secret


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM; the first line of output says where."""
    async with running(read_options(Options, arguments)) as simulator:
        door = simulator.admin_url
        await serve_until_told(f"Modal simulator on {simulator.url} (back door: {door}/_sim)", door)
