"""A serving certificate from the cluster, by a request to its ``kubernetes.io/kubelet-serving``.

Somebody has to approve it (a person or an approver of the cluster's); until then, and without the
rights to ask, the server goes on with what it has. The key stays in memory: a new process asks
anew. Fed by the API server; :mod:`.tls` takes over what was signed.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from vk_provider.faults import ForbiddenError, KubeError, KubeNotFoundError
from vk_provider.log import scrub
from vk_provider.pods.types import Json
from vk_provider.server.certificate import (
    ServingPair,
    SigningRequest,
    expiry,
    renewal_time,
    signing_request,
)

_log = logging.getLogger(__name__)
PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"


class CertificatesApi(Protocol):
    """The part of the API client that is needed. Raises ``KubeError``."""

    async def create(self, path: str, body: Json) -> Mapping[str, Any]:
        """POST an object."""

    async def get(self, path: str) -> Mapping[str, Any]:
        """GET an object."""


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """How often an answer is looked for, and how long a refusal is believed."""

    poll_seconds: float = 5.0
    check_seconds: float = 60.0
    refused_seconds: float = 900.0


class RefusedRequestError(Exception):
    """The cluster will not sign it: why, and so nothing is asked for a while."""


def _now() -> datetime:
    return datetime.now(UTC)


class ServingRequest:
    """The certificate that the cluster signed for one node, kept up to date."""

    def __init__(
        self,
        api: CertificatesApi,
        node_name: str,
        addresses: Callable[[], Sequence[str]],
        times: RequestTimes = RequestTimes(),
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._addresses = addresses
        self._times = times
        self._clock = clock
        self._pair: tuple[ServingPair, frozenset[str]] | None = None

    def __call__(self) -> ServingPair | None:
        """What was signed; None while there is nothing, or once it has ended."""
        if self._pair is None or self._clock() >= expiry(self._pair[0]):
            return None
        return self._pair[0]

    async def run(self) -> None:
        """Ask, wait for the signature, and ask again in time; until cancelled."""
        while True:
            try:
                if self._is_due():
                    await self._obtain()
            except RefusedRequestError as refusal:
                _log.warning("no serving certificate from the cluster: %s", refusal)
                await asyncio.sleep(self._times.refused_seconds)
            except KubeError as fault:
                _log.warning("the request for a serving certificate failed: %s", fault)
            await asyncio.sleep(self._times.check_seconds)

    def _is_due(self) -> bool:
        if self._pair is None:
            return True
        pair, names = self._pair
        return names != frozenset(self._addresses()) or self._clock() >= renewal_time(pair)

    async def _obtain(self) -> None:
        names = frozenset(self._addresses())
        asked = await asyncio.to_thread(signing_request, self._node_name, sorted(names))
        try:
            name = (await self._api.create(PATH, self._body(asked)))["metadata"]["name"]
        except ForbiddenError as error:
            raise RefusedRequestError(str(error)) from error
        _log.info("asked for a serving certificate: kubectl certificate approve %s", name)
        chain = await self._signature(name)
        if chain is not None:
            self._pair = (ServingPair(chain, asked.key), names)
            _log.info("the cluster signed the serving certificate of request %s", name)

    async def _signature(self, name: str) -> bytes | None:
        """The chain; None if the request is gone (the cluster drops old ones)."""
        while True:
            try:
                found = await self._api.get(f"{PATH}/{name}")
            except KubeNotFoundError:
                return None
            except ForbiddenError as error:
                raise RefusedRequestError(str(error)) from error
            status = found.get("status") or {}
            for condition in status.get("conditions") or ():
                if condition.get("type") in ("Denied", "Failed"):
                    words = scrub(str(condition.get("message") or condition.get("reason") or ""))
                    raise RefusedRequestError(f"request {name} is {condition['type']}: {words}")
            if status.get("certificate"):
                return base64.b64decode(status["certificate"])
            await asyncio.sleep(self._times.poll_seconds)

    def _body(self, asked: SigningRequest) -> dict[str, Any]:
        return {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": f"vk-provider-{self._node_name}-"},
            "spec": {
                "request": base64.b64encode(asked.request).decode(),
                "signerName": SIGNER,
                "usages": ["digital signature", "server auth"],
            },
        }
