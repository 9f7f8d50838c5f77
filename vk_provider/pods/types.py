"""The values that travel through the product: what a pod wants, and what a backend has.

Pods themselves stay plain JSON mappings end to end (unknown fields survive); only what we compute
has a class. All of them are frozen: a value is handed on, never changed.
Fed by the watch (pods) and by providers (observations); read by everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

from vk_provider.faults import FieldProblem

Json = Mapping[str, Any]
"""A JSON object as it came from the API server. Never mutated."""

PodUID = NewType("PodUID", str)
"""``metadata.uid`` of a pod: the only key of anything in memory. Names are never keys."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every instance carries from its create call on, so that a list alone finds its owner."""

    cluster_id: str
    node_name: str
    namespace: str
    pod_name: str
    pod_uid: PodUID

    @property
    def is_stray(self) -> bool:
        """Our cluster's, but nothing says any more which pod's: somebody took its mark away."""
        return not self.pod_uid


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """The backend's own id of an instance. Unique within one backend."""

    id: str


class Stock(StrEnum):
    """How much of an offer the backend says it has; a hint, never a promise."""

    NONE = "None"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing a backend would rent: what the core ranks, walks and cools down.

    ``id`` is stable for the same (GPU type, count, data centre, cloud) and unique in its backend.
    ``data_center`` None means that the backend picks one. Prices are USD per hour for the whole
    instance; None where the backend has no price.
    """

    id: str
    gpu_type: str | None = None
    gpu_count: int = 0
    gpu_memory_gib: int | None = None
    data_center: str | None = None
    usd_per_hour: float | None = None
    stock: Stock = Stock.UNKNOWN


@dataclass(frozen=True, slots=True)
class Candidate:
    """One offer of one backend that could carry a pod; the core walks them in order. ``reason``
    says why it stands where it stands."""

    backend: str
    offer: Offer
    reason: str = field(default="", compare=False)


IMPLICIT_OFFER = Offer(id="default")
"""What a backend without a catalogue offers."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that has not started; only what the backend said."""

    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A container that runs. ``started_at`` is None where the backend does not tell."""

    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Terminated:
    """A container that ended. ``exit_code`` is None where the backend exposes none."""

    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    signal: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


ContainerState = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerObservation:
    """One container (or init container) as the backend shows it. Absent facts stay None.

    ``ready`` None means "the backend runs no probes": Ready then follows the running state.
    ``restart_count`` counts restarts that the *backend* made in place. ``resources`` is
    what it has now and ``allocated`` what it was promised, where the backend can resize it.
    """

    name: str
    state: ContainerState
    last_state: Terminated | None = None
    ready: bool | None = None
    restart_count: int = 0
    image: str | None = None
    image_id: str | None = None
    container_id: str | None = None
    resources: Json | None = None
    allocated: Json | None = None


class InstancePhase(StrEnum):
    """Where an instance is in its life, in the seam's words."""

    STARTING = "Starting"
    """Exists (and may bill); its containers do not run yet."""
    RUNNING = "Running"
    """At least one container runs or ran."""
    ENDED = "Ended"
    """Runs nothing any more and never will by itself; may still be listed, and may still bill."""
    DELETING = "Deleting"
    """On its way out after a delete; not gone yet."""
    UNKNOWN = "Unknown"
    """Listed, but its state could not be read. The pod stays as it is."""


class EndCause(StrEnum):
    """Why an instance ended, where it was not its container's own doing."""

    LOST = "Lost"
    PREEMPTED = "Preempted"
    IMAGE = "Image"
    """The image can't be pulled, and waiting for it is billed or hopeless."""
    REFUSED = "Refused"
    """Where it was to run it is not taken, for what its spec asks for."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One instance in one complete list (or one watch event).

    Two observations of an unchanged instance compare equal, so nothing in here may be a
    measurement time or a counter that runs (uptime). ``ended_by`` is only set with ENDED.
    ``annotations`` go onto the pod (``vk-provider.dev/...`` keys: endpoints, port mappings, price).
    ``generation``: where the backend follows changes of a running pod, up to which
    ``metadata.generation`` of it; ``resizing`` are its conditions about a change of size.
    """

    stamp: Stamp
    ref: InstanceRef
    phase: InstancePhase
    containers: tuple[ContainerObservation, ...] = ()
    init_containers: tuple[ContainerObservation, ...] = ()
    ephemeral_containers: tuple[ContainerObservation, ...] = ()
    ended_by: EndCause | None = None
    reason: str | None = None
    message: str | None = None
    addresses: tuple[str, ...] = ()
    created_at: datetime | None = None
    gpu_type: str | None = None
    data_center: str | None = None
    usd_per_hour: float | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    generation: int | None = None
    resizing: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class RegistryCredential:
    """One login for one registry host, from an imagePullSecret. The password is never shown."""

    registry: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file of a ConfigMap, Secret, projected or downward API volume, ready to be written."""

    path: str
    """Absolute path in the container (mountPath joined with the file's own path)."""
    content: bytes = field(repr=False)
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class ResolvedContainer:
    """A container with nothing left to look up: env is final, ``$(VAR)`` is expanded.

    ``command`` and ``args`` are None when the image's own apply. ``spec`` is the container's JSON,
    for everything else. ``field_path`` is ``spec.containers[0]``; problems start with it.
    ``service_env`` is the part of ``env`` that announces home's Services, where they are reached.
    """

    name: str
    image: str
    field_path: str
    command: tuple[str, ...] | None = field(default=None, repr=False)
    args: tuple[str, ...] | None = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[VolumeFile, ...] = ()
    spec: Json = field(default_factory=dict, repr=False)
    service_env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlacementHints:
    """A user's wishes from the ``vk-provider.dev/*`` annotations. Empty tuples mean "any".
    ``any_gpu``: the list of GPU types ends in "any", so others do as well, after those named."""

    gpu_types: tuple[str, ...] = ()
    min_gpu_memory_gib: int | None = None
    max_usd_per_hour: float | None = None
    backends: tuple[str, ...] = ()
    data_centers: tuple[str, ...] = ()
    any_gpu: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceEvent:
    """An Event that resolving a pod gives rise to: a reference that is absent, optional or not."""

    reason: str
    message: str
    type: str = "Warning"


@dataclass(frozen=True, slots=True)
class ResolvedPod:
    """What a provider translates: a pod with every reference replaced by its value.

    ``pod`` is the pod's JSON as the API server has it. ``gpu_count`` is the effective request of
    ``gpu_resource`` (``nvidia.com/gpu`` or ``amd.com/gpu``), 0 and None for a CPU pod.
    ``unresolvable`` is what only the place where it runs could fill in (``status.podIP``, a
    service account's token): left out of env and files; a provider that can't do it either refuses
    the pod with these problems. ``events`` tell of optional references that were skipped.
    ``secret_values`` is what :func:`vk_provider.pods.masking.masked` hides from people.
    ``objects`` are the ConfigMaps and Secrets themselves, by :class:`.references.ObjectKey`, for a
    provider that keeps references instead of values; what is not there at home is not in it.
    ``tokens`` are the home cluster's, by :class:`.tokens.TokenWish`, where a backend of the node
    hands them on (``ProviderTraits.hands_on_tokens``).
    ``ephemeral_containers`` were added to the running pod: what is missing for them is theirs alone
    to wait for, and their ``env`` lacks it.
    """

    stamp: Stamp
    pod: Json = field(repr=False)
    containers: tuple[ResolvedContainer, ...]
    init_containers: tuple[ResolvedContainer, ...] = ()
    pull_credentials: tuple[RegistryCredential, ...] = ()
    gpu_count: int = 0
    gpu_resource: str | None = None
    hints: PlacementHints = PlacementHints()
    unresolvable: tuple[FieldProblem, ...] = ()
    events: tuple[ReferenceEvent, ...] = ()
    secret_values: frozenset[str] = field(default=frozenset(), repr=False)
    objects: Mapping[Any, Json] = field(default_factory=dict, repr=False)
    tokens: Mapping[Any, str] = field(default_factory=dict, repr=False)
    ephemeral_containers: tuple[ResolvedContainer, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod's instance is to be made: the ``vk-provider.dev/placement`` annotation.

    Only a hint where to look; what may be deleted is decided by the backend's stamp alone.
    ``why`` and the facts of the offer are for people and for the next pod of the same ordinal;
    they make no other placement of it.
    """

    pod_uid: PodUID
    backend: str
    offer: str
    why: str = field(default="", compare=False)
    gpu_type: str | None = field(default=None, compare=False)
    data_center: str | None = field(default=None, compare=False)
    usd_per_hour: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pod's end as we are about to write it. ``disruption`` adds ``DisruptionTarget=True``,
    reason ``TerminationByKubelet``: every Failed of ours that is not the container's own end."""

    phase: str
    """``Failed`` or ``Succeeded``."""
    reason: str | None = None
    message: str | None = None
    disruption: bool = False


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What a backend could carry, as Kubernetes quantities; empty means "as configured"."""

    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The query of ``/containerLogs`` (kubelet.md 1.3): since first, then tail, then the limit."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a container's log, without its newline."""

    timestamp: datetime
    text: bytes


@dataclass(frozen=True, slots=True)
class FieldNote:
    """A field that is accepted but has no effect (or another one than at home): for ``explain``."""

    path: str
    note: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a backend would be asked for a pod, without asking it.

    ``request`` is the body of the create call with every secret value masked.
    """

    request: Json
    notes: Sequence[FieldNote] = ()
