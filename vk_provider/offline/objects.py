"""Resolves a pod without a cluster: Secrets are masked, and what was not supplied is made up. Pure.

A secret's value is replaced before anything looks at it, so that no provider and no printer can
show one. Fed by :mod:`vk_provider.offline.workloads`; feeds :mod:`vk_provider.offline.explain`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.pods.references import SECRET, ObjectKey, referenced
from vk_provider.pods.resolve import Missing, MissingReference, ResolveInput, resolve
from vk_provider.pods.types import Json, ResolvedPod

_PULL_SECRET_KEYS = (".dockerconfigjson", ".dockercfg")
_LOGIN_KEYS = ("username", "password", "auth", "identitytoken", "email", "registrytoken")
# Up to here a mask may be longer or shorter than its secret; beyond, sizes begin to matter.
_SMALL_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OfflinePod:
    """``unseen`` are the objects that were made up; ``missing`` is what a supplied object lacks."""

    resolved: ResolvedPod | None
    unseen: tuple[ObjectKey, ...] = ()
    missing: tuple[MissingReference, ...] = ()


def resolve_offline(
    pod: Json, supplied: Mapping[ObjectKey, Json], given: ResolveInput
) -> OfflinePod:
    """The pod with every reference replaced by its value, a mask, or words for what it would be."""
    objects: dict[ObjectKey, Json | None] = {key: masked(key, supplied[key]) for key in supplied}
    unseen = tuple(sorted(referenced(pod) - supplied.keys()))
    while isinstance(outcome := resolve(pod, objects, given), Missing):
        made_up = [
            _make_up(objects, reference)
            for reference in outcome.references
            if ObjectKey(reference.kind, reference.namespace, reference.name) not in supplied
        ]
        # Made up once and missing still would go on for ever; a supplied object stays as it is.
        if not any(made_up):
            return OfflinePod(None, unseen, outcome.references)
    return OfflinePod(outcome, unseen)


def masked(key: ObjectKey, found: Json) -> Json:
    """A Secret in which every value is a description of itself; other objects as they are."""
    if key.kind != SECRET:
        return found
    data = {
        name: _encoded_mask(key, name, value) for name, value in _strings(found, "data").items()
    }
    plain = {
        name: _mask(key, name, value.encode()).decode()
        for name, value in _strings(found, "stringData").items()
    }
    return {**found, "data": data, "stringData": plain}


def _make_up(objects: dict[ObjectKey, Json | None], missing: MissingReference) -> bool:
    """Whether there was still something to add to what is known of the object."""
    key = ObjectKey(missing.kind, missing.namespace, missing.name)
    known = objects.get(key)
    data: dict[str, Any] = dict(known["data"]) if known else {}
    if known is not None and (missing.key is None or missing.key in data):
        return False
    if missing.key is not None:
        words = _words(key, missing.key)
        data[missing.key] = _encode(words.encode()) if key.kind == SECRET else words
    objects[key] = {"kind": key.kind, "data": data}
    return True


def _words(key: ObjectKey, name: str) -> str:
    return f"<key {name} of {key}>"


def _encoded_mask(key: ObjectKey, name: str, value: str) -> str:
    try:
        return _encode(_mask(key, name, base64.b64decode(value, validate=True)))
    except binascii.Error:
        # Not base64 is a mistake that resolving reports, without the value.
        return "not base64!"


def _mask(key: ObjectKey, name: str, value: bytes) -> bytes:
    if name in _PULL_SECRET_KEYS:
        try:
            return json.dumps(_without_logins(json.loads(value))).encode()
        except (ValueError, RecursionError):
            return b"not JSON"
    mask = _words(key, name).encode()
    return mask if len(value) <= _SMALL_BYTES else mask.ljust(len(value), b".")


def _without_logins(value: Any) -> Any:
    """The same registries with masked logins, so that matching images to them still works."""
    if not isinstance(value, dict):
        return value
    masks = {"auth": _encode(b"masked:masked")}
    return {
        name: masks.get(name, "masked") if name in _LOGIN_KEYS else _without_logins(entry)
        for name, entry in value.items()
    }


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _strings(found: Json, key: str) -> dict[str, str]:
    entries = found.get(key)
    if not isinstance(entries, Mapping):
        return {}
    return {str(name): value for name, value in entries.items() if isinstance(value, str)}
