"""The smallest strategic merge patch that turns a pod's status into the wanted one.

Fed by :mod:`vk_provider.pods.status`; feeds ``kube.writer``. The patch carries the pod's UID, so
that it can never hit a younger pod of the same name. Fields of other owners are never mentioned.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from vk_provider.pods.conditions import RESIZING, objects
from vk_provider.pods.container_facts import mapping
from vk_provider.pods.types import Json

NO_ANNOTATIONS: Mapping[str, str | None] = MappingProxyType({})

_SCALARS = ("phase", "reason", "message", "startTime", "hostIP", "podIP", "observedGeneration")
_ATOMIC = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_BY_IP = ("hostIPs", "podIPs")


def status_patch(
    pod: Json, wanted: Json, annotations: Mapping[str, str | None] = NO_ANNOTATIONS
) -> dict[str, Any] | None:
    """What to send to ``pods/status``, or None when the API server has it all already.

    ``annotations`` are set (None: removed) in the same request. Lists of addresses are replaced
    as a whole, since the API server would merge them by ip and refuse the sum.
    """
    current, metadata = mapping(pod.get("status")), mapping(pod.get("metadata"))
    status = {
        **_scalars(current, wanted),
        **_lists(current, wanted),
        **_conditions(current, wanted),
    }
    notes = _annotations(mapping(metadata.get("annotations")), annotations)
    if not status and not notes:
        return None
    patch: dict[str, Any] = {"metadata": {"uid": metadata.get("uid")}}
    if notes:
        patch["metadata"]["annotations"] = notes
    if status:
        patch["status"] = status
    return patch


def _scalars(current: Json, wanted: Json) -> dict[str, Any]:
    return {
        name: wanted.get(name)
        for name in _SCALARS
        if (current.get(name) or None) != (wanted.get(name) or None)
    }


def _lists(current: Json, wanted: Json) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in (*_ATOMIC, *_BY_IP):
        target = wanted.get(name) or []
        if same(current.get(name) or [], target):
            continue
        changed[name] = [{"$patch": "replace"}, *target] if name in _BY_IP else target or None
    return changed


def _conditions(current: Json, wanted: Json) -> dict[str, Any]:
    before = {one.get("type"): one for one in objects(current.get("conditions"))}
    changed = [
        _cleared(mapping(before.get(one["type"])), one)
        for one in objects(wanted.get("conditions"))
        if not same(one, before.get(one["type"]))
    ]
    kept = {one["type"] for one in objects(wanted.get("conditions"))}
    gone = [name for name in RESIZING if name in before and name not in kept]
    changed += [{"$patch": "delete", "type": name} for name in gone]
    return {"conditions": changed} if changed else {}


def _cleared(before: Json, wanted: Json) -> dict[str, Any]:
    """A condition merges field by field: what it no longer says must be sent as null."""
    gone = {name: None for name in before if name not in wanted and before[name] is not None}
    return {**wanted, **gone}


def _annotations(current: Json, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in wanted.items() if current.get(name) != value}


def same(one: object, other: object) -> bool:
    """Whether two values are equal but for nulls: the API server stores an absent time as one."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return False
