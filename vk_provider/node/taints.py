"""Editing a Node's taints without touching those of others.

Fed by the Node as the API server has it; feeds ``loops``, which writes the list back with the
resourceVersion that was read (a taint list is replaced as a whole, so a blind write would undo
somebody's cordon).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vk_provider.node import names

Taint = Mapping[str, Any]

DOOR_KEYS = frozenset({names.UNAVAILABLE_TAINT})
"""The taint that comes and goes with the door: the node's own business."""
GATE_KEYS = frozenset({names.GATE_TAINT})
"""The taint that comes and goes with the gate. Two loops write the two of them, each its own."""
OUR_KEYS = DOOR_KEYS | GATE_KEYS
"""Those given at creation are never edited afterwards."""


def unavailable(reason: str) -> dict[str, str]:
    """The closed door's visible sign: ``capacity``, ``denied``, ``budget`` or ``outage``."""
    return _taint(names.UNAVAILABLE_TAINT, reason)


def unavailable_value(node: Mapping[str, Any]) -> str | None:
    """Why a Node's taint says that the door is closed; None without that taint."""
    return _value(node, names.UNAVAILABLE_TAINT)


def gate(value: str) -> dict[str, str]:
    """The bursting gate: ``hold`` or ``return``."""
    return _taint(names.GATE_TAINT, value)


def gate_value(node: Mapping[str, Any]) -> str | None:
    """Where a Node's gate stands; None without that taint."""
    return _value(node, names.GATE_TAINT)


def _value(node: Mapping[str, Any], key: str) -> str | None:
    found = (node.get("spec") or {}).get("taints") or ()
    return next((taint.get("value") for taint in found if taint.get("key") == key), None)


def _taint(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def edit(
    current: Sequence[Taint] | None,
    desired: Sequence[Taint],
    keys: frozenset[str] = OUR_KEYS,
) -> list[Taint] | None:
    """The whole new list, or None when ours are as desired already.

    ``keys`` are those we may add, change and remove; all others stay, in their order. A taint of
    ours that is unchanged keeps its place and its ``timeAdded``.
    """
    found = list(current or ())
    wanted = {(taint["key"], taint["effect"]): taint for taint in desired}
    kept = [
        taint
        for taint in found
        if taint.get("key") not in keys or _says(taint, wanted.get(_identity(taint)))
    ]
    there = {_identity(taint) for taint in kept}
    edited = kept + [taint for identity, taint in wanted.items() if identity not in there]
    return None if edited == found else edited


def _identity(taint: Taint) -> tuple[Any, Any]:
    return taint.get("key"), taint.get("effect")


def _says(taint: Taint, wanted: Taint | None) -> bool:
    return wanted is not None and (taint.get("value") or "") == (wanted.get("value") or "")


def taints_patch(node: Mapping[str, Any], edited: Sequence[Taint]) -> dict[str, Any]:
    """A merge patch that replaces the list, and fails with a conflict if the Node has changed
    since it was read."""
    metadata = node.get("metadata") or {}
    return {
        "metadata": {
            "resourceVersion": metadata.get("resourceVersion"),
            "uid": metadata.get("uid"),
        },
        "spec": {"taints": [dict(taint) for taint in edited]},
    }
