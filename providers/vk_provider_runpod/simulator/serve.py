"""Starts a simulator: from the command line, or inside a test on a free port of loopback.

Fed by ``vk-provider simulate runpod`` (:func:`add_arguments`, :func:`serve`) and by tests
(:func:`running`); runs ``app``.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from vk_provider.arguments import count, port, quantity, span
from vk_provider_runpod.simulator.app import make_app
from vk_provider_runpod.simulator.state import Options, State


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulator that serves: where it listens, and its innards for in-process tests."""

    url: str
    state: State
    site: web.BaseSite

    async def refuse(self) -> None:
        """Stop listening: new connections are refused from now on."""
        await self.site.stop()


@asynccontextmanager
async def running(options: Options | None = None) -> AsyncIterator[Simulator]:
    """Serve while the block runs; port 0 takes a free one."""
    chosen = options or Options()
    state = State(chosen)
    runner = web.AppRunner(make_app(state), access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, chosen.host, chosen.port)
        await site.start()
        host, port = runner.addresses[0][:2]
        shown = f"[{host}]" if ":" in host else host
        yield Simulator(f"http://{shown}:{port}", state, site)
    finally:
        state.closing.set()
        if state.shells is not None:
            await state.shells.close()
        await runner.cleanup()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``vk-provider simulate runpod``."""
    defaults = Options()
    add = parser.add_argument
    add("--host", default=defaults.host, help="address to listen on (default %(default)s)")
    add("--port", type=port, default=8484, help="port, 0 takes a free one (default %(default)s)")
    add("--api-key", metavar="KEY", help="accept only this key (default: any)")
    add(
        "--speed", type=quantity, default=1.0, metavar="X",
        help="simulated seconds per second; 0 stands still until /_sim/clock/advance",
    )  # fmt: skip
    add("--pull-seconds", type=quantity, default=defaults.pull_seconds, metavar="S",
        help="how long an image takes to be pulled (default %(default)s)")  # fmt: skip
    add("--list-lag-seconds", type=quantity, default=0.0, metavar="S",
        help="how long lists lag behind creates and deletes")  # fmt: skip
    add("--create-latency-ms", type=span, default="0", metavar="LOW-HIGH",
        help="latency of create calls, drawn evenly, e.g. 50-500")  # fmt: skip
    add("--page-size", type=count(1), default=defaults.page_size, metavar="N",
        help="most pods on one page of a list (default %(default)s)")  # fmt: skip
    add("--requests-per-minute", type=count(0), default=0, metavar="N",
        help="rate limit with 429 and RateLimit headers (default: none)")  # fmt: skip
    add("--foreign-pods", type=count(0), default=0, metavar="N", help="pods of somebody else's")
    add("--allow-exec", action="store_true",
        help="give pods SSH servers: their commands run on this machine, unconfined")  # fmt: skip
    add("--seed", type=int, default=0, help="of everything random (default %(default)s)")


def read_options(arguments: argparse.Namespace) -> Options:
    """The parsed flags as options."""
    return Options(
        host=arguments.host,
        port=arguments.port,
        api_key=arguments.api_key,
        speed=arguments.speed,
        pull_seconds=arguments.pull_seconds,
        list_lag_seconds=arguments.list_lag_seconds,
        create_latency_ms=arguments.create_latency_ms,
        page_size=arguments.page_size,
        requests_per_minute=arguments.requests_per_minute,
        foreign_pods=arguments.foreign_pods,
        runs_exec=arguments.allow_exec,
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
            f"RunPod simulator on {simulator.url} (API below /v2, back door below /_sim)\n"
            f"  what is rented: curl -s {simulator.url}/_sim/ledger\n"
            f"  what else can be asked and broken: curl -s {simulator.url}/_sim\n"
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
