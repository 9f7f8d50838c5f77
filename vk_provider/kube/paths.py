"""Where things live on the API server: one small function per resource that we touch.

Fed by names; feeds :class:`vk_provider.kube.client.KubeClient`. A namespace of None is "all".
"""

from __future__ import annotations

from urllib.parse import quote

from vk_provider.kube.workload_paths import autoscalers as autoscalers
from vk_provider.kube.workload_paths import deployment as deployment
from vk_provider.kube.workload_paths import deployments as deployments
from vk_provider.kube.workload_paths import replica_sets as replica_sets


def _core(resource: str, namespace: str | None, name: str | None = None) -> str:
    scope = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    tail = "" if name is None else f"/{quote(name, safe='')}"
    return f"/api/v1{scope}/{resource}{tail}"


def pods(namespace: str | None = None) -> str:
    """The pods of one namespace, or of all."""
    return _core("pods", namespace)


def pod(namespace: str, name: str) -> str:
    """One pod."""
    return _core("pods", namespace, name)


def pod_status(namespace: str, name: str) -> str:
    """The status subresource of one pod."""
    return pod(namespace, name) + "/status"


def nodes() -> str:
    """All nodes."""
    return _core("nodes", None)


def node(name: str) -> str:
    """One node."""
    return _core("nodes", None, name)


def node_status(name: str) -> str:
    """The status subresource of one node."""
    return node(name) + "/status"


def namespace(name: str) -> str:
    """One namespace."""
    return _core("namespaces", None, name)


def events(namespace: str) -> str:
    """The core Events of one namespace."""
    return _core("events", namespace)


def event(namespace: str, name: str) -> str:
    """One core Event."""
    return _core("events", namespace, name)


def config_maps(namespace: str) -> str:
    """The ConfigMaps of one namespace."""
    return _core("configmaps", namespace)


def secrets(namespace: str) -> str:
    """The Secrets of one namespace."""
    return _core("secrets", namespace)


def claim(namespace: str, name: str) -> str:
    """One PersistentVolumeClaim."""
    return _core("persistentvolumeclaims", namespace, name)


def volume(name: str) -> str:
    """One PersistentVolume."""
    return _core("persistentvolumes", None, name)


def token_requests(namespace: str, service_account: str) -> str:
    """Where tokens of one ServiceAccount are asked for."""
    return _core("serviceaccounts", namespace, service_account) + "/token"


def services(namespace: str) -> str:
    """The Services of one namespace."""
    return _core("services", namespace)


def leases(namespace: str) -> str:
    """The Leases of one namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"


def lease(namespace: str, name: str) -> str:
    """One Lease."""
    return f"{leases(namespace)}/{quote(name, safe='')}"


def token_reviews() -> str:
    """Where a bearer token is put to the question whose it is."""
    return "/apis/authentication.k8s.io/v1/tokenreviews"


def subject_access_reviews() -> str:
    """Where an identity is put to the question what it may."""
    return "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def mutating_webhook_configurations() -> str:
    """All MutatingWebhookConfigurations."""
    return "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def mutating_webhook_configuration(name: str) -> str:
    """One MutatingWebhookConfiguration."""
    return f"{mutating_webhook_configurations()}/{quote(name, safe='')}"
