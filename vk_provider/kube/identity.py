"""An identity that stays fresh: files that rotate, tokens that expire, a 401 in between.

Sources are read again every minute and after a 401; a new TLS context is made only when its
material has changed, so connections are kept otherwise. No secret is ever shown.

Fed by ``kube.credentials`` (what to read); feeds ``kube.transport``.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vk_provider.faults import ConfigError
from vk_provider.kube.tls_material import TlsMaterial
from vk_provider.secrets import is_sendable

logger = logging.getLogger(__name__)

REREAD_SECONDS = 60.0
REFRESH_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """One reading of the sources."""

    server: str
    namespace: str
    tls: TlsMaterial = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    server_hostname: str | None = None
    proxy: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.headers.items():
            if not is_sendable(value):
                what = "its value holds characters that no header may; is the token one line?"
                raise ConfigError([f"the header {name} can't be sent: {what}"])


Source = Callable[[bool], Awaitable[Loaded]]
"""Reads everything again; True means that what was cached has been refused."""


class Credentials:
    """An identity for :class:`vk_provider.kube.client.KubeClient`, renewed as it is used."""

    def __init__(
        self,
        source: Source,
        loaded: Loaded,
        *,
        reread_seconds: float = REREAD_SECONDS,
        refresh_pause_seconds: float = REFRESH_PAUSE_SECONDS,
    ) -> None:
        self._reread_seconds = reread_seconds
        self._refresh_pause_seconds = refresh_pause_seconds
        self._source = source
        self._loaded = loaded
        self._ssl = loaded.tls.context()
        self._read_at = time.monotonic()
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Credentials(server={self.server!r}, namespace={self.namespace!r})"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._loaded.server

    @property
    def namespace(self) -> str:
        """The namespace of this process or of the kubeconfig's context."""
        return self._loaded.namespace

    @property
    def ssl(self) -> ssl.SSLContext | bool:
        """What aiohttp takes as ``ssl``; another object after a rotation."""
        return self._ssl

    @property
    def server_hostname(self) -> str | None:
        """The name in the API server's certificate, where it is not the URL's."""
        return self._loaded.server_hostname

    @property
    def proxy(self) -> str | None:
        """The HTTP proxy on the way, if any."""
        return self._loaded.proxy

    async def headers(self) -> dict[str, str]:
        """The headers that say who we are, read again if they may have rotated."""
        if time.monotonic() - self._read_at >= self._reread_seconds:
            await self._reread(refused=False, older_than=self._reread_seconds)
        return dict(self._loaded.headers)

    async def refresh(self) -> None:
        """Read everything again, since the API server answered 401."""
        await self._reread(refused=True, older_than=self._refresh_pause_seconds)

    async def _reread(self, *, refused: bool, older_than: float) -> None:
        async with self._lock:
            # Many calls may find out at once; one reading serves them all.
            if time.monotonic() - self._read_at < older_than:
                return
            self._read_at = time.monotonic()
            try:
                loaded = await self._source(refused)
                if loaded.tls != self._loaded.tls:
                    self._ssl = loaded.tls.context()
            except ConfigError as error:
                # What we have may serve for a while yet; the API server will say when it does not.
                logger.warning("credentials could not be read again, keeping the old: %s", error)
                return
            self._loaded = loaded


def in_cluster(folder: Path, environ: Mapping[str, str]) -> Source:
    """The ServiceAccount that a kubelet mounted into this pod."""

    async def read(_: bool) -> Loaded:
        host = environ["KUBERNETES_SERVICE_HOST"]
        port = environ.get("KUBERNETES_SERVICE_PORT", "443")
        address = f"[{host}]" if ":" in host else host
        token = _mounted(folder / "token").strip()
        return Loaded(
            server=f"https://{address}:{port}",
            namespace=_mounted(folder / "namespace").strip() or "default",
            tls=TlsMaterial(authorities=_mounted(folder / "ca.crt").encode()),
            headers={"Authorization": f"Bearer {token}"},
        )

    return read


def _mounted(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(
            [
                f"{path}: {error.strerror}; is automountServiceAccountToken off for this pod? "
                "Mount the token, or name a kubeconfig with --kubeconfig"
            ]
        ) from error
