"""The TLS context of the kubelet port: serving certificate and client CA, changed while it runs.

The listener keeps one context for its life. Each handshake is moved to the newest inner context,
which is built afresh when anything changes: that is how a withdrawn CA is really gone.
Fed by files or ``certificate``, and by the client CA as a callable; feeds the listener.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.server.certificate import ServingPair, expiry, renewal_time, self_signed

_log = logging.getLogger(__name__)
_WARN_BEFORE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a given certificate stands (a mounted Secret), and where that was configured."""

    certificate: Path
    key: Path
    config_path: str = "spec.server.tls"


@dataclass(frozen=True, slots=True)
class ServingNames:
    """Whom the certificate is for. ``addresses`` answers those of the node at this moment."""

    node_name: str
    addresses: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Inputs:
    pair: ServingPair
    client_ca: bytes


def _now() -> datetime:
    return datetime.now(UTC)


def no_client_ca() -> bytes | None:
    """For servers that take tokens only."""
    return None


def nothing_signed() -> ServingPair | None:
    """For clusters that are not asked for a certificate."""
    return None


class ServingTLS:
    """Owns the context of one listener and keeps it up to date.

    ``addresses`` and ``client_ca`` are called off the event loop: they answer from memory or read
    a small file.
    """

    def __init__(
        self,
        names: ServingNames,
        files: CertificateFiles | None = None,
        client_ca: Callable[[], bytes | None] = no_client_ca,
        clock: Callable[[], datetime] = _now,
        signed: Callable[[], ServingPair | None] = nothing_signed,
    ) -> None:
        """``signed`` answers what the cluster has signed, once it has.

        Raises:
            ConfigError: a given certificate, its key or the client CA can't be used.
        """
        self._names = names
        self._files = files
        self._client_ca = client_ca
        self._clock = clock
        self._signed = signed
        self._own: tuple[ServingPair, frozenset[str]] | None = None
        self._complained: str | None = None
        self.context = _bare_context()
        self.context.sni_callback = self._switch
        try:
            self._inputs = self._read()
            self._inner = _build(self._inputs)
        except (OSError, ValueError) as error:
            raise ConfigError([self._problem(error)]) from error
        self._adopt()

    def refresh(self) -> bool:
        """Take over what changed; True if anything did. What can't be used is logged once, and the
        former state goes on (files are often replaced one after the other)."""
        try:
            inputs = self._read()
            if inputs == self._inputs:
                self._complained = None
                return False
            inner = _build(inputs)
        except (OSError, ValueError) as error:
            self._complain(str(self._problem(error)))
            return False
        self._inputs, self._inner, self._complained = inputs, inner, None
        self._adopt()
        return True

    async def run(self, period_seconds: float = 10.0) -> None:
        """Refresh until cancelled."""
        while True:
            await asyncio.sleep(period_seconds)
            if await asyncio.to_thread(self.refresh):
                _log.info("the kubelet port now uses the new certificate and client CA")

    @property
    def chain(self) -> bytes:
        """The certificate chain that is served now, as PEM."""
        return self._inputs.pair.chain

    def _switch(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _outer: ssl.SSLContext
    ) -> None:
        # Called in every handshake, also for clients that name no server.
        connection.context = self._inner

    def _adopt(self) -> None:
        # The mode of a connection is fixed by the outer context, before the switch.
        wants = ssl.CERT_OPTIONAL if self._inputs.client_ca else ssl.CERT_NONE
        self.context.verify_mode = wants
        end = expiry(self._inputs.pair)
        if end - self._clock() < _WARN_BEFORE:
            _log.warning("the serving certificate of the kubelet port ends at %s", end.isoformat())

    def _read(self) -> _Inputs:
        if self._files is not None:
            pair = _given_pair(self._files)
        else:
            pair = self._signed() or self._own_pair()
        return _Inputs(pair, self._client_ca() or b"")

    def _own_pair(self) -> ServingPair:
        names = frozenset(self._names.addresses())
        if self._own is not None:
            pair, made_for = self._own
            if made_for == names and self._clock() < renewal_time(pair):
                return pair
        pair = self_signed(self._names.node_name, self._names.addresses(), self._clock())
        self._own = (pair, names)
        return pair

    def _complain(self, problem: str) -> None:
        if problem != self._complained:
            self._complained = problem
            _log.warning("the kubelet port keeps its former certificate and client CA: %s", problem)

    def _problem(self, error: Exception) -> FieldProblem:
        path = "spec.server.tls" if self._files is None else self._files.config_path
        return FieldProblem(path, f"the serving certificate or client CA can't be used: {error}")


def _given_pair(files: CertificateFiles) -> ServingPair:
    return ServingPair(files.certificate.read_bytes(), files.key.read_bytes())


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would carry a client certificate past a change of the CA.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    return context


def _build(inputs: _Inputs) -> ssl.SSLContext:
    """A context with this certificate and CA. Raises ValueError saying which of them is bad."""
    context = _bare_context()
    try:
        with _as_file(inputs.pair.chain + b"\n" + inputs.pair.key) as path:
            # The empty password turns an encrypted key into an error instead of a prompt.
            context.load_cert_chain(path, password="")
        expiry(inputs.pair)
    except (ssl.SSLError, ValueError) as error:
        message = f"certificate and key are not a pair of PEM files ({error})"
        raise ValueError(message) from error
    if inputs.client_ca:
        try:
            context.load_verify_locations(cadata=inputs.client_ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise ValueError(f"the client CA is not PEM ({error})") from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path to the content: ``ssl`` reads keys from files only. In memory where that exists, so
    that no key touches a disk and a read-only root is no obstacle."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("serving", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as stream:
            stream.write(content)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)
