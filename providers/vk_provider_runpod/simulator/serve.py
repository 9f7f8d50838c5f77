"""Starts a simulator: from the command line, or inside a test on a free port of loopback.

Fed by ``vk-provider simulate runpod`` (:func:`add_arguments`, :func:`serve`) and by tests
(:func:`running`); runs ``app``.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from vk_provider.arguments import count, quantity
from vk_provider.testing.simulator.serving import add_flags, read_options, serve_until_told
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
    """The flags of ``vk-provider simulate runpod``; each stands for the option of its name."""
    defaults = Options()
    add_flags(parser, defaults, 8484, "pods")
    add = parser.add_argument
    add("--api-key", metavar="KEY", help="accept only this key (default: any)")
    add("--pull-seconds", type=quantity, default=defaults.pull_seconds, metavar="S",
        help="how long an image takes to be pulled (default %(default)s)")  # fmt: skip
    add("--requests-per-minute", type=count(0), default=0, metavar="N",
        help="rate limit with 429 and RateLimit headers (default: none)")  # fmt: skip
    add("--registry-seconds", type=quantity, default=0.0, metavar="S",
        help="how long hosts refuse a new registry login (default: not at all)")  # fmt: skip
    add("--foreign-pods", type=count(0), default=0, metavar="N", help="pods of somebody else's")
    add("--allow-exec", dest="runs_exec", action="store_true",
        help="give pods SSH servers: their commands run on this machine, unconfined")  # fmt: skip


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM; the first line of output says where."""
    async with running(read_options(Options, arguments)) as simulator:
        url = simulator.url
        where = f"RunPod simulator on {url} (API below /v2, back door below /_sim)"
        await serve_until_told(where, url)
