"""RunPod's bill as the core's reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_runpod.bill import query, reports

from vk_provider.faults import GarbledAnswerError
from vk_provider.provider import SpendReport

TEN = datetime(2026, 6, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
RECORD = {
    "startTime": "2026-06-01T10:00:00Z",
    "endTime": "2026-06-01T11:00:00Z",
    "podId": "7h9k",
    "totalAmount": 1.25,
}


def test_a_record_is_a_report() -> None:
    """The hour under way ends now."""
    bill = {"records": [RECORD]}
    assert list(reports(bill, TEN + HOUR)) == [SpendReport("7h9k", TEN, TEN + HOUR, 1.25)]
    assert list(reports(bill, TEN + HOUR / 2)) == [SpendReport("7h9k", TEN, TEN + HOUR / 2, 1.25)]
    assert next(iter(reports(bill, TEN - HOUR))).end == TEN
    assert list(reports({"records": []}, TEN)) == []


def test_an_hour_without_a_record_cost_nothing() -> None:
    """Once it is over; a pod that is on no record is not told of, nor what is long ago."""
    later = {**RECORD, "startTime": "2026-06-01T12:00:00Z", "endTime": "2026-06-01T13:00:00Z"}
    bill = {"records": [RECORD, later]}

    found = [each for each in reports(bill, TEN + 4.5 * HOUR) if not each.usd]

    assert [each.begin for each in found] == [TEN + HOUR, TEN + 3 * HOUR]
    assert {each.end - each.begin for each in found} == {HOUR}
    much_later = list(reports({"records": [RECORD]}, TEN + 1000 * HOUR))
    assert len(much_later) == 1 + 72


@pytest.mark.parametrize(
    "bill",
    [
        {},
        {"records": None},
        {"records": [{**RECORD, "totalAmount": None}]},
        {"records": [{**RECORD, "totalAmount": -1}]},
        {"records": [{**RECORD, "totalAmount": float("nan")}]},
        {"records": [{**RECORD, "startTime": "soon"}]},
        {"records": [{**RECORD, "endTime": "2026-06-01T11:00:00"}]},
        {"records": [{**RECORD, "startTime": "9999-12-31T23:00:00-14:00"}]},
    ],
)
def test_what_is_no_bill_is_told_as_garbled(bill: dict[str, Any]) -> None:
    """What was reckoned then stays."""
    with pytest.raises(GarbledAnswerError):
        list(reports(bill, TEN))


def test_it_asks_by_the_hour() -> None:
    """In UTC."""
    assert query(TEN) == {"startTime": "2026-06-01T10:00:00Z", "bucketSize": "hour"}
