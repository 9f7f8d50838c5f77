"""What an API server would refuse of a pod's values: amounts, ports and words out of a list. Pure.

Only what people get wrong in manifests and what a translation would pass on unseen. The rules are
those of ``pkg/apis/core/validation`` in Kubernetes. Fed by :mod:`vk_provider.offline.workloads`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.fields import nearest, show
from vk_provider.pods.reading import mappings
from vk_provider.quantities import parse

_WORDS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}
_SPEC_WORDS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
}
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_HIGHEST_PORT = 65_535
_CONTAINERS = ("initContainers", "containers")


def value_problems(template: Mapping[str, Any]) -> tuple[FieldProblem, ...]:
    """Every value of a well-formed pod template that no API server would store."""
    spec = template.get("spec")
    return tuple(_in_spec(spec)) if isinstance(spec, Mapping) else ()


def _in_spec(spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    yield from _words(spec, _SPEC_WORDS, "spec")
    names: Counter[str] = Counter()
    for key in _CONTAINERS:
        for index, container in mappings(spec, key):
            path = f"spec.{key}[{index}]"
            yield from _in_container(container, path)
            name = str(container.get("name"))
            names[name] += 1
            if names[name] == 2:
                yield FieldProblem(f"{path}.name", f'"{name}" is the name of another container')


def _in_container(container: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    yield from _words(container, _WORDS, path)
    for index, port in mappings(container, "ports"):
        yield from _in_port(port, f"{path}.ports[{index}]")
    resources = container.get("resources")
    if isinstance(resources, Mapping):
        limits, requests = (
            dict(_amounts(resources, part, f"{path}.resources.{part}"))
            for part in ("limits", "requests")
        )
        for found in (*limits.values(), *requests.values()):
            if isinstance(found, FieldProblem):
                yield found
        yield from _overdrawn(limits, requests, f"{path}.resources")


def _in_port(port: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for key, least in (("containerPort", 1), ("hostPort", 0)):
        number = port.get(key)
        if isinstance(number, int) and not least <= number <= _HIGHEST_PORT:
            allowed = f"{least} to {_HIGHEST_PORT}"
            yield FieldProblem(f"{path}.{key}", f"found {number}, allowed: {allowed}")
    yield from _words(port, {"protocol": _PROTOCOLS}, path)


def _amounts(
    resources: Mapping[str, Any], part: str, path: str
) -> Iterator[tuple[str, Fraction | FieldProblem]]:
    given = resources.get(part)
    for name, text in given.items() if isinstance(given, Mapping) else ():
        yield str(name), _amount(str(name), text, _key(path, str(name)))


def _amount(name: str, text: Any, path: str) -> Fraction | FieldProblem:
    try:
        amount = parse(text)
    except (ValueError, TypeError):
        return FieldProblem(path, f"found {show(text)}, allowed: a quantity, such as 2, 500m, 16Gi")
    if amount < 0:
        return FieldProblem(path, f"found {show(text)}, allowed: 0 or more")
    if _is_extended(name) and amount.denominator != 1:
        return FieldProblem(path, f"found {show(text)}, allowed: a whole number of {name}")
    return amount


def _overdrawn(
    limits: Mapping[str, Fraction | FieldProblem],
    requests: Mapping[str, Fraction | FieldProblem],
    path: str,
) -> Iterator[FieldProblem]:
    """A request above its limit, and a device that is requested and not limited as much."""
    for name, asked in requests.items():
        limit = limits.get(name)
        where = _key(f"{path}.requests", name)
        if isinstance(asked, FieldProblem) or isinstance(limit, FieldProblem):
            continue
        if _is_extended(name) and limit != asked:
            yield FieldProblem(where, f"must equal limits, where {name} is counted")
        elif limit is not None and asked > limit:
            yield FieldProblem(where, "must not be more than limits")


def _words(
    parent: Mapping[str, Any], words: Mapping[str, tuple[str, ...]], path: str
) -> Iterator[FieldProblem]:
    for key, allowed in words.items():
        found = parent.get(key)
        if isinstance(found, str) and found not in allowed:
            near = nearest(found, allowed)
            hint = f'; did you mean "{near}"?' if near else ""
            message = f"found {show(found)}, allowed: {', '.join(allowed)}{hint}"
            yield FieldProblem(f"{path}.{key}", message)


def _is_extended(name: str) -> bool:
    """Counted in whole devices and never overcommitted: any name with a domain."""
    return "/" in name and not name.startswith("kubernetes.io/")


def _key(path: str, name: str) -> str:
    return f"{path}[{name}]" if "/" in name or "." in name else f"{path}.{name}"
