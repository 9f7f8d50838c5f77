"""What each backend would make of each workload, without an account and without a cluster. Pure.

Fed by manifests and by providers that were built and not entered; feeds
:mod:`vk_provider.offline.explain_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vk_provider.faults import ConfigError, FieldProblem, ProviderError, UnsupportedFieldsError
from vk_provider.offline.node_ranking import NodeRanking, never_affordable, ranked
from vk_provider.offline.objects import OfflinePod, resolve_offline
from vk_provider.offline.pod_defaults import UNKNOWN_UID
from vk_provider.offline.workloads import Manifests, Workload
from vk_provider.placement.budget import BudgetLimits
from vk_provider.placement.needs import Refused
from vk_provider.placement.ranking import Circumstances, Policy, rank
from vk_provider.pods.admission import AdmittingNode, admit
from vk_provider.pods.hints import hints
from vk_provider.pods.names import GPU_TYPES, MAX_PRICE, MIN_GPU_MEMORY
from vk_provider.pods.reading import mappings
from vk_provider.pods.references import ObjectKey, is_token_volume
from vk_provider.pods.resolve import ResolveInput
from vk_provider.pods.types import (
    FieldNote,
    Json,
    Offer,
    PlacementHints,
    ResolvedPod,
)
from vk_provider.provider import (
    IMPLICIT_OFFER,
    Explanation,
    Provider,
    SupportsKnownOffers,
    SupportsOffers,
    SupportsPricing,
)
from vk_provider.registry import foreign_code
from vk_provider.taints import REPELLING, tolerates

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class AskedBackend:
    """One backend that is asked. ``provider`` None: it can't be built, ``problems`` say why.

    ``node`` is the node it would serve; one without a capacity is not configured, so nothing but
    its taints is known. ``live``: what its backend offers now, by the number of GPUs. ``budget``
    is the node's.
    """

    name: str
    provider_name: str
    node: AdmittingNode
    provider: Provider | None
    problems: tuple[str, ...] = ()
    policy: Policy = Policy.CHEAPEST
    live: Mapping[int, Sequence[Offer]] = field(default_factory=dict)
    budget: BudgetLimits = field(default_factory=BudgetLimits)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One backend's answer: a request, or every reason why not."""

    candidate: AskedBackend
    request: Json | None = None
    offers: tuple[Offer, ...] = ()
    notes: tuple[FieldNote, ...] = ()
    reasons: tuple[FieldProblem, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def can_run(self) -> bool:
        """Whether there is a request that this backend would be sent."""
        return self.request is not None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one workload. ``obstacle`` stops it whatever the backend."""

    workload: Workload
    judgements: tuple[Judgement, ...]
    unseen: tuple[ObjectKey, ...] = ()
    notes: tuple[str, ...] = ()
    obstacle: str | None = None
    rankings: tuple[NodeRanking, ...] = ()

    @property
    def can_run(self) -> bool:
        """Whether at least one backend would run it."""
        return self.obstacle is None and any(one.can_run for one in self.judgements)


def explain(manifests: Manifests, candidates: Sequence[AskedBackend]) -> tuple[Report, ...]:
    """One report a workload, in the order of the manifests."""
    return tuple(_report(workload, manifests, candidates) for workload in manifests.workloads)


def _report(workload: Workload, manifests: Manifests, candidates: Sequence[AskedBackend]) -> Report:
    pods = [_resolve(workload, manifests, one) for one in candidates]
    unseen = {key: None for pod in pods for key in pod.unseen}
    judged = tuple(_judge(workload, *pair) for pair in zip(candidates, pods, strict=True))
    return Report(
        workload=workload,
        judgements=judged,
        rankings=tuple(_rankings(workload, judged)),
        unseen=tuple(unseen),
        notes=tuple(_notes(workload, candidates)),
        obstacle=_obstacle(workload),
    )


def _rankings(workload: Workload, judgements: Sequence[Judgement]) -> Iterator[NodeRanking]:
    """One for each configured node that could run it at all."""
    nodes = {one.candidate.node.name: one.candidate for one in judgements}
    for name, candidate in nodes.items():
        mine = [one for one in judgements if one.candidate.node.name == name]
        if candidate.node.capacity and any(one.can_run for one in mine):
            offers = [(one.candidate.name, offer) for one in mine for offer in one.offers]
            refused = [each for one in mine for each in one.refused]
            wishes = hints(workload.pod)[0]
            yield ranked(name, candidate.policy, wishes, offers, refused)


def _resolve(workload: Workload, manifests: Manifests, candidate: AskedBackend) -> OfflinePod:
    provider = candidate.provider
    reaches_services = provider is not None and provider.traits.reaches_services
    given = ResolveInput(
        cluster_id=UNKNOWN_UID,
        node_name=candidate.node.name,
        services=() if reaches_services else None,
        capacity=candidate.node.capacity,
        hints=hints(workload.pod)[0],
    )
    return resolve_offline(workload.pod, manifests.objects, given)


def _judge(workload: Workload, candidate: AskedBackend, pod: OfflinePod) -> Judgement:
    reasons = [FieldProblem("", problem) for problem in candidate.problems]
    reasons += [FieldProblem(each.path, each.message) for each in pod.missing]
    reasons += [*hints(workload.pod)[1], *_refusal(workload, candidate.node)]
    if candidate.provider is None or pod.resolved is None:
        return Judgement(candidate, reasons=tuple(reasons))
    try:
        with foreign_code(candidate.provider_name, "failed to explain"):
            asked = _ask(candidate, candidate.provider, pod.resolved)
    except ConfigError as error:
        return Judgement(candidate, reasons=(*reasons, FieldProblem("", str(error))))
    if reasons or asked.reasons:
        return Judgement(candidate, reasons=(*reasons, *asked.reasons), refused=asked.refused)
    late = tuple(_late_notes(workload, candidate.provider))
    return replace(asked, notes=(*asked.notes, *late))


def _late_notes(workload: Workload, provider: Provider) -> Iterator[FieldNote]:
    """A rollout that is given up while its pods still start, which is worse the longer they do."""
    deadline, longest = workload.progress_deadline, provider.traits.create_timeout_seconds
    if deadline is not None and deadline < longest:
        text = (
            f"a create may take up to {longest:.0f} s here, but the Deployment is reported as "
            f"failed (ProgressDeadlineExceeded) after {deadline} s: raise "
            "spec.progressDeadlineSeconds"
        )
        yield FieldNote("", text)


def _refusal(workload: Workload, node: AdmittingNode) -> Iterator[FieldProblem]:
    """What the node itself would say on arrival; a missing toleration is a note instead."""
    if node.capacity:
        refusal = admit(workload.pod, replace(node, permanent_taints=()))
        if refusal is not None:
            message = refusal.message.removeprefix("Pod was rejected: ")
            yield FieldProblem("spec", f"{refusal.reason}: {message}")


def _ask(candidate: AskedBackend, provider: Provider, pod: ResolvedPod) -> Judgement:
    offers, refused, shortage = _offers(candidate, provider, pod)
    reasons: dict[FieldProblem, None] = {}
    if shortage:
        reasons[FieldProblem("spec", shortage)] = None
    fitting: list[tuple[Offer, Explanation]] = []
    for offer in offers:
        try:
            fitting.append((offer, provider.explain(pod, offer)))
        except UnsupportedFieldsError as error:
            reasons.update(dict.fromkeys(error.problems))
        except ProviderError as error:
            reasons[FieldProblem("spec", f"{error.reason}: {error}")] = None
    if not fitting:
        return Judgement(candidate, reasons=tuple(reasons), refused=refused)
    first = fitting[0][1]
    kept = tuple(offer for offer, _ in fitting)
    notes = (*first.notes, *_probe_notes(provider, pod, first.notes), *_wish_notes(pod, kept))
    return Judgement(candidate, first.request, kept, notes, refused=refused)


def _offers(
    candidate: AskedBackend, provider: Provider, pod: ResolvedPod
) -> tuple[Sequence[Offer], tuple[Refused, ...], str]:
    """The offers in the order they would be tried, those left out, and why there are none."""
    known: Sequence[Offer]
    if pod.gpu_count in candidate.live:
        known = candidate.live[pod.gpu_count]
    elif isinstance(provider, SupportsKnownOffers):
        known = provider.known_offers(pod.gpu_count)
    elif isinstance(provider, SupportsOffers):
        # A catalogue that only the backend knows: the request shows what can be shown.
        return (IMPLICIT_OFFER,), (), ""
    else:
        known = (IMPLICIT_OFFER,)
    if isinstance(provider, SupportsPricing):
        known = tuple(provider.priced(pod, offer) for offer in known)
    # Of a backend without a catalogue no more will ever be known, and the node judges by that.
    has_catalogue = isinstance(provider, SupportsKnownOffers | SupportsOffers)
    wishes = _checkable(pod, known) if has_catalogue else pod.hints
    if not candidate.node.capacity:
        # Without a configuration a backend is called like its provider, which no pod can mean.
        wishes = replace(wishes, backends=())
    namespace = pod.stamp.namespace
    dear = {each.offer: each for each in never_affordable(
        candidate.budget, namespace, candidate.name, known)}  # fmt: skip
    around = Circumstances(
        candidate.policy,
        barred=lambda one: (
            (dear[one.offer].why, dear[one.offer].message) if one.offer in dear else None
        ),
    )
    offers = ((candidate.name, offer) for offer in known)
    ranking = rank(wishes, offers, pod.gpu_count, around)
    return [one.offer for one in ranking.candidates], ranking.refused, ranking.shortage


def _checkable(pod: ResolvedPod, offers: Sequence[Offer]) -> PlacementHints:
    """The wishes without those about facts that are not known offline."""
    wishes = pod.hints
    return replace(
        wishes,
        gpu_types=() if _untyped(pod, offers) else wishes.gpu_types,
        max_usd_per_hour=None if _unpriced(offers) else wishes.max_usd_per_hour,
        min_gpu_memory_gib=None if _unsized(offers) else wishes.min_gpu_memory_gib,
    )


def _untyped(pod: ResolvedPod, offers: Sequence[Offer]) -> bool:
    """A pod without GPUs is offered none, which is known well enough."""
    return pod.gpu_count > 0 and any(offer.gpu_type is None for offer in offers)


def _unpriced(offers: Sequence[Offer]) -> bool:
    return any(offer.usd_per_hour is None for offer in offers)


def _unsized(offers: Sequence[Offer]) -> bool:
    return any(offer.gpu_memory_gib is None for offer in offers)


def _wish_notes(pod: ResolvedPod, offers: Sequence[Offer]) -> Iterator[FieldNote]:
    only_then = "can only be checked with an account or a simulator"
    if pod.hints.gpu_types and _untyped(pod, offers):
        yield FieldNote(f"metadata.annotations[{GPU_TYPES}]", only_then)
    if pod.hints.max_usd_per_hour is not None and _unpriced(offers):
        yield FieldNote(f"metadata.annotations[{MAX_PRICE}]", only_then)
    if pod.hints.min_gpu_memory_gib is not None and _unsized(offers):
        yield FieldNote(f"metadata.annotations[{MIN_GPU_MEMORY}]", only_then)


def _probe_notes(
    provider: Provider, pod: ResolvedPod, said: Sequence[FieldNote]
) -> Iterator[FieldNote]:
    """A probe that nobody runs is accepted, which a person should know before and not after."""
    if provider.traits.runs_probes or any("Probe" in note.path for note in said):
        return
    for container in (*pod.init_containers, *pod.containers):
        for probe in _PROBES:
            if probe in container.spec:
                path = f"{container.field_path}.{probe}"
                yield FieldNote(path, "not run (ProbesNotRun): Ready follows the instance")


def _obstacle(workload: Workload) -> str | None:
    if workload.kind != "DaemonSet":
        return None
    return (
        "a DaemonSet's pods are not run on a virtual node: "
        "they stay Pending with DaemonSetNotSupported"
    )


def _notes(workload: Workload, candidates: Sequence[AskedBackend]) -> Iterator[str]:
    if workload.is_bare:
        yield (
            "a Pod without a controller is not recreated when its instance ends (NotRecreated): "
            "use a Deployment or a Job"
        )
    spec = workload.pod["spec"]
    if any(is_token_volume(volume) for _, volume in mappings(spec, "volumes")):
        keepers = [one.name for one in candidates if _hands_on_tokens(one)]
        kept = f", except on {', '.join(keepers)}" if keepers else ""
        yield f"the volume with the token for the home cluster's API is dropped{kept}"
    tolerations = [entry for _, entry in mappings(spec, "tolerations")]
    taints = {str(taint): taint for one in candidates for taint in one.node.permanent_taints}
    for taint in taints.values():
        if taint["effect"] in REPELLING and not any(tolerates(each, taint) for each in tolerations):
            place = workload.in_document("spec.tolerations")
            yield f"to let it come here, add to {place}:\n{_toleration(taint)}"


def _hands_on_tokens(candidate: AskedBackend) -> bool:
    return candidate.provider is not None and candidate.provider.traits.hands_on_tokens


def _toleration(taint: Json) -> str:
    value = f"value: {taint['value']}" if taint.get("value") else "operator: Exists"
    return f"{{key: {taint['key']}, {value}, effect: {taint['effect']}}}"
