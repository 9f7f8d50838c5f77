"""Taints and the tolerations that answer them, by the API server's rules. Pure.

Fed by configuration and by objects of the API; read by whoever decides where a pod may run: a node
that admits again, the bursting side, ``explain``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.quantities import integer

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
"""Only changes a score."""
NO_EXECUTE = "NoExecute"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
REPELLING = (NO_SCHEDULE, NO_EXECUTE)
"""Effects that keep a pod off a node."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod. An empty effect matches every one, and so does an empty key with the
    operator ``Exists``."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        """Whether the scheduler would overlook this taint."""
        if self.effect not in ("", taint.effect):
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and self._answers(taint.value)

    def _answers(self, value: str) -> bool:
        match self.operator:
            case "Exists":
                return True
            case "Equal":
                return self.value == value
        found, bound = integer(value), integer(self.value)
        if found is None or bound is None:
            return False
        return found > bound if self.operator == "Gt" else self.operator == "Lt" and found < bound


def read_taint(entry: Mapping[str, Any]) -> Taint:
    """A taint as it stands in a Node; what is none of the API reads as empty."""
    return Taint(*(_text(entry, key) for key in ("key", "value", "effect")))


def read_toleration(entry: Mapping[str, Any]) -> Toleration:
    """A toleration as it stands in a pod; what is none of the API reads as empty."""
    key, operator, value, effect = (
        _text(entry, each) for each in ("key", "operator", "value", "effect")
    )
    return Toleration(key, operator or "Equal", value, effect)


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether one toleration answers one taint, both as they stand in objects."""
    return read_toleration(toleration).covers(read_taint(taint))


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
