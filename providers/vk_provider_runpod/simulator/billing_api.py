"""The simulated bill: what each pod cost per bucket of time, from the ledger.

Fed by ``app`` after the edge checks; reads the ``ledger`` of the ``model``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from vk_provider.testing.simulator.clock import parse_rfc3339, rfc3339
from vk_provider_runpod.simulator.calls import state_of
from vk_provider_runpod.simulator.ledger import Charge
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.state import State

SIZES = ("hour", "day", "week", "month", "year")
DEFAULT_DAYS = 30
MOST_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Query:
    """A window in seconds since the epoch, on the boundaries of its buckets."""

    begin: float
    end: float
    size: str
    pod_id: str | None


async def list_pod_billing(request: web.Request) -> web.Response:
    """``GET /v2/billing/pods``: one record per pod and bucket in which it cost anything."""
    state = state_of(request)
    query = parse(request.query, state.clock.now())
    records = list(_records(state, query))
    pods = {record["podId"] for record in records}
    window = {"startTime": rfc3339(query.begin), "endTime": rfc3339(query.end)}
    asked = {**window, "bucketSize": query.size, "podId": query.pod_id}
    metadata = {
        "query": asked,
        "recordCount": len(records),
        "uniquePodCount": len(pods),
        "totals": _totals(records),
    }
    return web.json_response({"records": records, "metadata": metadata})


def parse(query: Mapping[str, str], now: float) -> Query:
    """The query with the document's defaults; 422 with every violation."""
    errors: list[str] = []
    size = query.get("bucketSize", "day")
    if size not in SIZES:
        errors.append(f"bucketSize: must be one of {', '.join(SIZES)}")
    last = _count(query.get("lastN"), errors)
    if last is not None and ("startTime" in query or "endTime" in query):
        errors.append("lastN: can't be given together with startTime or endTime")
    begin = _moment(query, "startTime", now - DEFAULT_DAYS * 86_400, errors)
    end = _moment(query, "endTime", now, errors)
    if errors:
        raise RefusalError(422, "Request validation failed.", tuple(errors))
    if last is not None:
        begin, end = now, now
        for _ in range(min(last, MOST_BUCKETS) - 1):
            begin = bucket(begin, size)[0] - 1
    begin, stop = bucket(begin, size)[0], bucket(end, size)
    end = stop[0] if stop[0] == end and last is None else stop[1]
    if end < begin:
        raise RefusalError(422, "Request validation failed.", _BACKWARDS)
    return Query(begin, end, size, query.get("podId"))


def bucket(at: float, size: str) -> tuple[float, float]:
    """Begin and end of the bucket that a moment lies in."""
    moment = datetime.fromtimestamp(at, UTC).replace(minute=0, second=0, microsecond=0)
    if size == "hour":
        return moment.timestamp(), (moment + timedelta(hours=1)).timestamp()
    day = moment.replace(hour=0)
    if size == "day":
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    if size == "week":
        monday = day - timedelta(days=day.weekday())
        return monday.timestamp(), (monday + timedelta(days=7)).timestamp()
    first = day.replace(day=1) if size == "month" else day.replace(month=1, day=1)
    later = (first + timedelta(days=32 if size == "month" else 370)).replace(day=1)
    later = later if size == "month" else later.replace(month=1)
    return first.timestamp(), later.timestamp()


def _records(state: State, query: Query) -> Iterator[dict[str, Any]]:
    now, at = state.clock.now(), query.begin
    charges = [c for c in state.model.ledger.charges if query.pod_id in (None, c.instance)]
    while at < min(query.end, now):
        begin, end = bucket(at, query.size)
        costs: dict[str, dict[str, float]] = {}
        for charge in charges:
            usd = charge.usd_within(begin, min(end, now))
            if usd:
                kind = _kind(state, charge)
                known = costs.setdefault(charge.instance, {})
                known[kind] = known.get(kind, 0.0) + usd
        for pod_id, amounts in costs.items():
            yield {
                "startTime": rfc3339(begin),
                "endTime": rfc3339(end),
                "podId": pod_id,
                "totalAmount": sum(amounts.values()),
                **{kind: amounts.get(kind, 0.0) for kind in KINDS},
            }
        at = end


_BACKWARDS = ("endTime: must not be before startTime",)
KINDS = ("gpuAmount", "cpuAmount", "diskAmount")


def _kind(state: State, charge: Charge) -> str:
    if charge.kind != "compute":
        return "diskAmount"
    return "gpuAmount" if state.model.pods[charge.instance].body.get("gpu") else "cpuAmount"


def _totals(records: list[dict[str, Any]]) -> dict[str, float]:
    return {
        kind: float(sum(record[kind] for record in records)) for kind in ("totalAmount", *KINDS)
    }


def _count(text: str | None, errors: list[str]) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        errors.append("lastN: must be a whole number of at least 1")
        return None
    return int(text)


def _moment(query: Mapping[str, str], key: str, default: float, errors: list[str]) -> float:
    text = query.get(key)
    if text is None:
        return default
    try:
        return parse_rfc3339(text)
    except (ValueError, OverflowError):
        errors.append(f"{key}: must be a time as in RFC 3339")
        return default
