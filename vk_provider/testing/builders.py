"""The smallest valid objects for tests: pods, resolved pods, observations.

Everything can be overridden and nothing is random: the same name always gives the same uid.
Fed by tests and by :mod:`.contract`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from vk_provider.pods.resolve import Missing, ResolveInput, resolve
from vk_provider.pods.types import (
    ContainerObservation,
    InstancePhase,
    InstanceRef,
    Json,
    Observation,
    PodUID,
    ResolvedPod,
    Running,
    Stamp,
)

CLUSTER_ID = "cluster-1"
NODE_NAME = "node-1"
NAMESPACE = "default"
IMAGE = "registry.example/app:1"

_UIDS = uuid.uuid5(uuid.NAMESPACE_DNS, "vk-provider.dev")


def uid_of(name: str, namespace: str = NAMESPACE) -> PodUID:
    """The uid that the builders give a pod of this name."""
    return PodUID(str(uuid.uuid5(_UIDS, f"{namespace}/{name}")))


def make_container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """A container; ``fields`` are laid over it."""
    return {"name": name, "image": IMAGE} | fields


def make_pod(
    name: str = "app-1",
    *,
    namespace: str = NAMESPACE,
    containers: Sequence[Json] = (),
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod bound to our node; ``metadata`` and ``spec`` fields are laid over the default ones."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": uid_of(name, namespace)}
        | dict(metadata or {}),
        "spec": {
            "nodeName": NODE_NAME,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "containers": list(containers) or [make_container()],
        }
        | spec,
        "status": {"phase": "Pending"} | dict(status or {}),
    }


def make_stamp(
    name: str = "app-1",
    *,
    namespace: str = NAMESPACE,
    cluster_id: str = CLUSTER_ID,
    node_name: str = NODE_NAME,
) -> Stamp:
    """The stamp of the instance of the pod of this name."""
    return Stamp(cluster_id, node_name, namespace, name, uid_of(name, namespace))


def make_resolved_pod(
    name: str = "app-1",
    *,
    cluster_id: str = CLUSTER_ID,
    node_name: str = NODE_NAME,
    objects: Mapping[Any, Json | None] | None = None,
    **pod: Any,
) -> ResolvedPod:
    """A pod of :func:`make_pod`, resolved against ``objects``."""
    resolved = resolve(make_pod(name, **pod), objects or {}, ResolveInput(cluster_id, node_name))
    if isinstance(resolved, Missing):
        raise LookupError(f"pass what the pod refers to in `objects`: {resolved.message}")
    return resolved


def make_observation(
    name: str = "app-1",
    phase: InstancePhase = InstancePhase.RUNNING,
    *,
    ref: str | None = None,
    stamp: Stamp | None = None,
    containers: Sequence[ContainerObservation] | None = None,
    **fields: Any,
) -> Observation:
    """An instance of the pod of this name, with one running container unless told otherwise."""
    running = (ContainerObservation("main", Running()),) if phase is InstancePhase.RUNNING else ()
    return Observation(
        stamp=stamp or make_stamp(name),
        ref=InstanceRef(ref or f"instance-of-{name}"),
        phase=phase,
        containers=running if containers is None else tuple(containers),
        **fields,
    )
