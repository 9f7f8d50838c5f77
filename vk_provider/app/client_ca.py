"""Whose client certificates the kubelet port believes: a file, or the cluster's own CA.

Fed by the settings and the API server; read by ``server.tls`` at every refresh.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from vk_provider.faults import KubeError
from vk_provider.kube.client import KubeClient

logger = logging.getLogger(__name__)

PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
REFRESH_SECONDS = 300.0


class ClientCA:
    """The PEM bundle of the certificate authorities that may name a caller."""

    def __init__(self, client: KubeClient, file: str | None) -> None:
        self._client = client
        self._file = Path(file) if file else None
        self._bundle: bytes | None = None

    def __call__(self) -> bytes | None:
        """The bundle now; None: nobody is named by a certificate. Raises OSError."""
        return self._file.read_bytes() if self._file is not None else self._bundle

    async def load(self) -> None:
        """Ask the cluster, unless a file is given. Without an answer tokens still work."""
        if self._file is not None:
            return
        try:
            found = await self._client.get(PATH)
        except KubeError as fault:
            logger.warning("the cluster's client CA can't be read: %s", fault)
            return
        bundle = (found.get("data") or {}).get("client-ca-file")
        self._bundle = bundle.encode() if bundle else None

    async def run(self) -> None:
        """Follow its rotation until cancelled."""
        while self._file is None:
            await asyncio.sleep(REFRESH_SECONDS)
            await self.load()
