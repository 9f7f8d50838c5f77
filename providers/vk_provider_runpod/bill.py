"""RunPod's own bill by pod and hour, as the core's reports. Pure.

Fed by ``client`` (``GET /v2/billing/pods``); feeds ``provider``. The bill is the account's: other
people's pods are on it, and the core knows its own by their ids.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from vk_provider.faults import GarbledAnswerError
from vk_provider.pods.reading import mappings, text
from vk_provider.provider import SpendReport

HOUR = timedelta(hours=1)
MOST_AGO = timedelta(hours=72)
"""Nobody corrects what is older."""


def reports(bill: Mapping[str, Any], now: datetime) -> Iterator[SpendReport]:
    """One report per record, and one of nothing for each later hour in which a pod on the bill
    has none: it cost nothing then, though a list may have shown it until it was missed. An hour
    that is under way is told as far as ``now``.

    Raises ``GarbledAnswerError`` for an answer that is no bill, or has a record that is none.
    """
    if not isinstance(bill.get("records"), list):
        raise GarbledAnswerError("RunPod, read bill: the answer has no list of records")
    billed: dict[str, set[datetime]] = {}
    for _, record in mappings(bill, "records"):
        begin, end = _moment(record, "startTime"), _moment(record, "endTime")
        amount = record.get("totalAmount")
        if not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise GarbledAnswerError("RunPod, read bill: a record has no amount")
        billed.setdefault(text(record, "podId"), set()).add(begin)
        yield SpendReport(text(record, "podId"), begin, max(begin, min(end, now)), float(amount))
    for pod, hours in billed.items():
        yield from _nothing(pod, hours, now)


def _nothing(pod: str, billed: Collection[datetime], now: datetime) -> Iterator[SpendReport]:
    """The hours since the pod's first one that are over and without a record."""
    begin = max(min(billed), now - MOST_AGO)
    hour = begin.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while (end := hour + HOUR) <= now:
        if hour not in billed:
            yield SpendReport(pod, hour, end, 0.0)
        hour = end


def query(since: datetime) -> dict[str, str]:
    """Everything from an hour on, by the hour."""
    begin = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"startTime": begin, "bucketSize": "hour"}


def _moment(record: Mapping[str, Any], key: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text(record, key))
        # At the ends of the calendar not every offset leads to a date.
        return moment.astimezone(UTC) if moment.tzinfo else _none(key)
    except (ValueError, OverflowError):
        return _none(key)


def _none(key: str) -> NoReturn:
    raise GarbledAnswerError(f"RunPod, read bill: a record has no {key}")
