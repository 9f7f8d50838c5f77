"""What prices and bills must be where a provider tells them: a part of ``ProviderContract``.

Fed by :mod:`.contract_rig`; feeds :mod:`.contract`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from vk_provider.provider import SupportsPricing, SupportsSpend
from vk_provider.testing.contract_rig import ContractRig

HOUR = timedelta(hours=1)


class MoneyContract:
    """Prices of pods, and bills."""

    async def test_a_price_for_a_pod_changes_nothing_but_the_price(self, rig: ContractRig) -> None:
        """The same pod and offer, the same price: cool-downs and placements go by the rest."""
        if not isinstance(rig.provider, SupportsPricing):
            return
        pod = rig.pod()
        offer = await rig.offer(pod)

        priced = rig.provider.priced(pod, offer)

        assert replace(priced, usd_per_hour=offer.usd_per_hour) == offer
        assert rig.provider.priced(pod, offer) == priced
        assert priced.usd_per_hour is None or priced.usd_per_hour >= 0

    async def test_a_bill_has_one_line_for_an_instance_and_an_hour(self, rig: ContractRig) -> None:
        """Within the hour, and never less than nothing."""
        if not isinstance(rig.provider, SupportsSpend):
            return
        since = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 3 * HOUR
        await rig.running(rig.pod())
        await rig.backend.advance(60)
        await rig.provider.list_instances()

        reports = await rig.provider.read_spend(since)

        lines = [(each.instance, each.begin) for each in reports]
        assert len(set(lines)) == len(lines)
        for each in reports:
            assert since <= each.begin <= each.end
            assert each.begin.replace(minute=0, second=0, microsecond=0) + HOUR >= each.end
            assert each.usd >= 0
