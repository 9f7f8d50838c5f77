"""Which ConfigMaps and Secrets a pod refers to: what must be watched before it can be resolved.

Fed by a pod's JSON; feeds the caches of ``kube`` (what to watch) and :mod:`.resolve` (the keys of
its ``objects``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json

CONFIG_MAP = "ConfigMap"
SECRET = "Secret"

TOKEN_VOLUME_PREFIX = "kube-api-access-"
"""How admission names the volume with the token of the home cluster that it adds to every pod."""


class ObjectKey(NamedTuple):
    """One ConfigMap or Secret of the home cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def referenced(pod: Json, *, with_tokens: bool = False) -> frozenset[ObjectKey]:
    """Every ConfigMap and Secret the pod names, optional or not, wherever it names them; those of
    the volume that admission added only ``with_tokens``."""
    namespace = text(mapping(pod, "metadata"), "namespace")
    spec = mapping(pod, "spec")
    volumes = _of_volumes(spec, with_tokens)
    found = [*_of_containers(spec), *volumes, *_of_pull_secrets(spec)]
    return frozenset(ObjectKey(kind, namespace, name) for kind, name in found if name)


def is_token_volume(volume: Json) -> bool:
    """Is it the volume that admission added? It is dropped unless a backend hands tokens on: the
    user never asked for them."""
    sources = mappings(mapping(volume, "projected"), "sources")
    return text(volume, "name").startswith(TOKEN_VOLUME_PREFIX) and any(
        "serviceAccountToken" in source for _, source in sources
    )


def _of_containers(spec: Json) -> Iterator[tuple[str, str]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for _, container in mappings(spec, field):
            for _, source in mappings(container, "envFrom"):
                yield CONFIG_MAP, text(mapping(source, "configMapRef"), "name")
                yield SECRET, text(mapping(source, "secretRef"), "name")
            for _, variable in mappings(container, "env"):
                origin = mapping(variable, "valueFrom")
                yield CONFIG_MAP, text(mapping(origin, "configMapKeyRef"), "name")
                yield SECRET, text(mapping(origin, "secretKeyRef"), "name")


def _of_volumes(spec: Json, with_tokens: bool) -> Iterator[tuple[str, str]]:
    for _, volume in mappings(spec, "volumes"):
        if is_token_volume(volume) and not with_tokens:
            continue
        yield CONFIG_MAP, text(mapping(volume, "configMap"), "name")
        yield SECRET, text(mapping(volume, "secret"), "secretName")
        for _, source in mappings(mapping(volume, "projected"), "sources"):
            yield CONFIG_MAP, text(mapping(source, "configMap"), "name")
            yield SECRET, text(mapping(source, "secret"), "name")


def _of_pull_secrets(spec: Json) -> Iterator[tuple[str, str]]:
    for _, secret in mappings(spec, "imagePullSecrets"):
        yield SECRET, text(secret, "name")
