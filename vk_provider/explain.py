"""What each backend would make of each workload, without an account and without a cluster. Pure.

Fed by manifests and by providers that were built and not entered; feeds
:mod:`vk_provider.explain_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vk_provider.faults import ConfigError, FieldProblem, ProviderError, UnsupportedFieldsError
from vk_provider.offline_objects import OfflinePod, resolve_offline
from vk_provider.pods.references import ObjectKey, is_token_volume
from vk_provider.pods.resolve import ResolveInput
from vk_provider.pods.types import FieldNote, Json, Offer, PlacementHints, ResolvedPod
from vk_provider.provider import IMPLICIT_OFFER, Explanation, Provider, SupportsKnownOffers
from vk_provider.registry import foreign_code
from vk_provider.settings import PROVIDER_TAINT, Taint
from vk_provider.workloads import Manifests, Workload

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One backend that is asked. ``provider`` None: it can't be built, ``problems`` say why."""

    name: str
    provider_name: str
    node_name: str
    provider: Provider | None
    problems: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = (PROVIDER_TAINT,)
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One backend's answer: a request, or every reason why not."""

    candidate: Candidate
    request: Json | None = None
    offers: tuple[Offer, ...] = ()
    notes: tuple[FieldNote, ...] = ()
    reasons: tuple[FieldProblem, ...] = ()

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

    @property
    def can_run(self) -> bool:
        """Whether at least one backend would run it."""
        return self.obstacle is None and any(one.can_run for one in self.judgements)


def explain(manifests: Manifests, candidates: Sequence[Candidate]) -> tuple[Report, ...]:
    """One report a workload, in the order of the manifests."""
    return tuple(_report(workload, manifests, candidates) for workload in manifests.workloads)


def _report(workload: Workload, manifests: Manifests, candidates: Sequence[Candidate]) -> Report:
    offline = {one.name: _resolve(workload, manifests, one) for one in candidates}
    unseen = {key: None for pod in offline.values() for key in pod.unseen}
    return Report(
        workload=workload,
        judgements=tuple(_judge(workload, one, offline[one.name]) for one in candidates),
        unseen=tuple(unseen),
        notes=tuple(_notes(workload, candidates)),
        obstacle=_obstacle(workload),
    )


def _resolve(workload: Workload, manifests: Manifests, candidate: Candidate) -> OfflinePod:
    provider = candidate.provider
    reaches_services = provider is not None and provider.traits.reaches_services
    given = ResolveInput(
        cluster_id="00000000-0000-0000-0000-000000000000",
        node_name=candidate.node_name,
        services=() if reaches_services else None,
        capacity=candidate.capacity,
        hints=PlacementHints(),
    )
    return resolve_offline(workload.pod, manifests.objects, given)


def _judge(workload: Workload, candidate: Candidate, pod: OfflinePod) -> Judgement:
    provider = candidate.provider
    if provider is None:
        return Judgement(candidate, reasons=_as_problems("", candidate.problems))
    if pod.resolved is None:
        lacking = (FieldProblem(each.path, each.message) for each in pod.missing)
        return Judgement(candidate, reasons=tuple(lacking))
    try:
        with foreign_code(candidate.provider_name, "failed to explain"):
            return _ask(candidate, provider, pod.resolved)
    except ConfigError as error:
        return Judgement(candidate, reasons=_as_problems("", error.problems))


def _ask(candidate: Candidate, provider: Provider, pod: ResolvedPod) -> Judgement:
    known: Sequence[Offer] = (IMPLICIT_OFFER,)
    if isinstance(provider, SupportsKnownOffers):
        known = provider.known_offers(pod.gpu_count)
    if not known:
        needs = f"{pod.gpu_count} GPU(s)" if pod.gpu_count else "no GPU"
        reason = FieldProblem(
            "spec.containers", f"no offer of this backend fits a pod with {needs}"
        )
        return Judgement(candidate, reasons=(reason,))
    reasons: dict[FieldProblem, None] = {}
    fitting: list[tuple[Offer, Explanation]] = []
    for offer in known:
        try:
            fitting.append((offer, provider.explain(pod, offer)))
        except UnsupportedFieldsError as error:
            reasons.update(dict.fromkeys(error.problems))
        except ProviderError as error:
            reasons[FieldProblem("spec", f"{error.reason}: {error}")] = None
    if not fitting:
        return Judgement(candidate, reasons=tuple(reasons))
    first = fitting[0][1]
    notes = (*first.notes, *_probe_notes(provider, pod, first.notes))
    return Judgement(candidate, first.request, tuple(offer for offer, _ in fitting), notes)


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


def _notes(workload: Workload, candidates: Sequence[Candidate]) -> Iterator[str]:
    if workload.is_bare:
        yield (
            "a Pod without a controller is not recreated when its instance ends (NotRecreated): "
            "use a Deployment or a Job"
        )
    spec = workload.pod["spec"]
    if any(is_token_volume(volume) for volume in spec["volumes"]):
        yield (
            "the volume with the token of the home cluster's API is dropped "
            "(automountServiceAccountToken: false says the same)"
        )
    tolerations = [entry for entry in spec.get("tolerations") or [] if isinstance(entry, Mapping)]
    taints = dict.fromkeys(taint for candidate in candidates for taint in candidate.taints)
    for taint in taints:
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            place = workload.in_document("spec.tolerations")
            yield f"to let it come here, add to {place}: {_toleration(taint)}"


def _toleration(taint: Taint) -> str:
    value = f"value: {taint.value}" if taint.value else "operator: Exists"
    return f"{{key: {taint.key}, {value}, effect: {taint.effect}}}"


def _tolerates(toleration: Mapping[str, object], taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    exists = toleration.get("operator") == "Exists"
    if toleration.get("key") in (None, ""):
        return exists
    same_value = exists or (toleration.get("value") or "") == taint.value
    return toleration.get("key") == taint.key and same_value


def _as_problems(path: str, problems: Sequence[FieldProblem | str]) -> tuple[FieldProblem, ...]:
    return tuple(
        problem if isinstance(problem, FieldProblem) else FieldProblem(path, problem)
        for problem in problems
    )
