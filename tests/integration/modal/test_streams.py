"""What flows to sandboxes beyond the contract: both outputs of an attach, and tunnels over TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Simulator
from vk_provider_modal.simulator.model import STATUSES, End
from vk_provider_modal.tunnels import TunnelConnection, connect

from tests.integration.modal.test_creates import create
from tests.integration.modal.test_logs import say
from tests.rig.pki import Authority
from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.streams import AttachRequest, ExecRequest
from vk_provider.testing.builders import make_container, make_resolved_pod
from vk_provider.testing.contract_client import ScriptedClient


def end(simulator: Simulator, ref: InstanceRef, status: str, exit_code: int = 0) -> None:
    """Let a container end."""
    found = End(STATUSES.index(status), simulator.state.clock.now(), exit_code)
    simulator.state.model.finish(simulator.state.model.sandboxes[ref.id], found)


@pytest.mark.parametrize("tty", [False, True])
async def test_a_command_hears_ctrl_c_whoever_started_us(
    provider: ModalProvider, deaf: None, tty: bool
) -> None:
    """What runs in the background ignores it, and so would all that it starts."""
    ref, client = await create(provider), ScriptedClient()
    request = ExecRequest("main", ("sh", "-c", "kill -INT $$; echo deaf"), tty=tty)
    await provider.exec(ref, request, client)

    assert b"deaf" not in client.stdout


async def test_an_attach_keeps_both_outputs_apart(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Half lines at once; what was said before is not said again."""
    ref, client = await create(provider), ScriptedClient()
    say(simulator, ref, "before\n")
    attached = asyncio.create_task(provider.attach(ref, AttachRequest("main"), client))
    # Nobody can tell from outside when it has joined.
    while b"now" not in client.stdout:
        say(simulator, ref, "now ")
        await asyncio.sleep(0.2)
    say(simulator, ref, "oops", "stderr")
    end(simulator, ref, "FAILURE", 3)

    async with asyncio.timeout(30):
        assert await attached == 3

    assert b"before" not in client.stdout
    assert client.stderr == b"oops"


async def test_only_what_was_asked_for_is_handed_on(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """And an end that was not the container's own has no exit code."""
    ref, client = await create(provider), ScriptedClient()
    request = AttachRequest("main", stdout=False)
    attached = asyncio.create_task(provider.attach(ref, request, client))
    while b"oops" not in client.stderr:
        say(simulator, ref, "unheard\n")
        say(simulator, ref, "oops\n", "stderr")
        await asyncio.sleep(0.2)
    end(simulator, ref, "INTERNAL_FAILURE")

    async with asyncio.timeout(30):
        assert await attached is None

    assert not client.stdout


async def test_input_is_refused_with_another_way(provider: ModalProvider) -> None:
    """It would reach the container once, and never again."""
    ref = await create(provider)

    with pytest.raises(NotSupportedError, match="kubectl exec -i"):
        await provider.attach(ref, AttachRequest("main", stdin=True), ScriptedClient())


async def test_a_sandbox_that_modal_forgets_ends_its_attach(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Without an exit code."""
    ref, client = await create(provider), ScriptedClient()
    attached = asyncio.create_task(provider.attach(ref, AttachRequest("main"), client))
    while b"now" not in client.stdout:
        say(simulator, ref, "now\n")
        await asyncio.sleep(0.2)
    del simulator.state.model.sandboxes[ref.id]
    simulator.state.model.living.pop(ref.id, None)

    async with asyncio.timeout(30):
        assert await attached is None


async def test_a_port_that_the_pod_does_not_name_has_no_tunnel(provider: ModalProvider) -> None:
    """Modal opens none later, and a sentence says what to do."""
    named = make_resolved_pod(containers=[make_container(ports=[{"containerPort": 8000}])])
    ref = await create(provider, named)

    with pytest.raises(UnavailableError, match=r"port 9000 has no tunnel; name it .* 8000"):
        await provider.open_port(ref, 9000)
    with pytest.raises(InstanceNotFoundError):
        await provider.open_port(InstanceRef("sb-nowhere"), 8000)


@pytest.fixture
async def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A tunnel's end with TLS, which sends back what it gets; its address."""
    authority = Authority(tmp_path)
    pair = authority.issue("tunnel", "localhost", hosts=["localhost"])
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.files.certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 0, ssl=context)
    yield f"https://localhost:{server.sockets[0].getsockname()[1]}"
    server.close()
    await server.wait_closed()


async def received(connection: TunnelConnection, size: int) -> bytes:
    """So many bytes."""
    found = b""
    while len(found) < size:
        found += await connection.read()
    return found


async def test_a_tunnel_with_tls_carries_plain_bytes(echo: str) -> None:
    """Modal ends the TLS, so that a client at home speaks as it would to the container."""
    connection = await connect({8000: echo}, 8000)
    sent = bytes(range(256)) * 1024

    writing = asyncio.create_task(connection.write(sent))
    assert await received(connection, len(sent)) == sent
    await writing
    await connection.write_eof()
    await connection.write(b"more")

    assert await received(connection, 4) == b"more"
    await connection.close()
    assert await connection.read() == b""


async def test_a_tunnel_that_nobody_vouches_for_is_refused(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is in between could read along."""
    monkeypatch.delenv("SSL_CERT_FILE")

    with pytest.raises(UnavailableError, match="port 8000: SSLCertVerificationError"):
        await connect({8000: echo}, 8000)
