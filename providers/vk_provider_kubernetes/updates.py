"""What a remote pod lacks of what its home pod says by now, as patches of the other cluster's API.

The remote pod remembers in an annotation which version of the changeable fields it was made from,
or brought to: so a field that the other cluster's admission rewrote is not written back for ever.
Pure. Fed by :mod:`.writes` with the remote pod and a fresh translation of the home pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from vk_provider.pods.reading import mapping, mappings, number, strings, text
from vk_provider.pods.types import Json
from vk_provider_kubernetes import stamp as marks

GATE = "vk-provider.dev/copies"
"""The scheduling gate of a pod whose copies are not there yet."""

_FIELDS = ("initContainers", "containers")
_RESIZABLE = ("cpu", "memory")
_IDENTITY = ("key", "operator", "value", "effect")

Patch = dict[str, Any]


def fingerprint(spec: Json) -> str:
    """A hash of the fields that the API lets change in a pod that runs."""
    containers = [
        [text(each, "name"), each.get("image"), each.get("resources")]
        for name in _FIELDS
        for _, each in mappings(spec, name)
    ]
    changeable = [containers, spec.get("activeDeadlineSeconds"), spec.get("tolerations")]
    return marks.digest(orjson.dumps(changeable, option=orjson.OPT_SORT_KEYS).decode())


def pod_patch(remote: Json, wanted: Json) -> Patch | None:
    """Of the pod itself; None where it is as it should be. The last one to be sent: it carries the
    fingerprint, and opens the gate."""
    metadata = _metadata(mapping(remote, "metadata"), mapping(wanted, "metadata"))
    spec = dict(_spec(remote, wanted))
    if not metadata and not spec:
        return None
    uid = text(mapping(remote, "metadata"), "uid")
    patch: Patch = {"metadata": {**metadata, "uid": uid}}
    return {**patch, "spec": spec} if spec else patch


def _metadata(remote: Json, wanted: Json) -> Patch:
    """What is missing or different, and what the home pod has no longer but we once brought."""
    found: Patch = {}
    for field in ("labels", "annotations"):
        has, wants = strings(remote, field), strings(wanted, field)
        changed: Patch = {key: value for key, value in wants.items() if has.get(key) != value}
        if field == "labels":
            changed |= {key: None for key in _brought(remote) if key in has and key not in wants}
        if changed:
            found[field] = changed
    return found


def _brought(remote: Json) -> Sequence[str]:
    """The names of the home pod's own labels that were last brought over."""
    return strings(remote, "annotations").get(marks.LABELS, "").split()


def _spec(remote: Json, wanted: Json) -> Iterator[tuple[str, Any]]:
    has, wants = mapping(remote, "spec"), mapping(wanted, "spec")
    if any(text(gate, "name") == GATE for _, gate in mappings(has, "schedulingGates")):
        yield "schedulingGates", [{"$patch": "delete", "name": GATE}]
    if _is_current(remote, wanted):
        return
    for name in _FIELDS:
        images = list(_images(has, wants, name))
        if images:
            yield name, images
    deadline = number(wants, "activeDeadlineSeconds")
    if deadline is not None and deadline != number(has, "activeDeadlineSeconds"):
        yield "activeDeadlineSeconds", deadline
    tolerations = _tolerations(has, wants)
    if tolerations != [each for _, each in mappings(has, "tolerations")]:
        yield "tolerations", tolerations


def _is_current(remote: Json, wanted: Json) -> bool:
    has, wants = (
        strings(mapping(each, "metadata"), "annotations").get(marks.SPEC)
        for each in (remote, wanted)
    )
    return has == wants


def _images(has: Json, wants: Json, field: str) -> Iterator[Patch]:
    known = _by_name(has, field)
    for name, container in _by_name(wants, field).items():
        image = text(container, "image")
        if name in known and image != text(known[name], "image"):
            yield {"name": name, "image": image}


def _tolerations(has: Json, wants: Json) -> list[Json]:
    """Some may be added and prolonged, and none may go: admission over there has its own."""
    found = {_identity(each): each for _, each in mappings(has, "tolerations")}
    return list((found | {_identity(e): e for _, e in mappings(wants, "tolerations")}).values())


def _identity(toleration: Json) -> tuple[str, ...]:
    default = {"operator": "Equal"}
    return tuple(text(toleration, key) or default.get(key, "") for key in _IDENTITY)


def resize_patch(remote: Json, wanted: Json) -> Patch | None:
    """Of subresource ``resize``: CPU and memory of containers that differ; None where none does."""
    if _is_current(remote, wanted):
        return None
    has, wants = mapping(remote, "spec"), mapping(wanted, "spec")
    spec = {name: found for name in _FIELDS if (found := list(_resized(has, wants, name)))}
    return _of_subresource(remote, spec) if spec else None


def _resized(has: Json, wants: Json, field: str) -> Iterator[Patch]:
    known = _by_name(has, field)
    for name, container in _by_name(wants, field).items():
        before, after = (mapping(each, "resources") for each in (known.get(name, {}), container))
        changed = {
            kind: amounts
            for kind in ("limits", "requests")
            if (amounts := _amounts(mapping(before, kind), mapping(after, kind)))
        }
        if changed:
            yield {"name": name, "resources": changed}


def _amounts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Patch:
    return {
        name: after[name]
        for name in _RESIZABLE
        if name in after and after[name] != before.get(name)
    }


def debug_patch(remote: Json, debuggers: Sequence[Json]) -> Patch | None:
    """Of subresource ``ephemeralcontainers``: those that are not there yet; none ever goes."""
    known = _by_name(mapping(remote, "spec"), "ephemeralContainers")
    added = [each for each in debuggers if text(each, "name") not in known]
    return _of_subresource(remote, {"ephemeralContainers": added}) if added else None


def _of_subresource(remote: Json, spec: Patch) -> Patch:
    return {"metadata": {"uid": text(mapping(remote, "metadata"), "uid")}, "spec": spec}


def _by_name(spec: Json, field: str) -> dict[str, Json]:
    return {text(each, "name"): each for _, each in mappings(spec, field)}
