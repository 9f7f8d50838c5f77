"""Port-forward: SPDY, SPDY inside a WebSocket, and the channels of old clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.server.bench import Caller, eventually, make_pod
from tests.integration.server.conftest import Stage
from tests.integration.server.streams_bench import PORT_FORWARD, StreamingBackend, spdy, websocket
from tests.unit.wire.peer import FIN, Peer, data, sent
from vk_provider.pods.types import InstanceRef
from vk_provider.server.lookup import ServedPod

PATH = "/portForward/ns/p"
TUNNEL = "SPDY/3.1+portforward.k8s.io"


@pytest.fixture
def backend(stage: Stage) -> StreamingBackend:
    """The pod's provider."""
    backend = StreamingBackend()
    pod = make_pod()
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 53, "protocol": "UDP"}]
    stage.pods.served = ServedPod(pod, backend, InstanceRef("i-1"))
    return backend


async def test_a_connection_there_and_back(stage: Stage, backend: StreamingBackend) -> None:
    """Half-closed by the client, then by the port; both streams end."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="80", requestID="0")
        client.send("error0", fin=True)
        client.send("data0", b"hello")
        client.send("data0", fin=True)

        assert await client.ended("data0") == b"HELLO"
        assert await client.ended("error0") == b""

        await eventually(lambda: backend.ports[0].closed)
        assert backend.ports[0].eof


async def test_many_connections_at_once(stage: Stage, backend: StreamingBackend) -> None:
    """Over one client's connection, each with its own bytes."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        for number in range(50):
            await client.open("error", "data", port="80", requestID=str(number))
            client.send(f"data{number}", f"request {number}".encode())
        for number in reversed(range(50)):
            client.send(f"data{number}", fin=True)
        for number in range(50):
            assert await client.ended(f"data{number}") == f"REQUEST {number}".encode()
    await eventually(lambda: all(port.closed for port in backend.ports))


async def test_a_port_that_refuses_ends_its_own_only(
    stage: Stage, backend: StreamingBackend
) -> None:
    """With a kubelet's words on the error stream."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="80", requestID="0")
        await client.open("error", "data", port="1", requestID="1")

        words = (await client.ended("error1")).decode()

        assert words == "error forwarding port 1 to pod p_ns, uid u-1: connection refused"
        client.send("data0", b"alive", fin=True)
        assert await client.ended("data0") == b"ALIVE"


async def test_a_udp_port_is_refused(stage: Stage, backend: StreamingBackend) -> None:
    """Where the pod says that it is one."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="53", requestID="0")
        assert b"UDP protocol is not supported for 53" in await client.ended("error0")
    assert backend.ports == []


async def test_a_port_that_hangs_up(stage: Stage, backend: StreamingBackend) -> None:
    """Ends its data stream without an error; what still comes for it is dropped."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="2", requestID="0")
        assert await client.ended("data0") == b""
        client.send("data0", bytes(100_000))
        assert await client.ended("error0") == b""
        await client.open("error", "data", port="80", requestID="1")
        client.send("data1", b"x", fin=True)
        assert await client.ended("data1") == b"X"


async def test_a_reset_ends_a_connection(stage: Stage, backend: StreamingBackend) -> None:
    """That to the port, too, and one that is being dialled."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="80", requestID="0")
        await client.open("error", "data", port="3", requestID="1")
        await eventually(lambda: len(backend.ports) == 1)
        client.reset("data0")
        client.reset("data1")
        await eventually(lambda: backend.ports[0].closed)
        await client.open("error", "data", port="80", requestID="2")
        client.send("data2", b"x", fin=True)
        assert await client.ended("data2") == b"X"


async def test_a_client_that_hangs_up_ends_all(stage: Stage, backend: StreamingBackend) -> None:
    """No connection to a port outlives it."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        for number in range(5):
            await client.open("error", "data", port="80", requestID=str(number))
        await client.open("error", "data", port="3", requestID="5")
        await eventually(lambda: len(backend.ports) == 5)
    await eventually(lambda: all(port.closed for port in backend.ports))
    await eventually(lambda: len(asyncio.all_tasks()) <= 4)


async def test_half_a_pair_is_not_waited_for(stage: Stage, backend: StreamingBackend) -> None:
    """Thirty seconds; here half of one."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", port="80", requestID="0")
        assert b"timed out waiting for streams" in await client.ended("error0")


async def test_a_slow_port_holds_its_client_up(stage: Stage, backend: StreamingBackend) -> None:
    """And nothing is lost."""
    async with spdy(stage, PATH, PORT_FORWARD) as client:
        await client.open("error", "data", port="80", requestID="0")
        sending = b"abcdefgh" * 4096

        async def pour() -> None:
            for _ in range(256):
                client.send("data0", sending)
                await client.writer.drain()
            client.send("data0", fin=True)

        pouring = asyncio.create_task(pour())
        assert await client.ended("data0") == sending.upper() * 256
        await pouring


async def test_spdy_inside_a_websocket(stage: Stage, backend: StreamingBackend) -> None:
    """Message borders mean nothing."""
    async with websocket(stage, PATH, TUNNEL) as socket:
        assert socket.protocol == TUNNEL
        peer = Peer()
        headers = {"port": "80", "requestid": "0"}
        raw = peer.syn(1, 0, streamtype="error", **headers)
        raw += peer.syn(3, 0, streamtype="data", **headers) + data(3, b"tunnel", FIN)
        for start in range(0, len(raw), 7):
            await socket.send_bytes(raw[start : start + 7])
        frames: list[tuple[Any, ...]] = []
        received = b""
        while ("DATA", 1, b"", True) not in frames:
            received += (await asyncio.wait_for(socket.receive(), 10)).data
            frames = sent(received)
    assert frames[:2] == [("REPLY", 1), ("REPLY", 3)]
    assert b"".join(frame[2] for frame in frames if frame[:2] == ("DATA", 3)) == b"TUNNEL"


async def test_channels_of_old_clients(stage: Stage, backend: StreamingBackend) -> None:
    """Fixed ports, two channels each; the ports come first."""
    async with websocket(stage, PATH + "?port=80,1", "v4.channel.k8s.io") as socket:
        messages = [(await socket.receive()).data for _ in range(5)]
        assert messages[:4] == [b"\x00P\x00", b"\x01P\x00", b"\x02\x01\x00", b"\x03\x01\x00"]
        assert messages[4].startswith(b"\x03error forwarding port 1")
        await socket.send_bytes(b"\x00hello")
        assert (await socket.receive()).data == b"\x00HELLO"
    await eventually(lambda: backend.ports[0].closed)


async def test_old_clients_see_the_end(stage: Stage, backend: StreamingBackend) -> None:
    """When every port has closed the WebSocket closes, too."""
    async with websocket(stage, PATH + "?port=2", "v4.channel.k8s.io") as socket:
        assert len([message async for message in socket]) == 2
        assert socket.close_code == 1000


@pytest.mark.parametrize(
    ("query", "words"),
    [("", 'query parameter "port" is required'), ("?port=x", 'unable to parse "x" as a port')],
)
async def test_bad_ports_are_400(
    backend: StreamingBackend, admin: Caller, query: str, words: str
) -> None:
    """Before the upgrade."""
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    }
    status, text = await admin.get(PATH + query, headers=headers)
    assert status == 400
    assert words in text


async def test_a_pod_that_ended_has_no_ports(stage: Stage, admin: Caller) -> None:
    """In a kubelet's words."""
    pod = make_pod()
    pod["status"]["phase"] = "Succeeded"
    stage.pods.served = ServedPod(pod, StreamingBackend(), InstanceRef("i-1"))
    status, text = await admin.ask("POST", PATH)
    assert status == 500
    assert text.startswith('pod not found ("p_ns")')
