"""What RunPod has, what it costs and what it came to: the reading half of the client.

Fed by ``provider`` through :class:`.client.RunPodClient`; speaks through ``transport``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vk_provider_runpod.answers import read_object
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.transport import Call, Transport, server_time


class Market:
    """One account's view of the catalogue, and its bill."""

    def __init__(self, config: RunPodConfig, transport: Transport) -> None:
        self._config = config
        self._transport = transport

    async def list_gpus(self, count: int) -> Mapping[str, Any]:
        """``GET /v2/catalog/gpus`` with stock for ``count`` GPUs in the configured cloud."""
        config = self._config
        query = {"include": "AVAILABILITY", "product": "POD", "count": str(count)}
        query["cloud"] = config.cloud_type
        if config.min_cuda_version:
            query["minCudaVersion"] = config.min_cuda_version
        call = Call("list GPU types", "GET", "/catalog/gpus", query=query)
        return read_object(await self._transport.send(call))

    async def list_cpus(self) -> Mapping[str, Any]:
        """``GET /v2/catalog/cpus`` with stock."""
        query = {"include": "AVAILABILITY", "product": "POD"}
        call = Call("list CPU types", "GET", "/catalog/cpus", query=query)
        return read_object(await self._transport.send(call))

    async def read_bill(self, query: Mapping[str, str]) -> tuple[Mapping[str, Any], datetime]:
        """``GET /v2/billing/pods``: what every pod of the account cost, and the server's time."""
        call = Call("read bill", "GET", "/billing/pods", query=query)
        answer = await self._transport.send(call)
        return read_object(answer), server_time(answer.headers)
