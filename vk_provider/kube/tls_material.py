"""Certificates and keys as bytes, and the TLS context they make; nothing touches the disk.

Fed by ``kube.identity`` and ``kube.credentials``; feeds ``kube.transport``.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vk_provider.faults import ConfigError


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What a TLS context is made of. Equal material, equal context."""

    authorities: bytes | None = None
    """PEM; None means the system's."""
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    verify: bool = True
    plain: bool = False
    """The server speaks HTTP without TLS."""

    def context(self) -> ssl.SSLContext | bool:
        """What aiohttp takes as ``ssl``."""
        if self.plain:
            return True
        if bool(self.certificate) != bool(self.key):
            raise ConfigError(["client-certificate and client-key go together: give both or none"])
        try:
            context = ssl.create_default_context(
                cadata=self.authorities.decode() if self.authorities else None
            )
            if self.certificate and self.key:
                with _as_file(self.certificate + b"\n" + self.key) as path:
                    context.load_cert_chain(path)
        except (ssl.SSLError, ValueError) as error:
            advice = "check certificate-authority, client-certificate and client-key: PEM is wanted"
            raise ConfigError([f"TLS material can't be used ({error}); {advice}"]) from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path for a library that takes no bytes: memory where there is such a thing."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tls")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
