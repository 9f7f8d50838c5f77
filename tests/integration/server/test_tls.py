"""The serving certificate and the client CA, exchanged under a running server."""

import asyncio
import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.integration.server.bench import Authority, Caller, client_context, eventually
from tests.integration.server.conftest import Stage
from vk_provider.faults import ConfigError
from vk_provider.server.certificate import self_signed
from vk_provider.server.tls import CertificateFiles, ServingNames, ServingTLS


def names(*addresses: str) -> ServingNames:
    return ServingNames("burst", lambda: addresses)


def given(folder: Path, name: str = "first") -> CertificateFiles:
    """Write a certificate and its key where a Secret would be mounted."""
    pair = self_signed(name, ["127.0.0.1"], datetime.now(UTC))
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key", "spec.server.tls")
    files.certificate.write_bytes(pair.chain)
    files.key.write_bytes(pair.key)
    return files


async def served_chain(port: int) -> bytes:
    """What a new client is shown, as DER."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context())
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(shown, bytes)
    return shown


async def test_a_self_signed_certificate_verifies_by_address(admin: Caller) -> None:
    """The API server dials the IP; ``admin`` checks the name."""
    assert (await admin.get("/healthz"))[0] == 200


async def test_a_new_address_brings_a_new_certificate(stage: Stage) -> None:
    """On take-over the node's InternalIP changes."""
    before = stage.tls.chain
    stage.addresses = ["127.0.0.1", "192.0.2.9"]
    await eventually(lambda: stage.tls.chain != before)
    shown = x509.load_der_x509_certificate(await served_chain(stage.port))
    sans = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "192.0.2.9" in [str(ip) for ip in sans.get_values_for_type(x509.IPAddress)]


async def test_a_withdrawn_client_ca_is_gone(stage: Stage, admin: Caller) -> None:
    """Its clients are refused in the next handshake, those of the new one served."""
    assert (await admin.get("/healthz"))[0] == 200
    old, stage.authority = stage.authority, Authority("new")
    await eventually(lambda: not stage.tls.refresh())
    for authority, serves in ((old, False), (stage.authority, True)):
        pair = authority.client(stage.folder, "admin")
        connector = aiohttp.TCPConnector(ssl=client_context(stage.tls.chain, pair))
        async with aiohttp.ClientSession(connector=connector) as session:
            caller = Caller(session, f"https://127.0.0.1:{stage.port}")
            if serves:
                assert (await caller.get("/healthz"))[0] == 200
            else:
                with pytest.raises(aiohttp.ClientError):
                    await caller.get("/healthz")


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Both sides in memory; the client's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server)
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return theirs


def test_given_files_are_taken_over_when_they_change(tmp_path: Path) -> None:
    """On the same context, for the next handshake."""
    tls = ServingTLS(names(), given(tmp_path, "first"))
    context = tls.context
    assert not tls.refresh()

    given(tmp_path, "second")
    assert tls.refresh()

    shown = handshake(context, client_context()).getpeercert(binary_form=True)
    assert shown is not None
    assert "system:node:second" in x509.load_der_x509_certificate(shown).subject.rfc4514_string()
    assert tls.context is context


def test_alpn_is_http_1_1(tmp_path: Path) -> None:
    """Streams need it."""
    client = client_context()
    client.set_alpn_protocols(["h2", "http/1.1"])
    tls = ServingTLS(names(), given(tmp_path))
    assert handshake(tls.context, client).selected_alpn_protocol() == "http/1.1"


def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    """1.2 at least."""
    client = client_context()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = ServingTLS(names(), given(tmp_path))
    assert handshake(tls.context, client).version() == "TLSv1.2"
    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_half_changed_files_keep_the_old_pair(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One complaint, and the pair is taken when it is whole."""
    files = given(tmp_path, "first")
    tls = ServingTLS(names(), files)
    old, key = tls.chain, files.key.read_bytes()
    given(tmp_path, "second")
    second_key = files.key.read_bytes()
    files.key.write_bytes(key)
    with caplog.at_level(logging.WARNING):
        assert not tls.refresh()
        assert not tls.refresh()
    assert tls.chain == old
    assert len(caplog.records) == 1
    assert "spec.server.tls" in caplog.text

    files.key.write_bytes(second_key)
    assert tls.refresh()


@pytest.mark.parametrize("broken", ["missing", "garbage", "key"])
def test_bad_files_are_a_clear_error_at_the_start(tmp_path: Path, broken: str) -> None:
    """With the path in the configuration, and no key in the text."""
    files = given(tmp_path)
    if broken == "missing":
        files.certificate.unlink()
    elif broken == "garbage":
        files.certificate.write_text("nonsense")
    else:
        files.key.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"^spec\.server\.tls: "):
        ServingTLS(names(), files)


@pytest.mark.parametrize("ca", [b"nonsense", b"\xff"])
def test_a_bad_client_ca_is_a_clear_error(ca: bytes) -> None:
    """Rather than a server that lets nobody in."""
    with pytest.raises(ConfigError, match="client CA is not PEM"):
        ServingTLS(names(), client_ca=lambda: ca)


def test_own_certificate_is_renewed_before_its_end() -> None:
    """Nobody has to restart us after a year."""
    now = [datetime.now(UTC)]
    tls = ServingTLS(names("127.0.0.1"), clock=lambda: now[0])
    now[0] += timedelta(days=200)
    assert not tls.refresh()
    now[0] += timedelta(days=100)
    assert tls.refresh()


def test_a_certificate_near_its_end_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A given one is somebody else's to renew."""
    later = datetime.now(UTC) + timedelta(days=362)
    with caplog.at_level(logging.WARNING):
        ServingTLS(names(), given(tmp_path), clock=lambda: later)
    assert "ends at" in caplog.text


def test_an_encrypted_key_asks_for_no_password(tmp_path: Path) -> None:
    """A prompt would hang the start for ever."""
    files = given(tmp_path)
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError):
        ServingTLS(names(), files)
