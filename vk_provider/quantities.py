"""Kubernetes quantities, exactly: ``500m``, ``2Gi``, ``1e3``, ``0.1``; and what a pod requests.

Fed by configuration and pods; read by admission, the node's status and the settings. Amounts are
fractions, so sums and comparisons never round.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Json = Mapping[str, Any]
Amounts = dict[str, Fraction]

PODS = "pods"
"""The resource of which every pod takes one."""

_SYNTAX = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,3}))?",
    re.ASCII,
)
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_NANO = Fraction(1, 10**9)
_MAX_LENGTH = 100
_ALLOWED = 'a number with an optional suffix, such as "128", "500m", "64Gi" or "1e3"'
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


@lru_cache(maxsize=4096, typed=True)  # all pods of a workload ask for the same
def parse(text: str | float) -> Fraction:
    """The exact amount that a quantity stands for. Numbers, as YAML has them, are taken too.

    Raises:
        ValueError: with the text that was found and what is allowed.
    """
    shown = str(text).strip()
    match = _SYNTAX.fullmatch(shown) if len(shown) <= _MAX_LENGTH else None
    if match is None or isinstance(text, bool):
        raise ValueError(f'quantity: found "{shown[:_MAX_LENGTH]}", allowed: {_ALLOWED}')
    return Fraction(match["number"]) * _scale(match["suffix"] or "", match["exponent"])


def _scale(suffix: str, exponent: str | None) -> Fraction:
    if suffix in _BINARY:
        return Fraction(1024 ** _BINARY[suffix])
    return Fraction(10) ** (int(exponent) if exponent else 3 * _DECIMAL[suffix])


def render(amount: Fraction, *, binary: bool = False) -> str:
    """The canonical text of an amount: whole digits and the largest suffix that keeps them so.

    ``binary`` prefers ``Ki``, ``Mi``, ... where they fit. Below a nano it rounds up, as the API
    server does.
    """
    if binary and amount.denominator == 1 and abs(amount) >= 1024:
        return _with_largest(amount, {name: Fraction(1024**n) for name, n in _BINARY.items()})
    whole_nanos = math.ceil(amount / _NANO) * _NANO
    return _with_largest(
        whole_nanos, {name: Fraction(10) ** (3 * n) for name, n in _DECIMAL.items()}
    )


def _with_largest(amount: Fraction, scales: Mapping[str, Fraction]) -> str:
    fitting = {name: scale for name, scale in scales.items() if amount and not amount % scale}
    suffix = max(fitting, key=lambda name: fitting[name], default="")
    return f"{amount / fitting.get(suffix, 1)}{suffix}"


def canonical(text: str | float) -> str:
    """The text that the API server would store for this one: ``1024Mi`` becomes ``1Gi``."""
    return render(parse(text), binary=str(text).strip().endswith("i"))


def add(*several: Mapping[str, Fraction]) -> Amounts:
    """The sums, resource by resource."""
    total: Amounts = {}
    for amounts in several:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, Fraction(0)) + amount
    return total


def largest(*several: Mapping[str, Fraction]) -> Amounts:
    """The largest amount of each resource."""
    total: Amounts = {}
    for amounts in several:
        for resource, amount in amounts.items():
            total[resource] = max(amount, total.get(resource, amount))
    return total


def pod_requests(pod: Json) -> Amounts:
    """What the scheduler counts for this pod, and one of ``pods``.

    Init containers run one after another, so the largest counts; sidecars stay and add up;
    pod-level requests replace the sums; overhead comes on top. A limit without a request is one.

    Raises:
        ValueError: a quantity can't be read.
    """
    spec = _object(pod, "spec")
    running = add(*(_requests(one) for one in _objects(spec, "containers")))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in _objects(spec, "initContainers"):
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
            own = {}
        starting = largest(starting, add(sidecars, own))
    summed = largest(add(running, sidecars), starting)
    overhead = _amounts(_object(spec, "overhead"))
    return {**add({**summed, **_pod_level(spec, summed)}, overhead), PODS: Fraction(1)}


def _pod_level(spec: Json, summed: Mapping[str, Fraction]) -> Amounts:
    """Pod-level requests. Its limit is a request only where no container asks for anything."""
    resources = _object(spec, "resources")
    limits = _amounts(_object(resources, "limits"))
    silent = {name: amount for name, amount in limits.items() if name not in summed}
    wanted = {**silent, **_amounts(_object(resources, "requests"))}
    return {
        name: amount
        for name, amount in wanted.items()
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)
    }


def _requests(container: Json) -> Amounts:
    resources = _object(container, "resources")
    limits, requests = _object(resources, "limits"), _object(resources, "requests")
    return _amounts({**limits, **requests})


def _amounts(texts: Json) -> Amounts:
    return {resource: parse(text) for resource, text in texts.items()}


def _object(parent: Json, name: str) -> Json:
    value = parent.get(name)
    return value if isinstance(value, Mapping) else {}


def _objects(parent: Json, name: str) -> Iterable[Json]:
    value = parent.get(name)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def integer(shown: str) -> int | None:
    """The value of a label or taint as an integer; None where it is none."""
    try:
        return int(shown) if len(shown) <= 20 else None
    except ValueError:
        return None
