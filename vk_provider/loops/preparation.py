"""Everything a create needs, gathered: references resolved, offers ranked, the pod translated.

Fed by ``loops.pod_workers`` (action Prepare); asks the reference cache and the backends'
catalogues; its ``Prepared`` goes to ``pods.starting``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vk_provider.faults import (
    DeniedError,
    FieldProblem,
    ForbiddenError,
    ProviderError,
    UnsupportedFieldsError,
)
from vk_provider.kube.references import ReferenceCache
from vk_provider.kube.services import Services
from vk_provider.kube.tokens import TokenSource
from vk_provider.loops.backend import Backend
from vk_provider.loops.threshold import Threshold
from vk_provider.placement.needs import Place
from vk_provider.placement.ranking import Circumstances, Policy, Ranking, rank
from vk_provider.pods import desired
from vk_provider.pods.events import WaitingReason
from vk_provider.pods.hints import hints
from vk_provider.pods.masking import Veiled
from vk_provider.pods.references import ObjectKey, referenced
from vk_provider.pods.resolve import Missing, ResolveInput, resolve
from vk_provider.pods.stimuli import Notice, Prepared
from vk_provider.pods.types import (
    Json,
    Offer,
    PlacementHints,
    PodUID,
    ResolvedPod,
    Waiting,
)


@dataclass(frozen=True, slots=True)
class PreparationSettings:
    """The node's own facts that a pod may ask for, and how offers are ranked."""

    cluster_id: str
    node_name: str
    host_ip: str
    capacity: Mapping[str, str]
    policy: Policy = Policy.CHEAPEST
    namespaces: tuple[str, ...] = ()
    """Where ConfigMaps and Secrets may be read; empty: everywhere."""


class Preparer:
    """Makes one pod ready to be created."""

    def __init__(
        self,
        settings: PreparationSettings,
        backends: Mapping[str, Backend],
        references: ReferenceCache,
        services: Services | None,
        threshold: Threshold,
        tokens: TokenSource | None = None,
    ) -> None:
        """``services``, ``tokens``: where a backend's instances reach home's, or get them."""
        self._settings = settings
        self._backends = backends
        self._references = references
        self._services = services
        self._threshold = threshold
        self._tokens = tokens

    def release(self, uid: PodUID) -> None:
        """The pod needs its references no more."""
        self._references.release(uid)
        if self._services is not None:
            self._services.release(uid)
        if self._tokens is not None:
            self._tokens.release(uid)

    def is_due(self, uid: PodUID) -> bool:
        """Whether the pod is to be resolved again, for a token that grows old."""
        return self._tokens is not None and self._tokens.is_due(uid)

    async def resolved(self, uid: PodUID, pod: Json) -> ResolvedPod | None:
        """The pod with its references as they are now; None while one of them is missing."""
        if await self._unreadable(uid, pod) is not None:
            return None
        found = await self._resolve(pod, hints(pod)[0])
        return None if isinstance(found, Missing) else found

    async def prepare(self, uid: PodUID, pod: Json) -> Prepared:
        """All a create needs, or why it can't be had. Never raises for what a pod contains."""
        wishes, problems = hints(pod)
        if problems:
            return Prepared(refusals=problems)
        unreadable = await self._unreadable(uid, pod)
        if unreadable is not None:
            reason = str(WaitingReason.CREATE_CONTAINER_CONFIG_ERROR)
            return Prepared(missing=Waiting(reason, unreadable.message), notices=(unreadable,))
        resolved = await self._resolve(pod, wishes)
        if isinstance(resolved, Missing):
            notices = tuple(Notice(e.type, e.reason, e.message) for e in resolved.events)
            waiting = Waiting(resolved.reason, resolved.message)
            return Prepared(missing=waiting, notices=notices)
        return await self._place(uid, resolved)

    async def _unreadable(self, uid: PodUID, pod: Json) -> Notice | None:
        """Which reference we may not read, in words; that is not the same as its absence."""
        keys, granted = self._referenced(pod), self._settings.namespaces
        outside = sorted(key for key in keys if granted and key.namespace not in granted)
        if outside:
            return _unread(
                outside[0],
                f"ConfigMaps and Secrets of namespace {outside[0].namespace} may not be read: "
                f"this node's spec.namespaces are {', '.join(granted)}",
            )
        self._references.want(uid, keys)
        for key in sorted(keys):
            found = await self._references.get(key)
            fault = self._references.fault(key)
            if found is None and isinstance(fault, ForbiddenError):
                return _unread(key, f"{key} may not be read: {fault}")
        return None

    async def _resolve(self, pod: Json, wishes: PlacementHints) -> ResolvedPod | Missing:
        objects: dict[ObjectKey, Json | None] = {
            key: await self._references.get(key) for key in self._referenced(pod)
        }
        services = None
        if self._services is not None:
            metadata = pod["metadata"]
            services = await self._services.of(PodUID(metadata["uid"]), metadata["namespace"])
        settings = self._settings
        given = ResolveInput(
            settings.cluster_id,
            settings.node_name,
            settings.host_ip,
            services,
            settings.capacity,
            wishes,
            await self._tokens.of(pod) if self._tokens is not None else None,
        )
        return resolve(pod, objects, given)

    def _referenced(self, pod: Json) -> frozenset[ObjectKey]:
        return referenced(pod, with_tokens=self._tokens is not None)

    async def _place(self, uid: PodUID, resolved: ResolvedPod) -> Prepared:
        notices = tuple(Notice(e.type, e.reason, e.message) for e in resolved.events)
        offered: list[tuple[str, Offer]] = []
        refusals: list[FieldProblem] = []
        faults: list[str] = []
        for backend in self._backends.values():
            try:
                offers = backend.priced(resolved, await backend.offers(resolved.gpu_count))
            except ProviderError as fault:
                faults.append(f"{backend.name}: {fault}")
                if isinstance(fault, DeniedError):
                    self._threshold.denied(backend.name, fault)
                continue
            self._threshold.money.note_prices(backend.name, offers)
            problems = _refused_fields(backend, resolved, offers)
            if problems:
                refusals += problems
            else:
                offered += [(backend.name, offer) for offer in offers]
        ranking = self._ranked(uid, resolved, offered)
        shortage = "; ".join([*faults, ranking.shortage]) if ranking.shortage else ""
        return Prepared(
            resolved=resolved,
            candidates=ranking.candidates,
            refusals=() if offered or faults else tuple(dict.fromkeys(refusals)),
            shortage=shortage,
            notices=notices,
        )

    def _ranked(
        self, uid: PodUID, resolved: ResolvedPod, offered: Sequence[tuple[str, Offer]]
    ) -> Ranking:
        """In one go without a pause, so that pods that are ranked together see each other."""
        known = self._threshold.experience
        is_ordinal = desired.is_ordinal(resolved.pod)
        around = Circumstances(
            policy=self._settings.policy,
            running=known.occupancy.counts(besides=uid),
            starts=known.starts.median,
            predecessor=(
                known.ordinals.predecessor(desired.full_name(resolved.pod)) if is_ordinal else None
            ),
        )
        ranking = rank(resolved.hints, offered, resolved.gpu_count, around)
        if ranking.candidates:
            first = ranking.candidates[0]
            known.occupancy.take(uid, Place(first.backend, first.offer.data_center))
        return ranking


def _unread(key: ObjectKey, message: str) -> Notice:
    """Also one that is optional must be read: nobody knows that it is absent."""
    return Notice("Warning", f"FailedToReadMandatory{key.kind}", message)


def _refused_fields(
    backend: Backend, resolved: ResolvedPod, offers: Sequence[Offer]
) -> tuple[FieldProblem, ...]:
    """The fields this backend can't honour. They do not depend on the offer, so one is enough."""
    if not offers:
        return ()
    try:
        with Veiled(resolved.secret_values):
            backend.provider.explain(resolved, offers[0])
    except UnsupportedFieldsError as fault:
        return fault.problems
    return ()
