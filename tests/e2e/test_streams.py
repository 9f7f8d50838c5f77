"""exec, attach, cp, port-forward and logs -f with the real kubectl, over both protocols.

Containers are local processes, so what is run in them is real.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import ssl
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.kubectl_streams import SPDY, WEBSOCKET, Kubectl, end, sit_at, terminal
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Json, Workloads, pod_template, state_of
from tests.rig.access import ADMIN_GROUP
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

IMAGE = "registry.example/tools:1"
NODE_SPEC = {
    "backends": [{"name": "local", "provider": "process", "config": {"service": "streams"}}]
}
PROTOCOLS = pytest.mark.parametrize(
    "protocol", [WEBSOCKET, SPDY], ids=["websocket", "spdy"], scope="module"
)
BIG_BYTES = 100 * 1024 * 1024

WEB_SERVER = """
import http.server, socketserver
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (self.path * 2000).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
Server(("127.0.0.1", %d), Answer).serve_forever()
"""


def container(*command: str, **more: object) -> Json:
    """A container that runs this; without a command it just waits."""
    return {
        "name": "main",
        "image": IMAGE,
        **({"command": list(command)} if command else {}),
    } | more


async def run_pod(node: NodeUnderTest, workloads: Workloads, *containers: Json) -> Json:
    """A running pod ``app``."""
    template = pod_template(node.name, containers=list(containers), restartPolicy="Never")
    await workloads.create_pod("app", template)
    return await workloads.pod_in("app", "Running")


@PROTOCOLS
@pytest.mark.parametrize("code", [0, 3, 137])
async def test_exit_codes(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str], code: int
) -> None:
    """kubectl ends as the command did, and both outputs arrive on their own streams."""
    await run_pod(node, workloads, container())
    script = f"echo out; echo err >&2; exit {code}"

    answer = await Kubectl(workloads, protocol).run("exec", "app", "--", "sh", "-c", script)

    assert (answer.code, answer.out) == (code, b"out\n")
    assert answer.err.startswith("err\n")
    assert ("command terminated with exit code" in answer.err) == (code != 0)


@PROTOCOLS
async def test_input_is_piped_and_ends(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str]
) -> None:
    """The command sees the end of its input, works on, and nothing is lost either way."""
    await run_pod(node, workloads, container())
    sent = os.urandom(3_000_000)
    kubectl = Kubectl(workloads, protocol)

    answer = await kubectl.run("exec", "-i", "app", "--", "sh", "-c", "cat; echo end", input=sent)

    assert answer.out == sent + b"end\n", (len(answer.out), answer.err)
    counted = await kubectl.run("exec", "-i", "app", "--", "wc", "-c", input=sent)
    assert counted.out.split() == [str(len(sent)).encode()]


@PROTOCOLS
async def test_a_terminal(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str]
) -> None:
    """`exec -it`: the first size, a new one, Ctrl-C for the program only, the end."""
    await run_pod(node, workloads, container())

    async with terminal(
        Kubectl(workloads, protocol), "exec", "-it", "app", "--", "sh", "-i"
    ) as shell:
        await sit_at(shell)


@PROTOCOLS
async def test_a_client_that_leaves_ends_its_command(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str], tmp_path: Path
) -> None:
    """Nothing runs on for nobody; the container does."""
    await run_pod(node, workloads, container())
    mark = tmp_path / "alive"
    script = f"while true; do date > {mark}; sleep 0.1; done"
    process = await Kubectl(workloads, protocol).start("exec", "app", "--", "sh", "-c", script)
    await eventually(lambda: _is(mark.exists()), "the command runs")

    await end(process)

    async def stopped() -> bool:
        mark.unlink(missing_ok=True)
        await asyncio.sleep(0.5)
        return not mark.exists()

    await eventually(stopped, "the command ends", seconds=20)
    assert (await Kubectl(workloads, protocol).run("exec", "app", "--", "true")).code == 0


async def _is(fact: bool) -> bool:
    return fact


@PROTOCOLS
async def test_attach(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str]
) -> None:
    """The container's own streams; what is typed reaches it, and its end ends kubectl."""
    script = "while read line; do echo got $line; [ $line = stop ] && exit 5; done"
    await run_pod(node, workloads, container("sh", "-c", script, stdin=True))
    process = await Kubectl(workloads, protocol).start("attach", "-i", "app")
    assert process.stdin
    assert process.stdout

    process.stdin.write(b"one\n")
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"got one\n"
    process.stdin.write(b"stop\n")

    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"got stop\n"
    await asyncio.wait_for(process.wait(), 20)
    pod = await workloads.pod_in("app", "Failed")
    assert state_of(pod)["terminated"]["exitCode"] == 5


@PROTOCOLS
async def test_a_large_file_is_copied_both_ways(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str], tmp_path: Path
) -> None:
    """100 MiB up and down again: the same bytes."""
    await run_pod(node, workloads, container())
    sent, back = tmp_path / "sent", tmp_path / "back"
    digest = hashlib.sha256()
    with sent.open("wb") as file:
        for _ in range(BIG_BYTES >> 20):
            block = os.urandom(1 << 20)
            digest.update(block)
            file.write(block)
    kubectl = Kubectl(workloads, protocol)

    up = await kubectl.run("cp", str(sent), "app:big", seconds=240)
    assert up.code == 0, up.err
    down = await kubectl.run("cp", "app:big", str(back), seconds=240)
    assert down.code == 0, down.err

    with back.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest.hexdigest()


@asynccontextmanager
async def forwarded(kubectl: Kubectl, *ports: str) -> AsyncIterator[list[int]]:
    """The local ports of a running `kubectl port-forward`."""
    process = await kubectl.start("port-forward", "app", *ports)
    assert process.stdout
    try:
        found = []
        for _ in ports:
            line = await asyncio.wait_for(process.stdout.readline(), 20)
            while b"127.0.0.1:" not in line:
                line = await asyncio.wait_for(process.stdout.readline(), 20)
            match = re.search(rb"127\.0\.0\.1:(\d+)", line)
            assert match, line
            found.append(int(match[1]))
        yield found
    finally:
        await end(process)


@PROTOCOLS
async def test_port_forward(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str]
) -> None:
    """Many requests at once through one forward; each gets its own answer."""
    port = workloads.bed.free_port()
    server = container(sys.executable, "-c", WEB_SERVER % port, ports=[{"containerPort": port}])
    await run_pod(node, workloads, server)
    kubectl = Kubectl(workloads, protocol)

    async def listens() -> bool:
        probe = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        return (await kubectl.run("exec", "app", "--", sys.executable, "-c", probe)).code == 0

    await eventually(listens, "the web server")
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with (
        forwarded(kubectl, f":{port}") as (local,),
        aiohttp.ClientSession(connector=connector) as session,
    ):

        async def get(number: int) -> str:
            async with session.get(f"http://127.0.0.1:{local}/{number}/") as response:
                return await response.text()

        answers = await asyncio.wait_for(asyncio.gather(*map(get, range(100))), 60)

    assert answers == [f"/{number}/" * 2000 for number in range(100)]


@PROTOCOLS
async def test_a_closed_port_says_so(
    node: NodeUnderTest, workloads: Workloads, protocol: Mapping[str, str]
) -> None:
    """kubectl prints who refused."""
    closed = workloads.bed.free_port()
    await run_pod(node, workloads, container())
    process = await Kubectl(workloads, protocol).start("port-forward", "app", f":{closed}")
    assert process.stdout
    assert process.stderr
    line = await asyncio.wait_for(process.stdout.readline(), 20)
    local = int(line.split(b"127.0.0.1:")[1].split()[0])

    reader, writer = await asyncio.open_connection("127.0.0.1", local)

    assert await asyncio.wait_for(reader.read(), 20) == b""
    said = b""
    while b"connection refused" not in said:
        more = await asyncio.wait_for(process.stderr.readline(), 20)
        assert more, said
        said += more
    assert f"error forwarding port {closed}".encode() in said
    writer.close()
    await end(process)


async def streamed(workloads: Workloads) -> dict[tuple[str, str], float]:
    """How often the API server has passed a WebSocket on, by subresource and way."""
    text = await workloads.bed.request_json("GET", "/metrics")
    return {
        (sample.labels["subresource"], sample.labels["proxy_type"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "apiserver_websocket_streaming_requests_total"
    }


async def test_websockets_come_through_where_the_api_server_lets_them(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """From 1.36 on, as the node declares it; before, the API server translates to SPDY."""
    await run_pod(node, workloads, container())
    is_new = int(workloads.bed.kube_version.split(".")[1]) >= 36
    declared = (await node.node())["status"].get("declaredFeatures")
    assert declared == (["ExtendWebSocketsToKubelet"] if is_new else None)
    before = await streamed(workloads)

    assert (await Kubectl(workloads).run("exec", "app", "--", "true")).code == 0

    way = ("exec", "proxied_to_kubelet" if is_new else "translated_at_apiserver")
    after = await streamed(workloads)
    if is_new or way in after:
        assert after[way] == before.get(way, 0) + 1


@asynccontextmanager
async def plain_websocket(
    workloads: Workloads, path: str, protocol: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse[bool]]:
    """A WebSocket to a pod's subresource through the API server, as other clients open it."""
    bed = workloads.bed
    trust = ssl.create_default_context(cafile=str(bed.ca_file))
    pair = bed.authority.issue("websocket-client", "websocket-client", [ADMIN_GROUP])
    trust.load_cert_chain(pair.certificate, pair.key)
    url = bed.url + workloads.path("pods", "app") + path
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=[protocol], ssl=trust) as socket,
    ):
        yield socket


@pytest.mark.parametrize("encoding", ["", "base64."])
async def test_clients_of_other_languages_run_commands(
    node: NodeUnderTest, workloads: Workloads, encoding: str
) -> None:
    """They speak v4 channels, in binary or in base64."""
    await run_pod(node, workloads, container())
    query = "/exec?command=sh&command=-c&command=echo%20hello%3Bexit%203&stdout=true&stderr=true"
    protocol = f"v4.{encoding}channel.k8s.io"

    async with plain_websocket(workloads, query, protocol) as socket:
        messages = [message.data async for message in socket]

    if encoding:
        messages = [message[:1].encode() + b64decode(message[1:]) for message in messages]
        messages = [bytes([message[0] - ord("0")]) + message[1:] for message in messages]
    assert b"".join(m[1:] for m in messages if m[0] == 1) == b"hello\n"
    status = json.loads(messages[-1][1:])
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_clients_of_other_languages_forward_ports(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """One WebSocket for fixed ports, two channels each."""
    port = workloads.bed.free_port()
    server = container(sys.executable, "-c", WEB_SERVER % port, ports=[{"containerPort": port}])
    await run_pod(node, workloads, server)
    request = b"GET /x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    async def answer() -> bytes:
        path = f"/portforward?ports={port}"
        async with plain_websocket(workloads, path, "v4.channel.k8s.io") as socket:
            await socket.send_bytes(b"\0" + request)
            received = [message.data async for message in socket]
        return b"".join(data[1:] for data in received if data[0] == 0)

    said = await eventually(lambda: _with_body(answer()), "an answer of the web server")

    assert said.startswith(port.to_bytes(2, "little") + b"HTTP/1.1 200 OK")
    assert said.endswith(b"/x/" * 2000)


async def _with_body(answer: Awaitable[bytes]) -> bytes:
    said = await answer
    return said if b"200 OK" in said else b""


async def test_what_does_not_run_says_so(node: NodeUnderTest, workloads: Workloads) -> None:
    """Before any stream: a pod that ended, and a container that kubectl debug wished for."""
    await run_pod(node, workloads, container())
    patch = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": IMAGE}]}}
    await workloads.patch(workloads.path("pods", "app") + "/ephemeralcontainers", patch)

    answer = await Kubectl(workloads).run("exec", "app", "-c", "debugger", "--", "true")

    assert answer.code != 0
    assert 'container not found ("debugger")' in answer.err
    assert "can't add a container to a running pod" in answer.err


async def test_debug_says_why_it_can_not(node: NodeUnderTest, workloads: Workloads) -> None:
    """The API server takes the container; kubectl prints why nothing starts it."""
    await run_pod(node, workloads, container())
    process = await Kubectl(workloads).start("debug", "app", f"--image={IMAGE}", "-i")
    assert process.stderr
    said = b""
    try:
        while b"can't add a container to a running pod" not in said:
            line = await asyncio.wait_for(process.stderr.readline(), 20)
            assert line, said
            said += line
    finally:
        await end(process)


async def test_follow_ends_with_the_container(node: NodeUnderTest, workloads: Workloads) -> None:
    """`logs -f` shows each line as it comes, and ends by itself."""
    script = "for i in 1 2 3; do echo line $i; sleep 0.5; done"
    await run_pod(node, workloads, container("sh", "-c", script))

    answer = await Kubectl(workloads).run("logs", "-f", "app")

    assert (answer.code, answer.out) == (0, b"line 1\nline 2\nline 3\n")
