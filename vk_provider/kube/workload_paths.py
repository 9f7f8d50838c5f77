"""Where what makes pods lives on the API server. A namespace of None is "all".

Part of :mod:`vk_provider.kube.paths`, through which it is used.
"""

from __future__ import annotations

from urllib.parse import quote


def replica_sets() -> str:
    """The ReplicaSets of all namespaces."""
    return _in_group("apps/v1", "replicasets", None)


def deployments(namespace: str | None = None) -> str:
    """The Deployments of one namespace, or of all."""
    return _in_group("apps/v1", "deployments", namespace)


def deployment(namespace: str, name: str) -> str:
    """One Deployment."""
    return f"{deployments(namespace)}/{quote(name, safe='')}"


def autoscalers(namespace: str | None = None) -> str:
    """The HorizontalPodAutoscalers of one namespace, or of all."""
    return _in_group("autoscaling/v2", "horizontalpodautoscalers", namespace)


def _in_group(group: str, resource: str, namespace: str | None) -> str:
    scope = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    return f"/apis/{group}{scope}/{resource}"
