"""Checks request bodies and queries as the service's schema does: 422 with every violation.

Pure. The rules are those of the OpenAPI document's request schemas, written as a small table.
Fed by ``app``; raises :class:`~vk_provider_runpod.simulator.placing.RefusalError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vk_provider.testing.simulator.clock import parse_rfc3339
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.schema import (
    ACTION,
    CREATE_POD,
    CREATE_VOLUME,
    REGISTRY,
    UPDATE_POD,
    UPDATE_VOLUME,
)


def create_pod(body: Any) -> Mapping[str, Any]:
    """A checked body of ``POST /v2/pods``; first the schema (422), then its rules (400)."""
    errors = CREATE_POD("$", body)
    if isinstance(body, dict):
        if not body.get("name"):
            errors.append("$: missing property 'name'")
        if not body.get("image") and "templateId" not in body:
            errors.append("$: missing property 'image'")
    _refuse(errors)
    if body.get("templateId"):
        raise RefusalError(404, "template not found")
    if ("gpu" in body) == ("cpu" in body):
        raise RefusalError(400, "exactly one of gpu or cpu must be set")
    _rules(body)
    return _checked(body)


def update_pod(body: Any) -> Mapping[str, Any]:
    """A checked body of ``PATCH /v2/pods/{id}``."""
    _refuse(UPDATE_POD("$", body))
    if body.get("templateId"):
        raise RefusalError(404, "template not found")
    _rules(body)
    return _checked(body)


def pod_action(body: Any) -> str:
    """The action of ``POST /v2/pods/{id}/action``."""
    errors = ACTION("$", body)
    if isinstance(body, dict) and "action" not in body:
        errors.append("$: missing property 'action'")
    _refuse(errors)
    return str(body["action"])


def create_registry(body: Any) -> Mapping[str, Any]:
    """A checked body of ``POST /v2/registries``."""
    errors = REGISTRY("$", body)
    if isinstance(body, dict):
        missing = [key for key in ("name", "username", "password") if key not in body]
        errors += [f"$: missing property '{key}'" for key in missing]
    _refuse(errors)
    return _checked(body)


def create_volume(body: Any) -> Mapping[str, Any]:
    """A checked body of ``POST /v2/network-volumes``."""
    _refuse(CREATE_VOLUME("$", body))
    return _checked(body)


def update_volume(body: Any) -> Mapping[str, Any]:
    """A checked body of ``PATCH /v2/network-volumes/{id}``."""
    errors = UPDATE_VOLUME("$", body)
    _refuse(errors or ([] if body else ["$: minProperties: got 0, want 1"]))
    return _checked(body)


def log_query(query: Mapping[str, str], resume: str | None) -> tuple[str | None, int, float | None]:
    """Source, tail and since of a log request. The resume cursor beats since, since beats tail."""
    errors = []
    source = query.get("source")
    if source not in (None, "container", "system"):
        errors.append("source: must be one of container, system")
    tail = _whole(query.get("tail", "100"))
    if tail is None or not 0 <= tail <= 5000:
        errors.append("tail: must be an integer from 0 to 5000")
    # A cursor is the bare timestamp, or an event id as this endpoint emits it (timestamp/sequence).
    since = _moment(resume.partition("/")[0] if resume else query.get("since"), errors)
    _refuse(errors)
    return source, tail or 0, since


def _moment(text: str | None, errors: list[str]) -> float | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except (ValueError, OverflowError):
        errors.append("since: must be an RFC 3339 timestamp")
        return None


def catalogue_query(query: Mapping[str, str], products: tuple[str, ...]) -> dict[str, Any]:
    """Count and stock wishes of a catalogue read; the documented 400s and 422s."""
    include = _words(query, "include")
    wanted: dict[str, Any] = {"include": include, "product": _words(query, "product")}
    errors = _unknown(include, ("AVAILABILITY",), "include")
    errors += _unknown(wanted["product"], products, "product")
    errors += _unknown(_words(query, "cloud"), ("SECURE", "COMMUNITY"), "cloud")
    errors += _patterns(query, "countryCodes", r"[A-Z]{2}")
    errors += _patterns(query, "cudaVersions", r"\d+\.\d+")
    errors += _patterns(query, "minCudaVersion", r"\d+(\.\d+)?")
    least = {"count": 1, "vcpuCount": 2}
    for key, minimum in least.items():
        number = _whole(query[key]) if key in query else minimum
        if number is None or number < minimum:
            errors.append(f"{key}: must be an integer of at least {minimum}")
        wanted[key] = number
    _refuse(errors)
    _availability_rules(query, include)
    return wanted


def _availability_rules(query: Mapping[str, str], include: list[str]) -> None:
    filters = (
        "product",
        "count",
        "cloud",
        "countryCodes",
        "cudaVersions",
        "minCudaVersion",
        "vcpuCount",
    )
    if include and "product" not in query:
        raise RefusalError(400, "product is required with include=AVAILABILITY")
    stray = [key for key in filters if key in query]
    if not include and stray:
        raise RefusalError(400, f"{stray[0]} is valid only with include=AVAILABILITY")
    if "cudaVersions" in query and "minCudaVersion" in query:
        raise RefusalError(400, "cudaVersions and minCudaVersion are mutually exclusive")


def centre_query(query: Mapping[str, str]) -> dict[str, list[str]]:
    """The filters of ``GET /v2/catalog/datacenters``."""
    wanted = {key: _words(query, key) for key in CENTRE_FILTERS}
    errors: list[str] = []
    for key, allowed in CENTRE_FILTERS.items():
        errors += _unknown(wanted[key], allowed, key)
    _refuse(errors)
    return wanted


REGIONS = (
    "NORTH_AMERICA", "SOUTH_AMERICA", "EUROPE", "ASIA", "MIDDLE_EAST", "AFRICA", "OCEANIA",
    "ANTARCTICA", "UNKNOWN",
)  # fmt: skip
COMPLIANCE = (
    "GDPR", "ISO_IEC_27001", "ISO_14001", "PCI_DSS", "HITRUST", "SOC_1_TYPE_2", "SOC_2_TYPE_2",
    "SOC_3_TYPE_2", "ITAR", "FISMA_HIGH", "HIPAA", "RENEWABLE",
)  # fmt: skip
CENTRE_FILTERS: Mapping[str, tuple[str, ...]] = {
    "include": ("GPU_AVAILABILITY", "CPU_AVAILABILITY"),
    "regions": REGIONS,
    "networkVolumeTypes": ("STANDARD", "HIGH_PERFORMANCE"),
    "compliance": COMPLIANCE,
    "globalNetwork": ("true", "false"),
}


def _words(query: Mapping[str, str], key: str) -> list[str]:
    return query[key].split(",") if key in query else []


def _unknown(words: list[str], allowed: tuple[str, ...], key: str) -> list[str]:
    return [f"{key}: {w!r} is not one of {', '.join(allowed)}" for w in words if w not in allowed]


def _patterns(query: Mapping[str, str], key: str, pattern: str) -> list[str]:
    return [
        f"{key}: {w!r} is malformed" for w in _words(query, key) if not re.fullmatch(pattern, w)
    ]


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None


def _refuse(errors: list[str]) -> None:
    if errors:
        raise RefusalError(422, "Request validation failed.", tuple(errors))


def _checked(body: Any) -> Mapping[str, Any]:
    checked: Mapping[str, Any] = body
    return checked


def _rules(body: Mapping[str, Any]) -> None:
    mounts, gpu = body.get("mounts") or {}, body.get("gpu") or {}
    if mounts.get("persistent") and mounts.get("network"):
        raise RefusalError(400, "mounts.persistent and mounts.network are mutually exclusive")
    if mounts.get("network") == []:
        raise RefusalError(400, "clearing mounts is not supported")
    if mounts.get("persistent") and "cpu" in body:
        raise RefusalError(400, "mounts.persistent is not allowed on a CPU pod")
    if gpu.get("minCudaVersion") and gpu.get("allowedCudaVersions"):
        raise RefusalError(400, "allowedCudaVersions and minCudaVersion are mutually exclusive")
    _limits(body)


def _limits(body: Mapping[str, Any]) -> None:
    for port in body.get("ports") or []:
        if not re.fullmatch(r"\d{1,5}/(http|tcp)", port, re.ASCII):
            raise RefusalError(400, f"invalid port {port!r}: must be PORT/http or PORT/tcp")
    if len([p for p in body.get("ports") or [] if p.endswith("/http")]) > 10:
        raise RefusalError(400, "at most 10 http ports are allowed")
    if len(body.get("env") or {}) > 50:
        raise RefusalError(400, "at most 50 environment variables are allowed")
