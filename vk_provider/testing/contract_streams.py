"""What exec, attach, port-forward and stats must do where a provider offers them.

A test class takes exactly the contracts of the capabilities that its provider offers, and
``ProviderContract`` fails where it takes others::

    class TestAcme(ProviderContract, ExecContract, AttachContract): ...

For ports the rig's backend implements :class:`PortBackend`; what exec and attach need in a
container is said in :mod:`.contract_exec`.
Fed by :mod:`.contract_rig`; feeds :mod:`.contract`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import pytest

from vk_provider.faults import InstanceNotFoundError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.streams import (
    CHUNK_BYTES,
    PortConnection,
    SupportsAttach,
    SupportsExec,
    SupportsPortForward,
    SupportsStats,
)
from vk_provider.testing.builders import make_stamp
from vk_provider.testing.contract_exec import AttachContract, ExecContract
from vk_provider.testing.contract_rig import ContractRig

__all__ = [
    "CAPABILITY_CONTRACTS",
    "AttachContract",
    "ExecContract",
    "PortBackend",
    "PortForwardContract",
    "StatsContract",
    "StreamContracts",
]

_DEADLINE_SECONDS = 15.0
_NOT_THERE = InstanceRef("never-was")


@runtime_checkable
class PortBackend(Protocol):
    """What a test of ports asks of the service behind the provider."""

    async def echo_port(self, ref: InstanceRef) -> int:
        """Let an instance listen on a port and answer what it is sent; once the sender has closed
        its direction, it closes its own. Returns the port once somebody listens."""

    async def closed_port(self, ref: InstanceRef) -> int:
        """A port of an instance that nobody listens on."""


class PortForwardContract:
    """Connecting to ports."""

    async def test_a_connection_carries_both_directions(self, rig: ContractRig) -> None:
        """Whole, however much it is."""
        ref = await rig.running(rig.pod())
        connection = await _ports(rig).open_port(ref, await _port_backend(rig).echo_port(ref))
        sent = bytes(range(256)) * 4096 * 4

        writing = asyncio.create_task(connection.write(sent))
        received = await _read(connection, len(sent))

        await writing
        await connection.close()
        assert received == sent

    async def test_closing_one_direction_leaves_the_other(self, rig: ContractRig) -> None:
        """The far side sees the end and may still answer; then we see its end."""
        ref = await rig.running(rig.pod())
        connection = await _ports(rig).open_port(ref, await _port_backend(rig).echo_port(ref))

        await connection.write(b"the last of it")
        await connection.write_eof()

        assert await _read(connection) == b"the last of it"
        assert await connection.read() == b""
        await connection.close()
        await connection.close()

    async def test_connections_run_side_by_side(self, rig: ContractRig) -> None:
        """Each its own."""
        ref = await rig.running(rig.pod())
        port = await _port_backend(rig).echo_port(ref)

        async def conversation(number: int) -> bytes:
            connection = await _ports(rig).open_port(ref, port)
            await connection.write(b"number %d" % number)
            await connection.write_eof()
            answer = await _read(connection)
            await connection.close()
            return answer

        answers = await asyncio.gather(*(conversation(number) for number in range(32)))

        assert answers == [b"number %d" % number for number in range(32)]

    async def test_a_close_lets_readers_go(self, rig: ContractRig) -> None:
        """Whoever waits for more gets the end, or a fault; nobody waits for ever."""
        ref = await rig.running(rig.pod())
        connection = await _ports(rig).open_port(ref, await _port_backend(rig).echo_port(ref))
        reading = asyncio.create_task(connection.read())
        await asyncio.sleep(0)

        await connection.close()

        async with asyncio.timeout(_DEADLINE_SECONDS):
            with suppress(UnavailableError):
                assert await reading == b""

    async def test_a_port_without_a_listener_is_unavailable(self, rig: ContractRig) -> None:
        """The message names the port."""
        ref = await rig.running(rig.pod())
        port = await _port_backend(rig).closed_port(ref)

        with pytest.raises(UnavailableError, match=str(port)):
            await _ports(rig).open_port(ref, port)

    async def test_ports_of_what_is_not_there_say_so(self, rig: ContractRig) -> None:
        """With a fault of their own."""
        with pytest.raises(InstanceNotFoundError):
            await _ports(rig).open_port(_NOT_THERE, 80)


class StatsContract:
    """Measuring usage."""

    async def test_usage_is_told_by_pod_and_container(self, rig: ContractRig) -> None:
        """For running instances of our cluster; what is not measured is absent, never negative."""
        pod = rig.pod()
        await rig.running(pod)
        await rig.backend.add_instance(make_stamp("app-9", cluster_id="cluster-2"))
        await rig.backend.add_instance(None)

        found = await _stats(rig).read_stats()

        assert [each.pod_uid for each in found] == [pod.stamp.pod_uid]
        (stats,) = found
        assert [each.name for each in stats.containers] == [each.name for each in pod.containers]
        for each in stats.containers:
            assert each.at.tzinfo is not None
            assert each.started_at is None or each.started_at <= each.at
            assert all(number >= 0 for number in _numbers(each))

    async def test_processor_time_only_grows(self, rig: ContractRig) -> None:
        """It is a counter since the container's start; times of measurement go on."""
        await rig.running(rig.pod())

        readings = []
        for _ in range(3):
            (stats,) = await _stats(rig).read_stats()
            readings.append(stats.containers[0])

        counters = [each.cpu_nanoseconds for each in readings if each.cpu_nanoseconds is not None]
        assert counters == sorted(counters)
        assert [each.at for each in readings] == sorted(each.at for each in readings)

    async def test_nothing_there_uses_nothing(self, rig: ContractRig) -> None:
        """Not a fault."""
        assert await _stats(rig).read_stats() == ()


class StreamContracts(ExecContract, AttachContract, PortForwardContract, StatsContract):
    """All of them, for providers that offer everything."""


CAPABILITY_CONTRACTS: tuple[tuple[type, type], ...] = (
    (SupportsExec, ExecContract),
    (SupportsAttach, AttachContract),
    (SupportsPortForward, PortForwardContract),
    (SupportsStats, StatsContract),
)
"""Which contract a test class must take for which capability."""


def _ports(rig: ContractRig) -> SupportsPortForward:
    assert isinstance(rig.provider, SupportsPortForward)
    return rig.provider


def _port_backend(rig: ContractRig) -> PortBackend:
    assert isinstance(rig.backend, PortBackend), "the rig's backend must implement PortBackend"
    return rig.backend


def _stats(rig: ContractRig) -> SupportsStats:
    assert isinstance(rig.provider, SupportsStats)
    return rig.provider


def _numbers(stats: Any) -> list[int]:
    names = [
        name for name in type(stats).__slots__ if name.endswith(("_bytes", "seconds", "cores"))
    ]
    values = [getattr(stats, name) for name in names]
    return [value for value in values if isinstance(value, int)]


async def _read(connection: PortConnection, count: int | None = None) -> bytes:
    received = bytearray()
    async with asyncio.timeout(_DEADLINE_SECONDS):
        while count is None or len(received) < count:
            chunk = await connection.read()
            assert len(chunk) <= CHUNK_BYTES
            if not chunk:
                break
            received += chunk
    return bytes(received)
