"""The Pod API as an API server describes it: type -> field -> type of what is inside.

Fed by `/openapi/v3/api/v1`; feeds the snapshot in `vk_provider/testing/pod_api.json`, which is the
union of all versions that are supported, and the tests that hold each of them against it.
`python -m tests.pod_api` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

VERSIONS = ("1.34.4", "1.36.3", "1.37.2")
"""The Kubernetes that is supported: the oldest, the default of the rig, the newest."""
Types = dict[str, dict[str, str]]
_ROOT = "PodSpec"


def pod_types(document: Mapping[str, Any]) -> Types:
    """Every type with fields that a PodSpec leads to."""
    schemas = {_short(name): one for name, one in document["components"]["schemas"].items()}
    found: Types = {}
    todo = [_ROOT]
    while todo:
        name = todo.pop()
        if name not in found:
            properties = schemas[name].get("properties", {})
            found[name] = {field: _type(one, schemas) for field, one in sorted(properties.items())}
            todo += filter(None, found[name].values())
    return dict(sorted(found.items()))


def united(versions: Mapping[str, Types]) -> dict[str, Any]:
    """The snapshot of several versions: what any of them knows."""
    types: Types = {}
    for known in versions.values():
        for name, fields in known.items():
            types[name] = dict(sorted({**types.get(name, {}), **fields}.items()))
    return {"kubernetes": sorted(versions), "types": dict(sorted(types.items()))}


def unknown(served: Types, snapshot: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What a version serves and the snapshot does not have, as `Type.field`."""
    for name, fields in served.items():
        for field in fields:
            if field not in snapshot.get(name, {}):
                yield f"{name}.{field}"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """The type inside, where that has fields of its own; empty for a plain value."""
    for each in (schema, *schema.get("allOf", ())):
        if "$ref" in each:
            name = _short(str(each["$ref"]).rpartition("/")[2])
            return name if "properties" in schemas[name] else ""
    inside = schema.get("items")
    return _type(inside, schemas) if inside else ""
