"""What the server's tests stand on: a small PKI, and parts that implement its protocols."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vk_provider.faults import KubeError
from vk_provider.pods.types import (
    Explanation,
    InstanceRef,
    Json,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    ResolvedPod,
)
from vk_provider.provider import Provider, ProviderTraits
from vk_provider.server.access import AccessAttributes, Identity
from vk_provider.server.lookup import ServedPod

START = datetime(2026, 1, 1, tzinfo=UTC)


def line(second: float, text: str) -> LogLine:
    """A line so many seconds after the start of all logs."""
    return LogLine(START + timedelta(seconds=second), text.encode())


class Authority:
    """A certificate authority that lives for one test."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _certificate(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def client(self, folder: Path, user: str, *groups: str) -> tuple[Path, Path]:
        """Files of a client certificate and its key."""
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate(x509.Name(names), self._name, key.public_key())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = builder.add_extension(usage, False).sign(self._key, hashes.SHA256())
        chain, secret = folder / f"{user}.crt", folder / f"{user}.key"
        chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return chain, secret


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )


def client_context(
    server_chain: bytes | None = None, pair: tuple[Path, Path] | None = None
) -> ssl.SSLContext:
    """A client's side: verifies the server by its own certificate, if one is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if server_chain is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=server_chain.decode())
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


@dataclass
class Judge:
    """A reviewer with a fixed list of tokens and rights, which counts what it is asked."""

    tokens: dict[str, Identity] = field(default_factory=dict)
    rights: set[tuple[str, str, str]] = field(default_factory=set)
    broken: bool = False
    asked: list[object] = field(default_factory=list)

    async def token_review(self, token: str) -> Identity | None:
        """Whose token it is."""
        self.asked.append(token)
        if self.broken:
            raise KubeError("the API server is away")
        return self.tokens.get(token)

    async def access_review(self, attributes: AccessAttributes) -> bool:
        """Whether (user, verb, subresource) is in the list."""
        self.asked.append(attributes)
        if self.broken:
            raise KubeError("the API server is away")
        right = (attributes.identity.user, attributes.verb, attributes.subresource)
        return attributes.node_name == "burst" and right in self.rights


class SilentBackend:
    """A provider without logs."""

    traits = ProviderTraits(list_lag_seconds=1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """Nothing to say."""
        return Explanation({})

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """Always the same one."""
        return InstanceRef("i-1")

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        """Gone at once."""

    async def list_instances(self) -> Sequence[Observation]:
        """None."""
        return []

    async def capacity(self) -> NodeCapacity:
        """As configured."""
        return NodeCapacity()


class LoggingBackend(SilentBackend):
    """A provider whose log is written by the test while it is read.

    It honours no option but ``follow``: the server has to.
    """

    def __init__(self) -> None:
        self.lines: dict[str, list[LogLine]] = {"c": []}
        self.ended = asyncio.Event()
        self.fault: Exception | None = None
        self.asked: list[LogOptions] = []
        self.open = 0
        self.read = 0

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """What there is; with follow, what comes until the end."""
        self.asked.append(options)
        self.open += 1
        try:
            if self.fault is not None and not self.lines[container]:
                raise self.fault
            position = 0
            while True:
                while position < len(self.lines[container]):
                    self.read += 1
                    yield self.lines[container][position]
                    position += 1
                if self.fault is not None:
                    raise self.fault
                if not options.follow or self.ended.is_set():
                    return
                await asyncio.sleep(0.005)
        finally:
            self.open -= 1


def make_pod(state: Mapping[str, Any] | None = None, uid: str = "u-1") -> dict[str, Any]:
    """A pod ``ns/p`` with containers c and d, both in one state (running)."""
    state = {"running": {}} if state is None else state
    statuses = [{"name": name, "state": state, "lastState": {}} for name in ("c", "d")]
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": uid},
        "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


@dataclass
class Pods:
    """A lookup that shows what the test put there."""

    served: ServedPod | None = None

    def pods(self) -> Sequence[Json]:
        """All."""
        return [self.served.pod] if self.served else []

    def running_pods(self) -> Sequence[Json]:
        """Those with an instance."""
        return [self.served.pod] if self.served and self.served.ref else []

    def providers(self) -> Sequence[Provider]:
        """That of the pod."""
        provider = self.served.provider if self.served else None
        return [provider] if provider else []

    def find(self, namespace: str, name: str) -> ServedPod | None:
        """By name."""
        if self.served is None or (namespace, name) != ("ns", "p"):
            return None
        return self.served


@dataclass(frozen=True)
class Caller:
    """An HTTP client of one server with one identity."""

    session: aiohttp.ClientSession
    base: str

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        """Status and body."""
        return await self.ask("GET", path, **options)

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Status and body of any request."""
        async with self.session.request(method, self.base + path, **options) as response:
            return response.status, await response.text()


async def eventually(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)
