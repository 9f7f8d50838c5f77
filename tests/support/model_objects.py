"""What the model API server knows about objects: paths, selectors and merging patches.

Fed by and feeds :mod:`tests.support.model_apiserver`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MERGE_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "addresses": "type"}


@dataclass(frozen=True)
class Target:
    """What a path names: a collection, an object or its subresource."""

    resource: str
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The object's place in the store."""
        return self.resource, self.namespace or "", self.name or ""


def parse_target(path: str) -> Target:
    """``/api/v1/...`` or ``/apis/GROUP/VERSION/...`` as a target."""
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) == 2:
        # The API group itself: served if somebody has put one of this name.
        return Target("apigroups", None, parts[1])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    padded: Sequence[str | None] = [*rest, None, None]
    return Target(rest[0], namespace, padded[1], padded[2])


def selectors_of(query: Mapping[str, str]) -> tuple[str, str]:
    """The field and the label selector of a query."""
    return query.get("fieldSelector", ""), query.get("labelSelector", "")


def matches(obj: Mapping[str, Any], selectors: tuple[str, str]) -> bool:
    """Whether an object matches equality selectors on fields and labels."""
    fields, labels = selectors
    for term in filter(None, fields.split(",")):
        path, _, wanted = term.partition("=")
        found: Any = obj
        for part in path.split("."):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        if found != wanted:
            return False
    present = obj.get("metadata", {}).get("labels") or {}
    terms = (term.partition("=") for term in filter(None, labels.split(",")))
    return all(present.get(key) == value for key, _, value in terms)


def merge(known: Any, patch: Any, *, strategic: bool, key: str = "") -> Any:
    """A merge patch, or the part of strategic merge that pods and nodes need."""
    if isinstance(patch, Mapping):
        merged = dict(copy.deepcopy(known)) if isinstance(known, Mapping) else {}
        for name, value in patch.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = merge(merged.get(name), value, strategic=strategic, key=name)
        return merged
    if strategic and isinstance(patch, list) and key in MERGE_KEYS:
        return _merge_list(known or [], patch, MERGE_KEYS[key])
    return copy.deepcopy(patch)


def _merge_list(known: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    fresh = [item for item in patch if "$patch" not in item]
    if len(fresh) != len(patch):
        return copy.deepcopy(fresh)
    merged = {item[merge_key]: item for item in copy.deepcopy(known)}
    for item in fresh:
        merged[item[merge_key]] = {**merged.get(item[merge_key], {}), **item}
    return list(merged.values())
