"""Who leads: a Lease that one replica holds, and a clock of our own that says when to stop.

Nobody trusts another machine's clock: a Lease may be taken when it has not changed for its
duration *as seen from here*. And a leader stops before anybody else can begin: it counts
``renew_deadline`` (10 s) from the moment it sent its last successful renewal, the others wait
``lease_duration`` (15 s) from when they saw it, which is later. The seconds between are for writes
that are on their way.

Fed by a client of its own (a renewal never queues behind pods); feeds ``app`` and whoever writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vk_provider.faults import ConflictError, ForbiddenError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ElectionTimings:
    """How long a Lease holds, when its holder gives up, and how often both look."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeaderElection:
    """One candidate for one Lease. ``identity`` must be unique to this process."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        timings: ElectionTimings | None = None,
    ) -> None:
        self.lost = asyncio.Event()
        """Set when leadership has ended otherwise than by :meth:`release`."""
        self.holder = ""
        """Who held the Lease when it was last seen."""
        self.fault: KubeError | None = None
        """Why the Lease could not be read or written the last time; None if it could."""
        self._complaint = ""
        self._client = client
        self._path = paths.lease(namespace, name)
        self._collection = paths.leases(namespace)
        self._metadata = {"namespace": namespace, "name": name}
        self._identity = identity
        self._timings = timings or ElectionTimings()
        self._lease: Json | None = None
        self._seen_at = 0.0
        self._valid_until = 0.0

    def is_leader(self, now: float) -> bool:
        """Whether this process leads at ``now`` (``time.monotonic()``), by its own clock alone."""
        return now < self._valid_until

    async def acquire(self) -> None:
        """Wait until this process leads; call :meth:`keep` right after."""
        self.lost.clear()
        while True:
            if await self._try(self._timings.renew_deadline / 2):
                break
            await asyncio.sleep(self._timings.retry_period * random.uniform(0.8, 1.2))
        logger.info("leading: %s holds lease %s", self._identity, self._metadata["name"])

    async def keep(self) -> None:
        """Renew until leadership is lost; then set ``lost`` and return."""
        while (left := self._valid_until - time.monotonic()) > 0:
            await asyncio.sleep(min(self._timings.retry_period, left))
            left = self._valid_until - time.monotonic()
            await self._try(min(self._timings.renew_deadline / 2, max(0.0, left)))
            if self.holder != self._identity:
                break
        self._valid_until = 0.0
        self.lost.set()
        logger.warning("no longer leading: lease %s", self._metadata["name"])

    async def release(self) -> None:
        """Give leadership up, so that a successor need not wait. Cancel :meth:`keep` first.

        From here on :meth:`is_leader` is False, whatever becomes of the call.
        """
        held = self._lease is not None and self.holder == self._identity
        self._valid_until = 0.0
        if not held or self._lease is None:
            return
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._client.replace(self._path, {**self._lease, "spec": spec})
        except KubeError as fault:
            logger.warning("lease %s not released: %s", self._metadata["name"], fault)
        self.holder = ""

    async def _try(self, patience: float) -> bool:
        """One look if need be, and if the Lease is ours to take, one conditional write."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                written = await self._take()
        except ConflictError:
            # Somebody wrote in between; or our own write got through and its answer was lost.
            self._lease = None
            return False
        except (KubeError, TimeoutError) as fault:
            cause = str(fault) or f"no answer within {patience:.1f} s"
            self._complain(fault if isinstance(fault, KubeError) else KubeError(cause))
            return False
        self.fault, self._complaint = None, ""
        if written:
            self._valid_until = started + self._timings.renew_deadline
        return written

    def _complain(self, fault: KubeError) -> None:
        """Once per cause, since it is tried again every other second."""
        self.fault = fault
        words = str(fault)
        if isinstance(fault, ForbiddenError):
            namespace = self._metadata["namespace"]
            words += (
                f"; grant get, create and update of leases.coordination.k8s.io in namespace "
                f"{namespace} to the identity of this process"
            )
        if words != self._complaint:
            self._complaint = words
            logger.warning("lease %s not renewed: %s", self._metadata["name"], words)

    async def _take(self) -> bool:
        if self._lease is None or self.holder != self._identity:
            try:
                self._look_at(await self._client.get(self._path, retry=False))
            except KubeNotFoundError:
                created = await self._client.create(self._collection, self._renewed(None))
                self._look_at(created)
                return True
        if not self._is_free(time.monotonic()):
            return False
        body = self._renewed(self._lease)
        self._look_at(await self._client.replace(self._path, body, retry=False))
        return True

    def _look_at(self, lease: Json) -> None:
        """The time is taken after the answer: a renewal that it shows was sent before."""
        version = lease["metadata"].get("resourceVersion")
        if self._lease is None or self._lease["metadata"].get("resourceVersion") != version:
            self._seen_at = time.monotonic()
        self._lease = lease
        self.holder = lease.get("spec", {}).get("holderIdentity") or ""

    def _is_free(self, now: float) -> bool:
        if self._lease is None or self.holder in ("", self._identity):
            return True
        duration = self._lease["spec"].get("leaseDurationSeconds") or self._timings.lease_duration
        return now > self._seen_at + float(duration)

    def _renewed(self, lease: Json | None) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = dict(lease.get("spec") or {}) if lease is not None else {}
        if spec.get("holderIdentity") != self._identity:
            spec["leaseTransitions"] = spec.get("leaseTransitions", -1) + 1
            spec["acquireTime"] = now
        spec["holderIdentity"] = self._identity
        spec["renewTime"] = now
        spec["leaseDurationSeconds"] = max(1, round(self._timings.lease_duration))
        base = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return {**base, **(lease or {"metadata": self._metadata}), "spec": spec}
