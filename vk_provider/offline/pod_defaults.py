"""A pod as the API server would store it: the defaults and the token volume of admission. Pure.

Only what a translation may look at is filled in; ``explain`` would otherwise judge a pod that no
node ever meets. Fed by :mod:`vk_provider.offline.workloads`; the result goes to ``pods.resolve``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from vk_provider.pods.mounts import FILE_KINDS
from vk_provider.pods.references import TOKEN_VOLUME_PREFIX
from vk_provider.pods.types import Json

TOKEN_VOLUME = f"{TOKEN_VOLUME_PREFIX}xxxxx"
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"

_SPEC: dict[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "enableServiceLinks": True,
    "serviceAccountName": "default",
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
}
_CONTAINER: dict[str, Any] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_NAME_ENDS = {
    "Pod": "",
    "StatefulSet": "-0",
    "Deployment": "-xxxxxxxxxx-xxxxx",
    "CronJob": "-xxxxxxxx-xxxxx",
}
_CONTAINER_LISTS = ("initContainers", "containers")


def with_defaults(template: Json, namespace: str, name: str, kind: str) -> dict[str, Any]:
    """A pod made from a template of an object; the template itself stays as it is."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _mapping(template.get("metadata")),
        "spec": _mapping(template.get("spec")),
    }
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["namespace"] = namespace
    metadata["name"] = name if kind == "Pod" else f"{name}{_NAME_ENDS.get(kind, '-xxxxx')}"
    metadata.setdefault("uid", UNKNOWN_UID)
    _fill(spec, copy.deepcopy(_SPEC))
    for container in _containers(spec):
        _default_container(container)
    _default_volumes(spec)
    if spec.get("automountServiceAccountToken") is not False:
        _add_token_volume(spec)
    return pod


def _default_container(container: dict[str, Any]) -> None:
    _fill(container, copy.deepcopy(_CONTAINER))
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(str(container.get("image") or ""))
    for port in _mappings(container, "ports"):
        _fill(port, {"protocol": "TCP"})
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(key), dict):
            _fill(container[key], _PROBE)
    _default_requests(container["resources"])


def _default_requests(resources: Any) -> None:
    """What is limited and not requested is requested as much."""
    if isinstance(resources, dict) and isinstance(resources.get("limits"), dict):
        requests = resources.setdefault("requests", {})
        if isinstance(requests, dict):
            _fill(requests, resources["limits"])


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if tag and tag != "latest" else "Always"


def _default_volumes(spec: dict[str, Any]) -> None:
    for volume in _mappings(spec, "volumes"):
        sources = [key for key in volume if key != "name"]
        if not sources:
            volume["emptyDir"] = {}
        for key in FILE_KINDS:
            if isinstance(volume.get(key), dict):
                _fill(volume[key], {"defaultMode": 0o644})


def _add_token_volume(spec: dict[str, Any]) -> None:
    """What the ServiceAccount admission plugin adds to every pod that doesn't say no."""
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    volume = {"name": TOKEN_VOLUME, "projected": {"sources": sources, "defaultMode": 0o644}}
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    mount = {"name": TOKEN_VOLUME, "mountPath": path, "readOnly": True}
    spec["volumes"] = [*_mappings(spec, "volumes"), volume]
    for container in _containers(spec):
        container["volumeMounts"] = [*_mappings(container, "volumeMounts"), dict(mount)]


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in _CONTAINER_LISTS:
        yield from _mappings(spec, key)


def _mapping(value: Any) -> dict[str, Any]:
    return copy.deepcopy(value) if isinstance(value, dict) else {}


def _mappings(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = parent.get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _fill(target: dict[str, Any], defaults: dict[str, Any]) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)
