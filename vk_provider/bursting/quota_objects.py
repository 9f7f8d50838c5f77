"""Kueue's ResourceFlavors and ClusterQueues, as far as quotas go. Pure.

Fed by the objects as the API server has them (v1beta1 or v1beta2); feeds
:mod:`vk_provider.bursting.quota` and the preflight of ``doctor kueue``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider.bursting.reading import mapping
from vk_provider.pods.types import Json
from vk_provider.quantities import parse
from vk_provider.taints import Toleration

_ORCHESTRATORS = ("orchestratorRef", "quotaOrchestratorRef")


@dataclass(frozen=True, slots=True)
class FlavorView:
    """A ResourceFlavor: which nodes it stands for, and what its pods tolerate beyond their own."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    topology: str | None = None


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One number of a ClusterQueue, and where it stands. ``raw`` is it as it is stored."""

    queue: str
    flavor: str
    resource: str
    group: int
    position: int
    index: int
    raw: Any
    nominal: int
    lending_limit: int | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class QueueView:
    """A ClusterQueue. ``orchestrator`` is who else writes its quotas, if anybody."""

    name: str
    uid: str = ""
    lines: tuple[QuotaLine, ...] = ()
    stop_policy: str = ""
    orchestrator: str | None = None
    checks: tuple[str, ...] = ()
    is_active: bool = True
    inactive_why: str = ""


def flavor_view(flavor: Json) -> FlavorView:
    """One ResourceFlavor."""
    spec = mapping(flavor, "spec")
    return FlavorView(
        name=flavor["metadata"]["name"],
        node_labels=dict(mapping(spec, "nodeLabels")),
        tolerations=tuple(
            Toleration(
                one.get("key") or "",
                one.get("operator") or "Equal",
                one.get("value") or "",
                one.get("effect") or "",
            )
            for one in spec.get("tolerations") or ()
        ),
        topology=spec.get("topologyName"),
    )


def queue_view(queue: Json) -> QueueView:
    """One ClusterQueue."""
    metadata, spec, status = queue["metadata"], mapping(queue, "spec"), mapping(queue, "status")
    conditions = status.get("conditions") or ()
    active: Json = next((one for one in conditions if one.get("type") == "Active"), {})
    return QueueView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        lines=tuple(_lines(metadata["name"], spec, _reserved(status))),
        stop_policy=spec.get("stopPolicy") or "",
        orchestrator=_orchestrator(queue),
        checks=tuple(_checks(spec)),
        is_active=active.get("status") != "False",
        inactive_why=str(active.get("message") or ""),
    )


def _lines(queue: str, spec: Json, reserved: Mapping[tuple[str, str], int]) -> Iterator[QuotaLine]:
    for group, covered in enumerate(spec.get("resourceGroups") or ()):
        for position, flavor in enumerate(covered.get("flavors") or ()):
            for index, resource in enumerate(flavor.get("resources") or ()):
                raw, lending = resource.get("nominalQuota", "0"), resource.get("lendingLimit")
                yield QuotaLine(
                    queue=queue,
                    flavor=flavor["name"],
                    resource=resource["name"],
                    group=group,
                    position=position,
                    index=index,
                    raw=raw,
                    nominal=_whole(raw),
                    lending_limit=None if lending is None else _whole(lending),
                    reserved=reserved.get((flavor["name"], resource["name"]), 0),
                )


def _reserved(status: Json) -> dict[tuple[str, str], int]:
    """What admitted and about-to-be-admitted workloads hold, by flavor and resource."""
    return {
        (flavor["name"], resource["name"]): _whole(resource.get("total", "0"))
        for flavor in status.get("flavorsReservation") or ()
        for resource in flavor.get("resources") or ()
    }


def _checks(spec: Json) -> Iterator[str]:
    yield from spec.get("admissionChecks") or ()
    for one in mapping(spec, "admissionChecksStrategy").get("admissionChecks") or ():
        yield one["name"]


def _orchestrator(queue: Json) -> str | None:
    """Kueue's own quota automation, in any of the places where its drafts put the reference."""
    spec, status = mapping(queue, "spec"), mapping(queue, "status")
    if spec.get("quotaManagement") == "Automated":
        return "Kueue (spec.quotaManagement: Automated)"
    effective = status.get("effectiveQuotas")
    places = [spec, status, *(effective if isinstance(effective, list) else ())]
    for place in places:
        for key in _ORCHESTRATORS:
            reference = place.get(key)
            if reference:
                named = reference.get("name") if isinstance(reference, Mapping) else reference
                return f"the orchestrator {named}"
    return None


def _whole(quantity: Any) -> int:
    return math.floor(parse(quantity))
