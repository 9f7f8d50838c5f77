"""Whether this process is the node: leader election with fencing, or always where it is off.

Fed by the settings and ``kube.election``; asked before everything that is written.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time

from vk_provider.faults import ForbiddenError
from vk_provider.kube.client import KubeClient
from vk_provider.kube.election import ElectionTimings, LeaderElection
from vk_provider.settings import LeaderElectionSettings


class Leadership:
    """One candidate for one node."""

    def __init__(
        self, client: KubeClient, chosen: LeaderElectionSettings, own_namespace: str
    ) -> None:
        self.is_waiting = False
        self._election: LeaderElection | None = None
        self._namespace = chosen.namespace or own_namespace
        self._lease = chosen.name
        if chosen.enabled:
            identity = f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"
            timings = ElectionTimings(
                chosen.lease_duration_seconds,
                chosen.renew_deadline_seconds,
                chosen.retry_period_seconds,
            )
            self._election = LeaderElection(client, self._namespace, chosen.name, identity, timings)

    def is_ours(self) -> bool:
        """Whether this process surely leads now, by its own clock."""
        return self._election is None or self._election.is_leader(time.monotonic())

    def hopeless(self) -> str | None:
        """Why this process can't even wait to lead, in words."""
        fault = self._election.fault if self._election is not None else None
        if not isinstance(fault, ForbiddenError):
            return None
        return (
            f"leader election: lease {self._namespace}/{self._lease} may not be used: {fault}; "
            "its rights are a Role on leases.coordination.k8s.io (get, create, update) there"
        )

    async def acquire(self, stop: asyncio.Event) -> bool:
        """Wait for leadership; False if we were told to stop first."""
        if self._election is None or stop.is_set():
            # A single look would be enough to take back what was just given up.
            return not stop.is_set()
        self.is_waiting = True
        acquiring = asyncio.ensure_future(self._election.acquire())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({acquiring, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not acquiring.done():
                return False
            await acquiring
            return True
        finally:
            self.is_waiting = False
            for task in (acquiring, stopping):
                task.cancel()
            await asyncio.gather(acquiring, stopping, return_exceptions=True)

    async def keep(self) -> None:
        """Until leadership is lost; for ever where there is no election."""
        if self._election is None:
            await asyncio.Event().wait()
        else:
            await self._election.keep()

    async def release(self) -> None:
        """Give leadership up, so that a successor need not wait."""
        if self._election is not None:
            await self._election.release()
