"""PURE. What of a bound pod the API server lets people change, and how to tell them it was in vain.

Fed by two versions of a pod; feeds ``loops.refreshing`` (what differs) and ``loops.unfollowed``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vk_provider.pods import names
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.types import Json

_FIELDS = ("initContainers", "containers")
_CHANGEABLE = ("image", "resources")


class Face(NamedTuple):
    """What a backend may hold a copy of. Equal as long as there is nothing to bring over."""

    labels: Mapping[str, str]
    annotations: Mapping[str, Any]
    spec: Json


def face(pod: Json) -> Face:
    """That of a pod. Annotations of our own change as we work, and are left out."""
    metadata = mapping(pod, "metadata")
    annotations = strings(metadata, "annotations")
    theirs = {key: value for key, value in annotations.items() if not key.startswith(names.PREFIX)}
    return Face(strings(metadata, "labels"), theirs, mapping(pod, "spec"))


def in_vain(before: Json, now: Json) -> list[str]:
    """What changed between two specs that an instance which does not follow lacks, by field."""
    if before is now:
        return []
    return [
        f"{path} was changed from {_shown(old)} to {_shown(new)}"
        for path, old, new in _changes(before, now)
    ]


def _changes(before: Json, now: Json) -> Iterator[tuple[str, Any, Any]]:
    for list_name in _FIELDS:
        known = {text(each, "name"): each for _, each in mappings(before, list_name)}
        for index, container in mappings(now, list_name):
            old = known.get(text(container, "name"), container)
            for field in _CHANGEABLE:
                if old.get(field) != container.get(field):
                    path = f"spec.{list_name}[{index}].{field}"
                    yield path, old.get(field), container.get(field)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        parts = [f"{kind} {dict(amounts)}" for kind, amounts in sorted(value.items()) if amounts]
        return ", ".join(parts) or "nothing"
    return str(value)
