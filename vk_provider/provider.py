"""The seam between the core and a backend: four coroutines, one pure check, optional capabilities.

A **provider** translates one pod and one offer into a backend's terms and speaks to the backend.
It never loops over candidates, retries, polls, caches pods or writes to the API server: the core
does. An implementation may hold a session and a rate budget, nothing else.

Fed by ``loops``; implemented by ``providers/*`` and :mod:`vk_provider.testing.fake`.
Implementations pass :class:`vk_provider.testing.contract.ProviderContract`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self, runtime_checkable

from vk_provider.doubts import Doubt
from vk_provider.faults import FieldProblem
from vk_provider.placement.reports import Report as SpendReport
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    ContainerObservation,
    ContainerState,
    EndCause,
    Explanation,
    FieldNote,
    InstancePhase,
    InstanceRef,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    PodUID,
    RegistryCredential,
    ResolvedContainer,
    ResolvedPod,
    Running,
    Stamp,
    Stock,
    Terminated,
    VolumeFile,
    Waiting,
)
from vk_provider.streams import (
    CHUNK_BYTES,
    AttachRequest,
    ContainerIO,
    ContainerStats,
    ExecRequest,
    InstanceStats,
    PortConnection,
    SupportsAttach,
    SupportsExec,
    SupportsPortForward,
    SupportsStats,
    TerminalSize,
)

__all__ = [
    "CHUNK_BYTES",
    "IMPLICIT_OFFER",
    "AttachRequest",
    "ContainerIO",
    "ContainerObservation",
    "ContainerState",
    "ContainerStats",
    "Doubt",
    "EndCause",
    "ExecRequest",
    "Explanation",
    "FieldNote",
    "FieldProblem",
    "InstancePhase",
    "InstanceRef",
    "InstanceStats",
    "LogLine",
    "LogOptions",
    "NodeCapacity",
    "Observation",
    "Offer",
    "PodUID",
    "PortConnection",
    "Provider",
    "ProviderContext",
    "ProviderFactory",
    "ProviderTraits",
    "ReadClaim",
    "RegistryCredential",
    "ResolvedContainer",
    "ResolvedPod",
    "Running",
    "SpendReport",
    "Stamp",
    "Stock",
    "SupportsAttach",
    "SupportsDoubts",
    "SupportsExec",
    "SupportsKnownOffers",
    "SupportsLogs",
    "SupportsOffers",
    "SupportsPortForward",
    "SupportsPricing",
    "SupportsRefresh",
    "SupportsSpend",
    "SupportsStats",
    "SupportsWatch",
    "TerminalSize",
    "Terminated",
    "VolumeFile",
    "Waiting",
    "capabilities",
]


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """Facts about a backend that the core's decisions rest on. Constant for a provider's life.

    All times are seconds. ``list_lag_seconds``: how long a new instance may stay invisible in a
    list, counted from the moment its create was sent, and a deleted one visible.
    ``ended_is_free``: an ended instance costs nothing, so a terminal phase may be written before
    it is deleted. ``starting_is_free``: nothing is billed while an image is pulled.
    ``restarts_in_place``: the backend restarts containers itself and reports it truthfully
    (another cluster's kubelet). ``reaches_services``: an instance reaches the home cluster's
    ClusterIPs, so service env makes sense. ``ids_are_global``: an id names the same instance in
    every account of the service, so that two backends with one account may both list it.
    ``hands_on_tokens``: an instance gets the ServiceAccount tokens of the home cluster that its pod
    projects (``ResolvedPod.tokens``), and new ones through ``SupportsRefresh``.
    ``follows_updates``: ``SupportsRefresh`` also brings over what the API server lets change in the
    spec of a running pod: images, resources, and the ephemeral containers that are added to it.
    ``switched_off``: words of :func:`capabilities` that the configuration leaves out; the methods
    are there, and refuse with a sentence that says what to configure.
    """

    list_lag_seconds: float
    create_timeout_seconds: float = 120.0
    delete_timeout_seconds: float = 30.0
    ended_is_free: bool = False
    starting_is_free: bool = False
    restarts_in_place: bool = False
    runs_probes: bool = False
    reaches_services: bool = False
    ids_are_global: bool = False
    hands_on_tokens: bool = False
    follows_updates: bool = False
    switched_off: frozenset[str] = frozenset()


ReadClaim = Callable[[str, str], Awaitable[tuple[Mapping[str, Any], Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """What a factory gets beside its configuration.

    ``read_secret(namespace, name, key)`` reads a Secret of the home cluster; it raises
    ``KubeError``. ``read_claim(namespace, name)`` reads a PersistentVolumeClaim and the
    PersistentVolume that it is bound to, each empty where there is none, for providers to which a
    claim stands for something of their own; it raises ``KubeError``. Both are None offline.
    ``config_path`` is where the block stands, for error messages (``spec.backends[0].config``).
    ``may_act()`` is False as soon as another replica may lead. The core asks before it calls; a
    provider whose service would make the same thing twice asks again when the create leaves, since
    this process may have stood still on the way there.
    """

    cluster_id: str
    node_name: str
    backend: str
    config_path: str
    user_agent: str
    read_secret: Callable[[str, str, str], Awaitable[str]] | None = None
    read_claim: ReadClaim | None = None
    may_act: Callable[[], bool] = lambda: True


class Provider(Protocol):
    """What every backend can do. Faults: only subclasses of ``ProviderError``.

    Lifetime is an async context manager: sessions are opened in ``__aenter__`` and closed in
    ``__aexit__``; constructing a provider and :meth:`explain` do no I/O.
    """

    @property
    def traits(self) -> ProviderTraits:
        """The backend's constants."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """The create request for this pod and offer; pure, offline.

        Raises:
            UnsupportedFieldsError: with **every** field that can't be honoured.
        """

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """Make one instance, stamped with ``pod.stamp`` in the same call. One try, no waiting
        until it runs. May be cancelled: an instance that was made is then found by its stamp.

        Raises:
            OutOfCapacityError, DeniedError, RejectedError, UnsupportedFieldsError,
            ThrottledError or UnavailableError (nothing was created), OutcomeUnknownError.
        """

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        """Order the end of an instance. Idempotent: already gone is success. Gone only when a
        list no longer shows it. Raises UnavailableError, ThrottledError, DeniedError."""

    async def list_instances(self) -> Sequence[Observation]:
        """**All** instances that carry our cluster id, in one logical call, of whichever node
        (the core sorts by ``stamp.node_name``); never one of anybody else. Complete or a fault:
        an answer known to be partial raises UnavailableError. One that is surely our cluster's,
        but no longer says whose, has a stamp without node and pod: see ``is_stray``."""

    async def capacity(self) -> NodeCapacity:
        """What the backend could carry at most; empty where only configuration limits it."""


@runtime_checkable
class SupportsOffers(Protocol):
    """The backend has a catalogue. Without it the core uses IMPLICIT_OFFER."""

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        """Everything that could carry ``gpu_count`` GPUs (0: CPU only) under this backend's
        configuration, in the configured order of preference. The core caches, filters, ranks."""


@runtime_checkable
class SupportsKnownOffers(Protocol):
    """The provider knows offers without asking its backend, for ``explain``: pure, offline."""

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        """What could carry ``gpu_count`` GPUs as far as the configuration alone tells, in the
        configured order of preference. Prices are None where only an account knows them."""


@runtime_checkable
class SupportsPricing(Protocol):
    """What an offer costs depends on the pod's own size as well."""

    def priced(self, pod: ResolvedPod, offer: Offer) -> Offer:
        """The same offer at what this pod would pay, as far as that is known: pure, offline, and
        never a fault. The core ranks and reserves by it, and hands it to ``create_instance``."""


@runtime_checkable
class SupportsWatch(Protocol):
    """The backend can push. Observations arrive beside those of the list."""

    def watch_instances(self) -> AsyncIterator[Observation]:
        """Changes as they happen; ends or raises when the stream breaks; the core restarts it."""


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """What a backend tells people about one of its instances, in an Event's words.

    ``type`` is ``Normal`` or ``Warning``; ``field_path`` names a container as an Event does
    (``spec.containers{app}``), empty where the whole pod is meant.
    """

    ref: InstanceRef
    type: str
    reason: str
    message: str
    field_path: str = ""


@runtime_checkable
class SupportsEvents(Protocol):
    """The backend tells what happens to instances. People read it on the pod; nothing is decided
    by it."""

    def watch_events(self) -> AsyncIterator[InstanceEvent]:
        """What is told from now on, instances of others included; ends or raises as
        ``watch_instances``."""


@runtime_checkable
class SupportsDoubts(Protocol):
    """Knows names, and so sees in its configuration what is valid and may yet be a slip."""

    def doubts(self) -> Sequence[Doubt]:
        """What a person should look at again; nothing is refused. No I/O."""


@runtime_checkable
class SupportsRefresh(Protocol):
    """The backend holds copies of what may change while a pod lives: ConfigMaps, Secrets, labels,
    and the spec where ``ProviderTraits.follows_updates``. The core calls when something of it has
    changed, and once for instances it did not make."""

    async def refresh_instance(self, ref: InstanceRef, pod: ResolvedPod) -> None:
        """Bring an instance's copies up to date with ``pod``. Idempotent; raises as
        ``delete_instance``, and the core calls again; also RejectedError, after which it waits for
        the next change."""


@runtime_checkable
class SupportsLogs(Protocol):
    """The backend keeps container logs."""

    def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """Lines in order. Honour ``since`` and ``tail_lines`` where the backend can (the core
        applies them again), and ``follow``: end when the container has ended and all is read.

        Raises:
            InstanceNotFoundError, UnavailableError, NotSupportedError (``previous``).
        """


@runtime_checkable
class SupportsSpend(Protocol):
    """The backend tells what it billed. Until it does, and for what it does not tell, the core
    reckons from the observed price and the time between the backend's own moments."""

    async def read_spend(self, since: datetime) -> Sequence[SpendReport]:
        """What instances cost, one report per instance and clock hour (UTC), from the hour that
        begins at ``since`` on; the hour under way as far as it is billed. Instances of others may
        be among them: the core knows its own by their ids. Raises as ``list_instances``."""


ProviderFactory = Callable[[Mapping[str, Any], ProviderContext], Provider]
"""The entry point of group ``vk_provider.providers``. Raises ``ConfigError`` with all problems."""

_CAPABILITIES: tuple[tuple[str, type], ...] = (
    ("offers", SupportsOffers),
    ("watch", SupportsWatch),
    ("logs", SupportsLogs),
    ("exec", SupportsExec),
    ("attach", SupportsAttach),
    ("port-forward", SupportsPortForward),
    ("stats", SupportsStats),
    ("spend", SupportsSpend),
)


def capabilities(provider: Provider) -> tuple[str, ...]:
    """What a provider can do beyond the least, as short words for annotations and logs."""
    there = (name for name, protocol in _CAPABILITIES if isinstance(provider, protocol))
    return tuple(name for name in there if name not in provider.traits.switched_off)
