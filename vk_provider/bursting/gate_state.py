"""Where one gate stands, and all that it must remember: written on the Node, read by a new leader.

Fed by :mod:`.gate`; the text is the annotation ``vk-provider.dev/gate-state``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any


class Gate(StrEnum):
    """The three values. ``open`` has no taint."""

    OPEN = "open"
    HOLD = "hold"
    RETURN = "return"


class GateReason(StrEnum):
    """Why the gate moved last; dashboards match these words."""

    STARTED = "Started"
    PODS_WAITING = "PodsWaiting"
    HOME_IS_FULL = "HomeIsFull"
    SPARE_AT_HOME = "SpareAtHome"
    PROVIDER_UNAVAILABLE = "ProviderUnavailable"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    HOME_IS_FREE = "HomeIsFree"
    ALL_HOME = "AllHome"
    NO_ROOM = "NoRoom"
    TRAINING_WAITING = "TrainingWaiting"
    SIGNALS_IN_DOUBT = "SignalsInDoubt"
    HOMECOMING_LATE = "HomecomingLate"
    LANDED_OUTSIDE = "LandedOutside"
    OTHER_GATE_OPEN = "OtherGateOpen"
    CONTROLLER_SILENT = "ControllerSilent"
    OVERRIDDEN = "Overridden"


@dataclass(frozen=True, slots=True)
class GateState:
    """One gate. ``since`` is when ``value`` was taken on, ``transitions`` when it moved within the
    window that is counted.

    ``scarce_since``, ``roomy_since``, ``quiet_since`` and ``provider_since`` say since when a
    condition has held without a break. ``opened_until`` is when an open gate was last closed since
    nobody needed it; not when nobody could have gone through it. ``failed`` are the homecomings
    that went wrong, since the last that went well. ``is_paused``: in ``return``, the taint says
    ``hold`` until those on their way have arrived. ``is_frozen``: it would move towards home, and
    has moved too often.
    """

    value: Gate
    since: datetime
    reason: GateReason = GateReason.STARTED
    message: str = ""
    transitions: tuple[datetime, ...] = ()
    scarce_since: datetime | None = None
    roomy_since: datetime | None = None
    quiet_since: datetime | None = None
    provider_since: datetime | None = None
    opened_until: datetime | None = None
    failed: tuple[datetime, ...] = ()
    is_paused: bool = False
    is_frozen: bool = False

    @property
    def taint(self) -> str | None:
        """The taint's value; None where there is no taint."""
        if self.value is Gate.OPEN:
            return None
        return Gate.HOLD if self.is_paused else self.value


_LISTS = ("transitions", "failed")
_FLAGS = ("is_paused", "is_frozen")
_KEYS = {"value": "state"}
"""The annotation's key of a field, where it is not the field's name in camel case."""


def render(state: GateState) -> str:
    """One line of JSON; what is empty is left out."""
    found: dict[str, Any] = {}
    for name in _names():
        value = getattr(state, name)
        if isinstance(value, datetime):
            value = _text(value)
        elif name in _LISTS:
            value = [_text(one) for one in value]
        if value not in (None, "", False, []):
            found[_key(name)] = value
    return json.dumps(found, separators=(",", ":"))


def read(text: str | None) -> GateState | None:
    """The state of an annotation; None where it says nothing that makes sense."""
    try:
        found = json.loads(text or "")
        if not isinstance(found, dict):
            return None
        return GateState(**{name: _value(name, found) for name in _names() if _key(name) in found})
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def initial(now: datetime) -> GateState:
    """A gate that nobody has moved yet: home first, and a pod that waits opens it in seconds."""
    return GateState(Gate.HOLD, now, message="the gate is managed from now on")


@cache  # every look of every node reads and writes the same few names
def _names() -> tuple[str, ...]:
    return tuple(one.name for one in fields(GateState))


@cache
def _key(name: str) -> str:
    head, *rest = name.removeprefix("is_").split("_")
    return _KEYS.get(name, head + "".join(word.capitalize() for word in rest))


def _value(name: str, found: Mapping[str, Any]) -> Any:
    value = found[_key(name)]
    if name == "value":
        return Gate(value)
    if name == "reason":
        return GateReason(value)
    if name in _LISTS:
        return tuple(_moment(one) for one in value)
    if name in _FLAGS:
        return value is True
    return str(value) if name == "message" else _moment(value)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    # Now, since at the ends of the calendar not every offset leads to a date.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
