"""The webhook's certificates: what OpenSSL makes of them, and of Secrets that others wrote."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vk_provider.controllers.webhook_pki import (
    Certificates,
    begin,
    described,
    from_secret,
    renewed,
    to_secret,
    with_new_authority,
    without_old_authorities,
)

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = ("localhost", "vk-provider-webhook.vk-provider.svc", "127.0.0.1")


async def handshake(held: Certificates, believed: bytes, folder: Path) -> None:
    """A TLS connection over loopback; raises what OpenSSL says of it."""
    file = folder / "pair.pem"
    file.write_bytes(held.serving.chain + held.serving.key)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(file)
    trusting = ssl.create_default_context(cadata=believed.decode())

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=serving)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname="localhost"
        )
        writer.close()


async def test_an_authority_is_believed_with_what_it_signed(tmp_path: Path) -> None:
    """By everybody who verifies names and chains."""
    held = begin(NAMES, NOW)

    await handshake(held, held.bundle, tmp_path)


async def test_while_authorities_change_both_certificates_are_believed(tmp_path: Path) -> None:
    """Until the old authority is forgotten, and with it what it signed."""
    old = begin(NAMES, NOW)
    between = with_new_authority(old, NOW)
    new = renewed(between, NAMES, NOW)
    last = without_old_authorities(new)

    await handshake(between, between.bundle, tmp_path)
    await handshake(new, between.bundle, tmp_path)
    await handshake(new, last.bundle, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(new, old.bundle, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(old, last.bundle, tmp_path)


def test_facts_are_read_from_the_certificates_themselves() -> None:
    """Whoever wrote the Secret."""
    held = begin(NAMES, NOW)
    facts = described(held)
    between = described(with_new_authority(held, NOW))

    assert facts.names == set(NAMES)
    assert (facts.authorities, facts.is_signed_by_newest) == (1, True)
    assert (between.authorities, between.is_signed_by_newest) == (2, False)
    assert facts.signed_at == NOW
    assert facts.authority_end == NOW + timedelta(days=365)
    assert NOW < facts.renewal < NOW + timedelta(days=61)


def test_a_secret_gives_back_what_was_put_in() -> None:
    """And never shows a key."""
    held = with_new_authority(begin(NAMES, NOW), NOW)
    found = from_secret({"data": to_secret(held)})

    assert found == held
    assert "PRIVATE" not in repr(found)


def test_a_secret_that_can_not_be_used_is_none() -> None:
    """Absent, empty, garbage, or of parts that do not belong together."""
    held, other = begin(NAMES, NOW), begin(NAMES, NOW)
    mixed = to_secret(held) | {"ca.key": to_secret(other)["ca.key"]}
    foreign = to_secret(held) | {"tls.key": to_secret(other)["tls.key"]}
    garbage = to_secret(held) | {"tls.crt": base64.b64encode(b"no certificate").decode()}
    broken = to_secret(held) | {"ca.crt": "***"}
    lacking = {key: value for key, value in to_secret(held).items() if key != "ca.key"}

    for data in (mixed, foreign, garbage, broken, lacking, {}):
        assert from_secret({"data": data}) is None
    assert from_secret(None) is None
    assert from_secret({}) is None
