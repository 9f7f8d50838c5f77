"""Preferred node affinity: which of a pod's preferences a node's labels meet. Pure.

Fed by pods; feeds :mod:`.scoring`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vk_provider.pods.types import Json


def preferences(pod: Json) -> list[Json]:
    """The preferred terms of a pod's node affinity."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    return list(node.get("preferredDuringSchedulingIgnoredDuringExecution") or ())


def matching_weight(pod: Json, labels: Mapping[str, str]) -> float:
    """The sum of the weights of those that these labels meet."""
    return float(
        sum(
            int(term.get("weight") or 0)
            for term in preferences(pod)
            if _meets(term.get("preference") or {}, labels)
        )
    )


def _meets(preference: Json, labels: Mapping[str, str]) -> bool:
    expressions = preference.get("matchExpressions") or ()
    return bool(expressions) and all(_holds(one, labels) for one in expressions)


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(str(expression.get("key")))
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value, values, operator)
        case _:
            return False


def _compares(value: str | None, values: Sequence[str], operator: str) -> bool:
    try:
        found, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return found > bound if operator == "Gt" else found < bound
