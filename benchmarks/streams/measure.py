"""Every figure of both nodes, in turn, round after round, and the crowd at the end.

Fed by `nodes` and `clients`; its `Sample`s and `Crowd`s go to `report`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.sampling import usage
from benchmarks.streams import nodes
from benchmarks.streams.clients import SPDY, WEBSOCKET, ClientError, Clients
from benchmarks.streams.go_program import go_program
from benchmarks.streams.nodes import GO, LINES, Side
from benchmarks.streams.process_memory import forget_peak, memory_mib
from tests.rig.control_plane import ControlPlane
from tests.rig.progress import say

MIB = 1 << 20
_FIRST_BYTES = 5
_FIRST_BYTE_TURNS = 6
_SETTLE_SECONDS = 8.0
"""Longer than either side takes to give freed memory back to the system."""
_CROWD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int
    exec_mib: int
    forward_mib: int
    crowd: int
    waves: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of one node, the CPU seconds that its process used meanwhile, and the load
    average of the machine just before."""

    node: str
    what: str
    value: float
    cpu: float
    load: float


@dataclass(frozen=True, slots=True)
class Wave:
    """Many commands at once: memory in MiB before, at its peak and at rest again; CPU seconds."""

    node: str
    commands: int
    before: float
    peak: float
    after: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Found:
    """All of a run."""

    samples: list[Sample]
    waves: list[Wave]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure by name and how to get it; short ones take several turns a round, so that what else
    the machine does hits both sides alike."""

    what: str
    get: Callable[[Side], Awaitable[float]]
    turns: int = 1


async def measure(sizes: Sizes) -> Found:
    """The whole run on one bed."""
    async with _bed() as (bed, sides):
        port = bed.free_port()
        flags = ["-listen", f"127.0.0.1:{port}", "-bytes", str(sizes.forward_mib * MIB)]
        await bed.start("zeros", [go_program(), "zeros", *flags])
        clients = Clients(bed)
        samples = []
        for number in range(sizes.rounds):
            for each in measurements(clients, sizes, port):
                order = sides if number % 2 == 0 else sides[::-1]
                for side in order * each.turns:
                    samples.append(await _sample(each, side))
                    _tell(number, samples[-1])
        waves = [
            await _wave(clients, side, sizes.crowd) for side in sides for _ in range(sizes.waves)
        ]
    return Found(samples, waves)


@asynccontextmanager
async def _bed() -> AsyncIterator[tuple[ControlPlane, list[Side]]]:
    # Its audit log would cost the API server something for each request.
    async with ControlPlane(audit=False) as bed:
        lines = nodes.write_lines(bed)
        go = await nodes.start_go(bed, lines)
        async with nodes.our_node(bed) as node:
            try:
                yield bed, [await nodes.start_ours(bed, node, lines), go]
            except ClientError as error:
                said = [f"{name}:\n{bed.log_tail(name, 15)}" for name in (node.process, GO)]
                raise ClientError("\n".join([str(error), *said])) from error


def measurements(clients: Clients, sizes: Sizes, port: int) -> list[Measurement]:
    """What is measured, in order. Rates are per second."""
    command = ["head", "-c", str(sizes.exec_mib * MIB), "/dev/zero"]

    async def first_byte(side: Side) -> float:
        streams = await clients.exec(side, ["echo", "hi"], times=_FIRST_BYTES)
        return statistics.median(each.first for each in streams) * 1000

    async def exec_raw(side: Side) -> float:
        (stream,) = await clients.exec(side, command)
        _expect(stream.bytes, sizes.exec_mib * MIB)
        return sizes.exec_mib / (stream.last - stream.first)

    async def exec_kubectl(side: Side) -> float:
        return sizes.exec_mib / await clients.kubectl_exec(side, command, WEBSOCKET)

    async def exec_spdy(side: Side) -> float:
        return sizes.exec_mib / await clients.kubectl_exec(side, command, SPDY)

    async def follow(side: Side) -> float:
        stream = await clients.follow(side)
        return LINES / stream.last

    async def forward(side: Side) -> float:
        stream = await clients.kubectl_download(side, port, WEBSOCKET)
        _expect(stream.bytes, sizes.forward_mib * MIB)
        return sizes.forward_mib / (stream.last - stream.first)

    async def forward_spdy(side: Side) -> float:
        stream = await clients.kubectl_download(side, port, SPDY)
        _expect(stream.bytes, sizes.forward_mib * MIB)
        return sizes.forward_mib / (stream.last - stream.first)

    return [
        Measurement("exec first byte, ms", first_byte, _FIRST_BYTE_TURNS),
        Measurement("exec stdout, WebSocket, MiB/s", exec_raw),
        Measurement("exec stdout, kubectl, MiB/s", exec_kubectl),
        Measurement("exec stdout, kubectl SPDY, MiB/s", exec_spdy),
        Measurement("log follow, lines/s", follow),
        Measurement("port-forward, kubectl, MiB/s", forward),
        Measurement("port-forward, kubectl SPDY, MiB/s", forward_spdy),
    ]


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise ClientError(f"{found} bytes came instead of {wanted}")


async def _sample(measurement: Measurement, side: Side) -> Sample:
    load, before = os.getloadavg()[0], usage(side.pid).cpu_seconds
    value = await measurement.get(side)
    cpu = usage(side.pid).cpu_seconds - before
    return Sample(side.name, measurement.what, value, cpu, load)


def _tell(number: int, sample: Sample) -> None:
    say(
        f"round {number + 1}: {sample.what}: {sample.node} {sample.value:.0f}, "
        f"{sample.cpu:.2f} CPU-s (load {sample.load:.1f})"
    )


async def _wave(clients: Clients, side: Side, commands: int) -> Wave:
    """So many commands, all open at once, each read only once all have begun."""
    forget_peak(side.pid)
    before, cpu = memory_mib(side.pid)[0], usage(side.pid).cpu_seconds
    zeros = f"head -c {_CROWD_BYTES} /dev/zero"
    script = f"{zeros}; sleep 1; {zeros}"
    for stream in await clients.exec(side, ["sh", "-c", script], times=commands, crowd=True):
        _expect(stream.bytes, 2 * _CROWD_BYTES)
    await asyncio.sleep(_SETTLE_SECONDS)
    after, peak = memory_mib(side.pid)
    used = usage(side.pid).cpu_seconds - cpu
    wave = Wave(side.name, commands, before, peak, after, used)
    say(f"{commands} commands at once: {side.name}: {before:.0f}, peak {peak:.0f}, {after:.0f} MiB")
    return wave
