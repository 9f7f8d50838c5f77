"""RunPod's own bill by pod and hour, as the core's reports. Pure.

Fed by ``client`` (``GET /v2/billing/pods``); feeds ``provider``. The bill is the account's: other
people's pods are on it, and the core knows its own by their ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from vk_provider.faults import GarbledAnswerError
from vk_provider.pods.reading import mappings, text
from vk_provider.provider import SpendReport


def reports(bill: Mapping[str, Any], now: datetime) -> Iterator[SpendReport]:
    """One report per record. An hour that is under way is told as far as ``now``.

    Raises ``GarbledAnswerError`` for an answer that is no bill, or has a record that is none.
    """
    if not isinstance(bill.get("records"), list):
        raise GarbledAnswerError("RunPod, read bill: the answer has no list of records")
    for _, record in mappings(bill, "records"):
        begin, end = _moment(record, "startTime"), _moment(record, "endTime")
        amount = record.get("totalAmount")
        if not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise GarbledAnswerError("RunPod, read bill: a record has no amount")
        yield SpendReport(text(record, "podId"), begin, max(begin, min(end, now)), float(amount))


def query(since: datetime) -> dict[str, str]:
    """Everything from an hour on, by the hour."""
    begin = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"startTime": begin, "bucketSize": "hour"}


def _moment(record: Mapping[str, Any], key: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text(record, key))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise GarbledAnswerError(f"RunPod, read bill: a record has no {key}")
    return moment
