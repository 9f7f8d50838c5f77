"""A simulator as a command: its flags, where it listens, and how long it serves.

Fed by ``vk-provider simulate NAME`` and ``python -m PACKAGE.simulator``; feeds a simulator's
:class:`.state.SimulatorOptions`.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import TypeVar

from vk_provider.arguments import count, port, quantity, span
from vk_provider.testing.simulator.state import SimulatorOptions

T = TypeVar("T", bound=SimulatorOptions)


def add_flags(
    parser: argparse.ArgumentParser, defaults: SimulatorOptions, port_number: int, noun: str
) -> None:
    """The flags that every simulator has; ``noun`` is what its instances are called."""
    add = parser.add_argument
    add("--host", default=defaults.host,
        help="address to listen on, best a local one (default %(default)s)")  # fmt: skip
    add("--port", type=port, default=port_number,
        help="port, 0 takes a free one (default %(default)s)")  # fmt: skip
    add("--speed", type=quantity, default=defaults.speed, metavar="X",
        help="simulated seconds per second; 0 stands still until /_sim/clock/advance")  # fmt: skip
    add("--list-lag-seconds", type=quantity, default=defaults.list_lag_seconds, metavar="S",
        help="how long lists lag behind creates and ends")  # fmt: skip
    add("--create-latency-ms", type=span, default="0", metavar="LOW-HIGH",
        help="latency of create calls, drawn evenly, e.g. 50-500")  # fmt: skip
    add("--page-size", type=count(1), default=defaults.page_size, metavar="N",
        help=f"most {noun} on one page of a list (default %(default)s)")  # fmt: skip
    add("--seed", type=int, default=defaults.seed,
        help="of everything random (default %(default)s)")  # fmt: skip


def read_options(kind: type[T], arguments: argparse.Namespace) -> T:
    """The parsed flags as options; a flag's destination is its option's name."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in vars(arguments).items() if name in names})


async def serve_until_told(where: str, back_door: str) -> None:
    """Say where the simulator listens, and return at SIGINT or SIGTERM."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Before a word is said: whoever waits for it may end us at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        sys.stdout.write(
            f"{where}\n"
            f"  what is rented: curl -s {back_door}/_sim/ledger\n"
            f"  what else can be asked and broken: curl -s {back_door}/_sim\n"
        )
        sys.stdout.flush()
        await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def command(
    name: str,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    serve: Callable[[argparse.Namespace], Awaitable[None]],
) -> None:
    """A simulator alone, as a program with the flags of ``vk-provider simulate NAME``."""
    parser = argparse.ArgumentParser(prog=f"vk-provider simulate {name}")
    add_arguments(parser)
    arguments = parser.parse_args()

    async def run() -> None:
        await serve(arguments)

    asyncio.run(run())
