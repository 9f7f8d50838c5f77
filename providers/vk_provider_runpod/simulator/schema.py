"""The request schemas of the service's document, as small checks that name every violation.

Pure. Each check takes a JSON path and a value and gives a list of errors in the service's words.
Used by ``validation``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[str, Any], list[str]]

_CUDA = re.compile(r"\d+\.\d+")


def _kind(name: str, *types: type) -> Check:
    def check(path: str, value: Any) -> list[str]:
        # JSON's true is no number, though Python's True is an int.
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        return [f"{path}: got {_json_type(value)}, want {name}"] if wrong else []

    return check


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _text(minimum: int = 0, pattern: re.Pattern[str] | None = None) -> Check:
    def check(path: str, value: Any) -> list[str]:
        if not isinstance(value, str):
            return _kind("string", str)(path, value)
        if len(value) < minimum:
            return [f"{path}: minLength: got {len(value)}, want {minimum}"]
        return (
            [f"{path}: does not match pattern"] if pattern and not pattern.fullmatch(value) else []
        )

    return check


def _number(minimum: int, maximum: int | None = None) -> Check:
    def check(path: str, value: Any) -> list[str]:
        whole = isinstance(value, float) and value.is_integer()
        if isinstance(value, bool) or not (isinstance(value, int) or whole):
            return [f"{path}: got {_json_type(value)}, want integer"]
        if maximum is not None and value > maximum:
            return [f"{path}: maximum: got {value}, want {maximum}"]
        return [f"{path}: minimum: got {value}, want {minimum}"] if value < minimum else []

    return check


def _one_of(*allowed: str) -> Check:
    def check(path: str, value: Any) -> list[str]:
        return [] if value in allowed else [f"{path}: value must be one of {', '.join(allowed)}"]

    return check


def _list(item: Check, most: int | None = None) -> Check:
    def check(path: str, value: Any) -> list[str]:
        if not isinstance(value, list):
            return _kind("array", list)(path, value)
        if most is not None and len(value) > most:
            return [f"{path}: maxItems: got {len(value)}, want {most}"]
        return [error for i, entry in enumerate(value) for error in item(f"{path}[{i}]", entry)]

    return check


def _object(fields: Mapping[str, Check], required: tuple[str, ...] = ()) -> Check:
    def check(path: str, value: Any) -> list[str]:
        if not isinstance(value, dict):
            return _kind("object", dict)(path, value)
        errors = [f"{path}: missing property '{key}'" for key in required if key not in value]
        for key, entry in value.items():
            if key in fields:
                errors += fields[key](f"{path}.{key}", entry)
            else:
                errors.append(f"{path}: additional properties '{key}' not allowed")
        return errors

    return check


def _texts_by_key(path: str, value: Any) -> list[str]:
    if not isinstance(value, dict):
        return _kind("object", dict)(path, value)
    return [error for key, entry in value.items() for error in _text()(f"{path}.{key}", entry)]


def _or_null(other: Check) -> Check:
    return lambda path, value: [] if value is None else other(path, value)


_FLAG = _kind("boolean", bool)
_PERSISTENT = _object({"size": _number(10), "path": _text()}, ("size", "path"))
_NETWORK = _object({"volumeId": _text(), "path": _text()}, ("volumeId", "path"))
_CONTAINER: Mapping[str, Check] = {
    "args": _text(),
    "disk": _number(1),
    "env": _texts_by_key,
    "image": _text(),
    "ports": _list(_text()),
    "registry": _or_null(_text()),
    "name": _text(1),
    "mounts": _object({"persistent": _PERSISTENT, "network": _list(_NETWORK, most=1)}),
    "globalNetworking": _FLAG,
}
_GPU: Mapping[str, Check] = {
    "id": _text(),
    "count": _number(1),
    "minCudaVersion": _text(0, _CUDA),
    "allowedCudaVersions": _list(_text(0, _CUDA)),
}
CREATE_POD = _object(
    {
        **_CONTAINER,
        "templateId": _text(1),
        "cloud": _one_of("SECURE", "COMMUNITY"),
        "cpu": _object({"id": _text(1), "vcpuCount": _number(2)}, ("id", "vcpuCount")),
        "gpu": _object(_GPU, ("id",)),
        "dataCenterIds": _list(_text()),
        "startJupyter": _FLAG,
        "startSsh": _FLAG,
    }
)
UPDATE_POD = _object({**_CONTAINER, "templateId": _text(), "locked": _FLAG})
ACTION = _object({"action": _one_of("start", "stop", "restart", "terminate")})
CREATE_VOLUME = _object(
    {
        "name": _text(1),
        "size": _number(10, 4096),
        "dataCenter": _text(1),
        "type": _one_of("STANDARD", "HIGH_PERFORMANCE"),
    },
    ("name", "size", "dataCenter"),
)
UPDATE_VOLUME = _object({"name": _text(1), "size": _number(10, 4096)})
REGISTRY = _object({"name": _text(1), "username": _text(1), "password": _text(1)})
