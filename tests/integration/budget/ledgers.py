"""The money of a node against a simulator's ledger, step by step, over real sockets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vk_provider.loops.shell import Shell
from vk_provider.loops.spending import Spending
from vk_provider.metrics import Metrics
from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.pods.types import Candidate, InstanceRef, Offer, ResolvedPod
from vk_provider.provider import Provider, SupportsSpend


class SimulatedClock:
    """Both clocks of the loops are the simulator's."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def now(self) -> datetime:
        """The calendar."""
        return datetime.fromtimestamp(self.steady(), UTC)

    def steady(self) -> float:
        """Seconds since the epoch, which never jump here."""
        return float(self._clock.now())


class Reckoning:
    """What a node would have in its books of one backend."""

    def __init__(self, provider: Provider, clock: Any) -> None:
        self.provider = provider
        self.metrics = Metrics()
        shell = Shell(SimulatedClock(clock), self.metrics, node="n")
        self.spending = Spending(BudgetLimits(Caps(usd_per_month=1e6)), shell)
        self.spending.budget.meters.lines.backends.add("b")

    async def create(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """One instance."""
        ref = await self.provider.create_instance(pod, offer)
        stamp = pod.stamp
        self.spending.created(stamp.pod_uid, stamp.namespace, Candidate("b", offer), ref)
        return ref

    async def delete(self, ref: InstanceRef) -> None:
        """Its end."""
        await self.provider.delete_instance(ref, 0)
        self.spending.ended("b", ref)

    async def tick(self) -> None:
        """One list."""
        seen = await self.provider.list_instances()
        self.spending.listed("b", self.provider.traits, seen)

    async def bill(self, since: datetime) -> None:
        """The provider's own word."""
        assert isinstance(self.provider, SupportsSpend)
        self.spending.reported("b", await self.provider.read_spend(since))

    @property
    def usd(self) -> float:
        """What was spent as far as we know."""
        return sum(self.spending.budget.meters.totals.values())
