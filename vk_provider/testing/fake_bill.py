"""The fake service's bill, by instance and hour, as a provider's billing endpoint tells it.

Fed by the ledger; asked through :mod:`.fake`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from vk_provider.provider import SpendReport
from vk_provider.testing.fake_service import FakeService


class TellsItsBill:
    """The part of the fake provider that reports spend."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def read_spend(self, since: datetime) -> Sequence[SpendReport]:
        """The bill of every instance by the hour, where the service is to tell it."""
        self._service.calls["spend"] += 1
        self._service.script.check("spend")
        return reports_of(self._service, since) if self._service.config.reports_spend else ()


def reports_of(service: FakeService, since: datetime) -> Sequence[SpendReport]:
    """From the hour that begins at ``since`` until now; the hour under way as far as it is."""
    return tuple(_reports(service, since))


def _reports(service: FakeService, since: datetime) -> Iterator[SpendReport]:
    now, zero = service.clock(), service.wall_time(0.0)
    bills = service.ledger.bills(now)
    begin = since
    while (start := (begin - zero).total_seconds()) < now:
        stop = min(start + 3600, now)
        for bill in bills:
            if bill.stop > start and bill.start < stop:
                end = zero + timedelta(seconds=stop)
                yield SpendReport(bill.ref, begin, end, bill.usd_within(start, stop))
        begin += timedelta(hours=1)
