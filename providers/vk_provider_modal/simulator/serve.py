"""Starts a simulator: from the command line, or inside a test on a free port of loopback.

Fed by ``vk-provider simulate modal`` (:func:`add_arguments`, :func:`serve`) and by tests
(:func:`running`); runs ``service``, ``router`` and ``admin``.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from grpclib.protocol import H2Protocol
from grpclib.server import Server
from modal_proto import api_pb2, task_command_router_pb2

from vk_provider.arguments import count, port, quantity, span
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
    runner = web.AppRunner(admin.make_app(state), access_log=None, shutdown_timeout=0.2)
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
    """The flags of ``vk-provider simulate modal``."""
    defaults = Options()
    add = parser.add_argument
    add("--host", default=defaults.host,
        help="address to listen on, best a local one (default %(default)s)")  # fmt: skip
    add("--port", type=port, default=8686, help="port, 0 takes a free one (default %(default)s)")
    add("--admin-port", type=port, default=8687, metavar="PORT",
        help="port of the back door, 0 takes a free one (default %(default)s)")  # fmt: skip
    add("--token", type=_token, metavar="ID:SECRET", help="accept only this pair (default: any)")
    add(
        "--speed", type=quantity, default=1.0, metavar="X",
        help="simulated seconds per second; 0 stands still until /_sim/clock/advance",
    )  # fmt: skip
    add("--queue-seconds", type=quantity, default=0.0, metavar="S",
        help="how long a sandbox waits for a machine (default %(default)s)")  # fmt: skip
    add("--start-seconds", type=quantity, default=defaults.start_seconds, metavar="S",
        help="how long a container takes to start (default %(default)s)")  # fmt: skip
    add("--list-lag-seconds", type=quantity, default=0.0, metavar="S",
        help="how long lists lag behind creates and ends")  # fmt: skip
    add("--create-latency-ms", type=span, default="0", metavar="LOW-HIGH",
        help="latency of create calls, drawn evenly, e.g. 50-500")  # fmt: skip
    add("--page-size", type=count(1), default=defaults.page_size, metavar="N",
        help="most sandboxes on one page of a list (default %(default)s)")  # fmt: skip
    add("--creates-per-second", type=quantity, default=0.0, metavar="N",
        help="rate limit of creates (default: none)")  # fmt: skip
    add("--create-burst", type=count(1), default=defaults.create_burst, metavar="N",
        help="so many creates at once under the rate limit (default %(default)s)")  # fmt: skip
    add("--allow-exec", action="store_true",
        help="run commands of exec on this machine (default: refuse them)")  # fmt: skip
    add("--foreign-sandboxes", type=count(0), default=0, metavar="N", help="of somebody else's")
    add("--seed", type=int, default=0, help="of everything random (default %(default)s)")


def _token(text: str) -> tuple[str, str]:
    token_id, colon, secret = text.partition(":")
    if not (token_id and colon and secret):
        # Not what was found: half a secret is one.
        raise argparse.ArgumentTypeError("allowed: ID:SECRET")
    return token_id, secret


def read_options(arguments: argparse.Namespace) -> Options:
    """The parsed flags as options."""
    return Options(
        host=arguments.host,
        port=arguments.port,
        admin_port=arguments.admin_port,
        tokens=arguments.token,
        speed=arguments.speed,
        queue_seconds=arguments.queue_seconds,
        start_seconds=arguments.start_seconds,
        list_lag_seconds=arguments.list_lag_seconds,
        create_latency_ms=arguments.create_latency_ms,
        page_size=arguments.page_size,
        creates_per_second=arguments.creates_per_second,
        create_burst=arguments.create_burst,
        runs_exec=arguments.allow_exec,
        foreign_sandboxes=arguments.foreign_sandboxes,
        seed=arguments.seed,
    )


def run(arguments: argparse.Namespace) -> int:
    """The command: serve until interrupted; the result is the exit code."""
    asyncio.run(serve(arguments))
    return 0


async def serve(arguments: argparse.Namespace | Options) -> None:
    """Serve until SIGINT or SIGTERM; the first line of output says where."""
    options = arguments if isinstance(arguments, Options) else read_options(arguments)
    async with running(options) as simulator:
        sys.stdout.write(
            f"Modal simulator on {simulator.url} (back door: {simulator.admin_url}/_sim)\n"
            f"  what is rented: curl -s {simulator.admin_url}/_sim/ledger\n"
            f"  what else can be asked and broken: curl -s {simulator.admin_url}/_sim\n"
        )
        sys.stdout.flush()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await stop.wait()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
