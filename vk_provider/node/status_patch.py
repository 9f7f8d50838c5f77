"""The smallest strategic merge patch that turns a Node's status into the wanted one.

Fed by :func:`vk_provider.node.object.node_status`; feeds ``loops``. Conditions, addresses and
resources of others are not mentioned, except resources that we no longer have: those need a null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


def node_status_patch(
    current: Json, wanted: Json, *, heartbeat: bool = False
) -> dict[str, Any] | None:
    """What to send to ``nodes/status``, or None when only heartbeats would change.

    ``current`` is the Node as the API server has it, ``wanted`` the rendered status. With
    ``heartbeat`` every condition of ours is reported with its new time. Conditions that change
    are always sent with their times. The patch carries the UID: it never hits a Node that was
    deleted and made anew.
    """
    status = current.get("status") or {}
    patch: dict[str, Any] = {
        name: changed
        for name in ("capacity", "allocatable", "daemonEndpoints", "nodeInfo")
        if (changed := _changed(status.get(name) or {}, wanted[name], drops=name in _RESOURCES))
    }
    if _pairs(status.get("addresses")) != _pairs(wanted["addresses"]):
        patch["addresses"] = [{"$patch": "replace"}, *wanted["addresses"]]
    conditions = _conditions(status, wanted, heartbeat=heartbeat)
    if conditions:
        patch["conditions"] = conditions
    declared = wanted.get("declaredFeatures")
    # Never alone: a cluster with that feature off drops it, and would be asked again and again.
    if (patch or heartbeat) and declared and status.get("declaredFeatures") != declared:
        patch["declaredFeatures"] = declared
    uid = (current.get("metadata") or {}).get("uid")
    return {"metadata": {"uid": uid}, "status": patch} if patch else None


_RESOURCES = ("capacity", "allocatable")


def _changed(current: Json, wanted: Json, *, drops: bool) -> dict[str, Any]:
    changed = {name: value for name, value in wanted.items() if current.get(name, "") != value}
    gone = [name for name in current if name not in wanted] if drops else []
    return {**changed, **dict.fromkeys(gone)}


def _pairs(addresses: object) -> list[tuple[Any, Any]]:
    found = addresses if isinstance(addresses, list) else []
    return [(one.get("type"), one.get("address")) for one in found]


def _conditions(status: Json, wanted: Json, *, heartbeat: bool) -> list[Json]:
    before = {one.get("type"): one for one in status.get("conditions") or []}
    return [
        one
        for one in wanted["conditions"]
        if heartbeat or _timeless(one) != _timeless(before.get(one["type"]) or {})
    ]


def _timeless(condition: Json) -> dict[str, Any]:
    return {name: value for name, value in condition.items() if name not in _TIMES}
