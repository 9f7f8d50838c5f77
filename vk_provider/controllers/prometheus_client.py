"""Prometheus' HTTP API, as much of it as is needed: one query, its samples.

Fed by queries; feeds ``controllers.prometheus_signal`` and whoever reads alerts. Everything that
goes wrong is :class:`~vk_provider.faults.UnavailableError` with a sentence: a second opinion that
can't be had is no reason to fail.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson

from vk_provider.faults import DeniedError, UnavailableError
from vk_provider.secrets import ReadSecret, is_sendable
from vk_provider.settings_bursting_prometheus import PrometheusSettings

CONNECTIONS = 4
LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of an instant vector."""

    labels: Mapping[str, str]
    value: float


class PrometheusClient:
    """One Prometheus. Use as an async context manager."""

    def __init__(self, settings: PrometheusSettings, read_secret: ReadSecret | None = None) -> None:
        self._settings = settings
        self._read_secret = read_secret
        self._session: aiohttp.ClientSession | None = None
        self._trust: tuple[bytes, ssl.SSLContext] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def query(self, promql: str) -> list[Sample]:
        """The samples of an instant query; what was divided by nothing is NaN or infinite.

        Raises:
            UnavailableError: there is no answer, or none that can be used.
        """
        answer = await self._ask(promql)
        result = answer.get("result")
        if answer.get("resultType") == "scalar" and isinstance(result, list):
            return _samples([{"metric": {}, "value": result}])
        if answer.get("resultType") != "vector" or not isinstance(result, list):
            found = answer.get("resultType")
            raise UnavailableError(f"Prometheus: {promql}: found a {found}, wanted a vector")
        return _samples(result)

    async def number(self, promql: str) -> float | None:
        """The one number of a query; None where it gives none. Several are a mistake."""
        samples = [one for one in await self.query(promql) if math.isfinite(one.value)]
        if len(samples) > 1:
            raise UnavailableError(f"Prometheus: {promql}: found {len(samples)} samples, wanted 1")
        return samples[0].value if samples else None

    async def _ask(self, promql: str) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout)
        url = f"{self._settings.url.rstrip('/')}/api/v1/query"
        try:
            headers = await self._headers()
            session, trust = self._opened(), self._trusted()
            async with session.post(
                url, data={"query": promql}, headers=headers, timeout=timeout, ssl=trust
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError, DeniedError) as error:
            cause = str(error) or type(error).__name__
            raise UnavailableError(f"Prometheus at {url}: {cause}") from error
        return _unpacked(response.status, body)

    async def _headers(self) -> dict[str, str]:
        source = self._settings.bearer_token
        if source is None:
            return {}
        token = await source.read(self._read_secret)
        if not is_sendable(token):
            raise DeniedError(f"the token in {source} holds characters that no token has")
        return {"Authorization": f"Bearer {token}"}

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _trusted(self) -> ssl.SSLContext | bool:
        """Whom we believe now: an authority that was rotated needs no restart. Raises OSError."""
        file = self._settings.ca_file
        if file is None:
            return True
        content = Path(file).read_bytes()
        if self._trust is None or self._trust[0] != content:
            self._trust = content, ssl.create_default_context(cafile=file)
        return self._trust[1]


def _unpacked(status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        shown = body[:LONGEST_SHOWN].decode("utf-8", "replace")
        raise UnavailableError(f"Prometheus answered {status}: {shown}")
    if answer.get("status") != "success" or not isinstance(answer.get("data"), dict):
        raise UnavailableError(f"Prometheus answered {status}: {answer.get('error')}")
    data: dict[str, Any] = answer["data"]
    return data


def _samples(result: list[Any]) -> list[Sample]:
    found = []
    for one in result:
        try:
            value = float(one["value"][1])
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        found.append(Sample(_labels(one.get("metric")), value))
    return found


def _labels(metric: object) -> dict[str, str]:
    entries = metric.items() if isinstance(metric, dict) else ()
    return {key: value for key, value in entries if isinstance(value, str)}
