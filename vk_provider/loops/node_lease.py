"""Renews the Node's Lease, by which the control plane knows that the node is alive.

It has a client of its own, so that a renewal never queues behind pods. A Lease that is gone means
that the Node was deleted: it is registered anew, and the pods stay.
Fed by ``app``; tells ``loops.node_heartbeat`` when renewals were late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.loops.shell import Shell
from vk_provider.node.lease import DURATION_SECONDS, INTERVAL_SECONDS, NAMESPACE, render_lease

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
STUCK_SECONDS = 300.0


class NodeLease:
    """The Lease ``kube-node-lease/NAME``."""

    def __init__(
        self,
        client: KubeClient,
        node_name: str,
        node_uid: Callable[[], str | None],
        on_late: Callable[[], None],
        shell: Shell,
    ) -> None:
        self.renewed: float | None = None
        """Steady seconds of the last acknowledged renewal."""
        self._client = client
        self._name = node_name
        self._node_uid = node_uid
        self._on_late = on_late
        self._shell = shell
        self._lease: dict[str, Any] | None = None
        self._fault = ""

    async def run(self) -> None:
        """Renew every ten seconds, a little early at random, until cancelled."""
        while True:
            self._shell.beat("lease", STUCK_SECONDS)
            pause = INTERVAL_SECONDS * (1 - 0.04 * self._shell.jitter())
            if self._shell.may_act() and not await self._try_renew():
                pause = RETRY_SECONDS
            await asyncio.sleep(pause)

    async def renew(self) -> None:
        """One renewal; raises KubeError."""
        last = self.renewed
        try:
            await self._put()
        except (ConflictError, KubeNotFoundError):
            # A Lease that is gone is a conflict too: the API server could have created it.
            await self._look_again()
            await self._put()
        self.renewed = self._shell.clock.steady()
        if last is not None and self.renewed - last > DURATION_SECONDS:
            self._on_late()

    async def _try_renew(self) -> bool:
        try:
            await self.renew()
        except KubeError as fault:
            if str(fault) != self._fault:
                self._fault = str(fault)
                logger.warning("the lease of node %s was not renewed: %s", self._name, fault)
            return False
        if self._fault:
            self._fault = ""
            logger.info("the lease of node %s is renewed again", self._name)
        return True

    async def _look_again(self) -> None:
        try:
            self._lease = await self._client.get(self._path())
        except KubeNotFoundError:
            self._lease = None
            self._on_late()

    async def _put(self) -> None:
        now = self._shell.clock.now()
        body = render_lease(self._name, now, self._node_uid(), self._lease)
        if self._lease is not None:
            self._lease = await self._client.replace(self._path(), body)
            return
        try:
            self._lease = await self._client.create(paths.leases(NAMESPACE), body)
        except ConflictError:
            self._lease = await self._client.get(self._path())
            body = render_lease(self._name, now, self._node_uid(), self._lease)
            self._lease = await self._client.replace(self._path(), body)

    def _path(self) -> str:
        return paths.lease(NAMESPACE, self._name)
