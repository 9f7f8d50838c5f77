"""Everything a kubelet resolves before it starts a pod, in one pure function.

Fed by the pod and the objects it refers to (:func:`.references.referenced` says which); feeds
``create_instance``. What must exist and doesn't makes the pod wait, as with a kubelet; nothing in a
pod makes this raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vk_provider.pods.downward import PodFields
from vk_provider.pods.environment import Environment
from vk_provider.pods.expansion import Expander
from vk_provider.pods.gpus import gpu_request
from vk_provider.pods.lookup import Lookup, MissingReference, Reference
from vk_provider.pods.pull_secrets import PullCredentials, pull_credentials
from vk_provider.pods.reading import mapping, mappings, text, texts
from vk_provider.pods.references import CONFIG_MAP, ObjectKey, is_token_volume
from vk_provider.pods.services import service_environment
from vk_provider.pods.tokens import TokenWish
from vk_provider.pods.types import (
    Json,
    PlacementHints,
    PodUID,
    ReferenceEvent,
    ResolvedContainer,
    ResolvedPod,
    Stamp,
)
from vk_provider.pods.volumes import Volumes

__all__ = ["Missing", "MissingReference", "ObjectKey", "ReferenceEvent", "ResolveInput", "resolve"]

WAITING_REASON = "CreateContainerConfigError"
"""The waiting reason of containers whose pod lacks what it refers to."""


@dataclass(frozen=True, slots=True)
class ResolveInput:
    """What resolving needs beside the pod and its objects.

    ``services`` is None where an instance can't reach ClusterIPs: then no service variables.
    ``capacity`` (the node's) is what an unset limit reads as in a ``resourceFieldRef``.
    ``tokens`` is None where no backend hands the home cluster's on: then nobody needs its CA.
    """

    cluster_id: str
    node_name: str
    host_ip: str | None = None
    services: Sequence[Json] | None = None
    capacity: Mapping[str, str] = field(default_factory=dict)
    hints: PlacementHints = field(default_factory=PlacementHints)
    tokens: Mapping[TokenWish, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Missing:
    """The pod can't start yet: all that it must have and that is not there."""

    references: tuple[MissingReference, ...]
    events: tuple[ReferenceEvent, ...] = ()
    reason: str = WAITING_REASON

    @property
    def message(self) -> str:
        """For the containers' waiting state."""
        return "; ".join(dict.fromkeys(each.message for each in self.references))


def resolve(
    pod: Json, objects: Mapping[ObjectKey, Json | None], given: ResolveInput
) -> ResolvedPod | Missing:
    """The pod with every reference replaced by its value, or all that is missing for that."""
    lookup = Lookup(text(mapping(pod, "metadata"), "namespace"), objects)
    containers = _Containers.of(pod, given, lookup)
    init, main = containers.resolved("initContainers"), containers.resolved("containers")
    # Who debugs a pod that runs must not hold it up.
    beside = Lookup(lookup.namespace, objects)
    ephemeral = _Containers.of(pod, given, beside).resolved("ephemeralContainers")
    pulls = pull_credentials(pod, objects, [each.image for each in (*init, *main)])
    tokens = given.tokens or {}
    if tokens:
        _look_for_authorities(pod, lookup)
    events = _events(lookup, pulls)
    if lookup.missing:
        return Missing(tuple(dict.fromkeys(lookup.missing)), events)
    gpu_count, gpu_resource = gpu_request(pod)
    return ResolvedPod(
        stamp=_stamp(pod, given),
        pod=pod,
        containers=main,
        init_containers=init,
        pull_credentials=pulls.credentials,
        gpu_count=gpu_count,
        gpu_resource=gpu_resource,
        hints=given.hints,
        unresolvable=tuple(dict.fromkeys(lookup.unresolvable)),
        events=events,
        secret_values=frozenset(
            lookup.secret_values
            | beside.secret_values
            | {each.password for each in pulls.credentials}
            | set(tokens.values())
        ),
        objects={key: found for key, found in objects.items() if found is not None},
        tokens=tokens,
        ephemeral_containers=ephemeral,
    )


@dataclass(frozen=True, slots=True)
class _Containers:
    pod: Json
    environment: Environment
    volumes: Volumes

    @classmethod
    def of(cls, pod: Json, given: ResolveInput, lookup: Lookup) -> _Containers:
        services = {} if given.services is None else service_environment(pod, given.services)
        fields = PodFields(pod, given.node_name, given.host_ip, given.capacity, lookup)
        environment = Environment(lookup, fields, services)
        return cls(pod, environment, Volumes(pod, lookup, fields))

    def resolved(self, field_name: str) -> tuple[ResolvedContainer, ...]:
        return tuple(
            self._container(container, f"spec.{field_name}[{index}]")
            for index, container in mappings(mapping(self.pod, "spec"), field_name)
        )

    def _container(self, container: Json, path: str) -> ResolvedContainer:
        expander = Expander(self.environment.lookup)
        env = self.environment.of(container, path, expander)
        services = self.environment.services
        return ResolvedContainer(
            name=text(container, "name"),
            image=text(container, "image"),
            field_path=path,
            command=_expanded(container, "command", env, path, expander),
            args=_expanded(container, "args", env, path, expander),
            env=env,
            files=self.volumes.files(container, path, env),
            spec=_without_token_mounts(self.pod, container),
            service_env={name: env[name] for name in services if env[name] == services[name]},
        )


def _expanded(
    container: Json, field_name: str, env: Mapping[str, str], path: str, expander: Expander
) -> tuple[str, ...] | None:
    words = texts(container, field_name)
    if words is None:
        return None
    expanded = (
        expander.expand(word, env, f"{path}.{field_name}[{index}]")
        for index, word in enumerate(words)
    )
    return tuple(word for word in expanded if word is not None)


def _without_token_mounts(pod: Json, container: Json) -> Json:
    volumes = mappings(mapping(pod, "spec"), "volumes")
    dropped = {text(volume, "name") for _, volume in volumes if is_token_volume(volume)}
    mounts = [mount for _, mount in mappings(container, "volumeMounts")]
    kept = [mount for mount in mounts if text(mount, "name") not in dropped]
    return container if len(kept) == len(mounts) else {**container, "volumeMounts": kept}


def _look_for_authorities(pod: Json, lookup: Lookup) -> None:
    """What stands beside an injected token: it is published a moment after its namespace."""
    for index, volume in mappings(mapping(pod, "spec"), "volumes"):
        if is_token_volume(volume):
            for part, source in mappings(mapping(volume, "projected"), "sources"):
                path = f"spec.volumes[{index}].projected.sources[{part}].configMap"
                if "configMap" in source:
                    lookup.entries(Reference.read(CONFIG_MAP, mapping(source, "configMap"), path))


def _stamp(pod: Json, given: ResolveInput) -> Stamp:
    metadata = mapping(pod, "metadata")
    return Stamp(
        cluster_id=given.cluster_id,
        node_name=given.node_name,
        namespace=text(metadata, "namespace"),
        pod_name=text(metadata, "name"),
        pod_uid=PodUID(text(metadata, "uid")),
    )


def _events(lookup: Lookup, pulls: PullCredentials) -> tuple[ReferenceEvent, ...]:
    return (
        *(ReferenceEvent(f"Mandatory{each.reason}", str(each)) for each in _once(lookup.missing)),
        *(
            ReferenceEvent(f"Optional{each.reason}", f"skipping an optional reference: {each}")
            for each in _once(lookup.skipped)
        ),
        *dict.fromkeys(pulls.events),
    )


def _once(misses: Sequence[MissingReference]) -> Iterator[MissingReference]:
    """One miss per object or key, however many fields want it: the first of them is named."""
    told: set[str] = set()
    for miss in misses:
        if miss.message not in told:
            told.add(miss.message)
            yield miss
