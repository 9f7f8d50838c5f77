"""Asking the cluster for a serving certificate; the API is one in memory that signs when told."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.server.bench import client_context, eventually, make_pod
from tests.integration.server.conftest import Stage
from tests.integration.server.streams_bench import StreamingBackend, spdy
from vk_provider.faults import ForbiddenError, KubeNotFoundError, KubeUnavailableError
from vk_provider.pods.types import InstanceRef, Json
from vk_provider.server.app import KubeletOptions, KubeletServer
from vk_provider.server.auth import Authorizer
from vk_provider.server.lookup import ServedPod
from vk_provider.server.serving_request import RequestTimes, ServingRequest
from vk_provider.server.tls import ServingNames, ServingTLS
from vk_provider.streams import ContainerIO

TIMES = RequestTimes(poll_seconds=0.01, check_seconds=0.01, refused_seconds=0.05)


@dataclass
class Signer:
    """The part of the API server that takes requests, and the controller that signs them."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    fault: Exception | None = None

    async def create(self, path: str, body: Json) -> Mapping[str, Any]:
        """Keep it under a new name."""
        if self.fault is not None:
            raise self.fault
        name = f"{body['metadata']['generateName']}{len(self.requests)}"
        self.requests[name] = {**body, "metadata": {"name": name}, "status": {}}
        return self.requests[name]

    async def get(self, path: str) -> Mapping[str, Any]:
        """By name."""
        name = path.rpartition("/")[2]
        if name not in self.requests:
            raise KubeNotFoundError(f"no {name}", 404)
        return self.requests[name]

    def approve(self, lifetime: timedelta = timedelta(days=1)) -> None:
        """Sign the last request."""
        request = list(self.requests.values())[-1]
        asked = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
        now = datetime.now(UTC)
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(issuer)
            .public_key(asked.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(seconds=1))
            .not_valid_after(now + lifetime)
        )
        for extension in asked.extensions:
            builder = builder.add_extension(extension.value, extension.critical)
        signed = builder.sign(self.key, hashes.SHA256())
        chain = signed.public_bytes(serialization.Encoding.PEM)
        request["status"]["certificate"] = base64.b64encode(chain).decode()


@asynccontextmanager
async def running(request: ServingRequest) -> AsyncIterator[None]:
    """Its loop, for as long as the block."""
    task = asyncio.create_task(request.run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_request_is_what_the_signer_accepts() -> None:
    """The subject of a node, its names, the two usages."""
    signer = Signer()
    async with running(ServingRequest(signer, "burst", lambda: ["10.0.0.9"], TIMES)):
        await eventually(lambda: len(signer.requests) == 1)

    (request,) = signer.requests.values()
    asked = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert request["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
    assert request["spec"]["usages"] == ["digital signature", "server auth"]
    assert asked.subject.rfc4514_string() == "CN=system:node:burst,O=system:nodes"
    assert [str(name.value) for name in names] == ["10.0.0.9", "burst"]


async def test_what_was_signed_is_used_and_renewed() -> None:
    """At four fifths of its life, or when the address changes; what has ended is not shown."""
    signer, addresses = Signer(), ["10.0.0.9"]
    now = [datetime.now(UTC)]
    request = ServingRequest(signer, "burst", lambda: addresses, TIMES, lambda: now[0])
    async with running(request):
        await eventually(lambda: len(signer.requests) == 1)
        assert request() is None
        signer.approve()
        await eventually(lambda: request() is not None)

        addresses[:] = ["10.0.0.10"]
        await eventually(lambda: len(signer.requests) == 2)
        signer.approve()
        await eventually(lambda: not request._is_due())

        now[0] += timedelta(hours=20)
        await eventually(lambda: len(signer.requests) == 3)
        assert request() is not None
        now[0] += timedelta(hours=5)
        assert request() is None


@pytest.mark.parametrize("how", ["denied", "forbidden", "unavailable", "dropped"])
async def test_a_refusal_is_waited_out(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """And said in the log; then there is a new request."""
    signer = Signer()
    if how == "forbidden":
        signer.fault = ForbiddenError("create certificatesigningrequests is forbidden", 403)
    if how == "unavailable":
        signer.fault = KubeUnavailableError("down", 503)
    request = ServingRequest(signer, "burst", lambda: ["10.0.0.9"], TIMES)
    async with running(request):
        if how in ("forbidden", "unavailable"):
            await eventually(lambda: "certificate" in caplog.text)
            signer.fault = None
        else:
            await eventually(lambda: len(signer.requests) == 1)
            (name,) = signer.requests
            if how == "denied":
                condition = {"type": "Denied", "message": "not you"}
                signer.requests[name]["status"]["conditions"] = [condition]
            else:
                signer.requests[name + "x"] = signer.requests.pop(name)
            await eventually(lambda: len(signer.requests) == 2)
            assert how != "denied" or "is Denied: not you" in caplog.text
        await eventually(lambda: len(signer.requests) >= 1)
        signer.approve()
        await eventually(lambda: request() is not None)


async def test_a_stream_outlives_the_change_of_certificate(tmp_path: Path) -> None:
    """Self-signed until it is approved; then new connections get the new one."""
    stage, signer = Stage(tmp_path), Signer()

    async def echo(io: ContainerIO) -> int:
        async for chunk in io.stdin():
            await io.write_stdout(chunk)
        return 0

    backend = StreamingBackend(echo)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    request = ServingRequest(signer, "burst", lambda: ["127.0.0.1"], TIMES)
    names = ServingNames("burst", lambda: ["127.0.0.1"])
    tls = ServingTLS(names, client_ca=lambda: stage.authority.pem, signed=request)
    options = KubeletOptions(host="127.0.0.1", port=0, refresh_seconds=0.02)
    server = KubeletServer(stage.pods, Authorizer(stage.judge, "burst"), tls, options)
    stage.port = await server.start()
    async with running(request), spdy(stage, "/exec/ns/p/c?command=x&input=1&output=1") as client:
        await client.open("error", "stdin", "stdout")
        own = tls.chain
        await eventually(lambda: len(signer.requests) == 1)
        signer.approve()
        await eventually(lambda: tls.chain != own)

        context = client_context()
        _, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=context)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        issuer = x509.load_der_x509_certificate(shown).issuer.rfc4514_string()
        writer.close()
        assert issuer == "CN=cluster"
        client.send("stdin", b"still here", fin=True)
        assert await client.ended("stdout") == b"still here"
    await server.close()
