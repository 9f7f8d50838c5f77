"""Deployments, ReplicaSets and autoscalers become what moving pods needs of them. Pure.

Fed by ``controllers.deployments_view`` with objects as they came from watches; feeds
:mod:`.moves`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.moves import Deployment, Scaler, read_relocation
from vk_provider.bursting.reading import mapping
from vk_provider.pods.types import Json


@dataclass(frozen=True, slots=True)
class Revision:
    """A ReplicaSet and the UID of its controller."""

    uid: str
    owner: str


@dataclass(frozen=True, slots=True)
class ScalerView:
    """An autoscaler and the Deployment it scales (``kind`` may be anything else)."""

    namespace: str
    kind: str
    target: str
    scaler: Scaler


def deployment_view(obj: Json) -> Deployment:
    """A Deployment without its ReplicaSets and its autoscaler."""
    metadata, spec, status = (mapping(obj, key) for key in ("metadata", "spec", "status"))
    annotation = mapping(metadata, "annotations").get(names.EVACUATION)
    replicas = _number(spec, "replicas", 1)
    updated = _number(status, "updatedReplicas", 0)
    seen = _number(status, "observedGeneration", 0) >= _number(metadata, "generation", 0)
    return Deployment(
        uid=metadata.get("uid", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        replicas=replicas,
        resource_version=metadata.get("resourceVersion", ""),
        is_settled=seen and updated >= replicas and updated == _number(status, "replicas", 0),
        relocation=read_relocation(annotation),
        has_annotation=annotation is not None,
    )


def revision_view(obj: Json) -> Revision:
    """A ReplicaSet."""
    metadata = mapping(obj, "metadata")
    owners = metadata.get("ownerReferences") or ()
    owner = next((one.get("uid", "") for one in owners if one.get("controller")), "")
    return Revision(metadata.get("uid", ""), owner)


def scaler_view(obj: Json) -> ScalerView:
    """A HorizontalPodAutoscaler; without a minimum it is 1."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    target = mapping(spec, "scaleTargetRef")
    least = _number(spec, "minReplicas", 1)
    most = _number(spec, "maxReplicas", least)
    scaler = Scaler(metadata.get("name", ""), least, most)
    return ScalerView(
        metadata.get("namespace", ""), target.get("kind", ""), target.get("name", ""), scaler
    )


def joined(
    deployments: Iterable[Deployment],
    revisions: Iterable[Revision],
    scalers: Sequence[ScalerView],
) -> list[Deployment]:
    """Deployments with the ReplicaSets they own and the autoscaler that owns their replicas."""
    owned: dict[str, set[str]] = {}
    for revision in revisions:
        owned.setdefault(revision.owner, set()).add(revision.uid)
    scaling = {(s.namespace, s.target): s.scaler for s in scalers if s.kind == "Deployment"}
    return [
        replace(
            each,
            revisions=frozenset(owned.get(each.uid, ())),
            scaler=scaling.get((each.namespace, each.name)),
        )
        for each in deployments
    ]


def _number(parent: Mapping[str, Any], key: str, default: int) -> int:
    value = parent.get(key)
    return value if isinstance(value, int) else default
