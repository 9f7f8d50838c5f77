"""What the API server's copy of a pod says it wants: predicates and readings, no decisions.

Fed by a pod's JSON; read by the lifecycle, the storm guard and the ranking of offers. No reading
compares times of two machines: a deletion is judged by its grace period in seconds, never by its
timestamp. Nothing here raises, whatever the pod looks like.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from vk_provider.pods import names
from vk_provider.pods.conditions import DISRUPTION, READY, TERMINATION_BY_KUBELET
from vk_provider.pods.container_facts import has_started as container_has_started
from vk_provider.pods.events import FailedReason
from vk_provider.pods.hints import annotations_of as annotations_of
from vk_provider.pods.hints import hints as hints
from vk_provider.pods.hints import placement as placement
from vk_provider.pods.hints import render_placement as render_placement
from vk_provider.pods.hints import uid as uid
from vk_provider.pods.reading import mapping, mappings, number, strings, text
from vk_provider.pods.types import Json

_DEFAULT_GRACE_SECONDS = 30
LONGEST_GRACE_SECONDS = 365 * 24 * 3600
"""The API takes any number of seconds up to 2**63: more than a moment in time can be told from."""
_SCHEDULED_JOB = re.compile(r"(?P<name>.+)-\d{8,}")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS = ("containerStatuses", "initContainerStatuses")


def phase(pod: Json) -> str:
    """``status.phase``; Pending where there is none yet."""
    return text(mapping(pod, "status"), "phase") or "Pending"


def is_terminal(pod: Json) -> bool:
    """Succeeded or Failed: never left again."""
    return phase(pod) in ("Succeeded", "Failed")


def is_terminating(pod: Json) -> bool:
    """Somebody asked for its deletion."""
    return bool(mapping(pod, "metadata").get("deletionTimestamp"))


def is_daemonset(pod: Json) -> bool:
    """Made by a DaemonSet."""
    return text(_controller(pod), "kind") == "DaemonSet"


def is_ordinal(pod: Json) -> bool:
    """Made by a StatefulSet: the next pod of this name goes on where this one stopped."""
    return text(_controller(pod), "kind") == "StatefulSet"


def full_name(pod: Json) -> str:
    """``namespace/name``."""
    metadata = mapping(pod, "metadata")
    return f"{text(metadata, 'namespace')}/{text(metadata, 'name')}"


def has_controller(pod: Json) -> bool:
    """Whether anybody would replace it."""
    return bool(_controller(pod))


def has_started(pod: Json) -> bool:
    """Whether any container runs or ran, as far as the API's status tells."""
    status = mapping(pod, "status")
    return any(
        container_has_started(one) for name in _CONTAINER_LISTS for _, one in mappings(status, name)
    )


def is_ready(pod: Json) -> bool:
    """Whether the API's copy says Ready."""
    conditions = mappings(mapping(pod, "status"), "conditions")
    return any(one.get("type") == "Ready" and one.get("status") == "True" for _, one in conditions)


def has_probes(pod: Json) -> bool:
    """Whether any container asks for a probe."""
    spec = mapping(pod, "spec")
    containers = mappings(spec, "containers") + mappings(spec, "initContainers")
    return any(container.get(probe) for _, container in containers for probe in _PROBES)


def is_job_that_cannot_ignore(pod: Json) -> bool:
    """Whether failing this pod would count against its Job.

    True for every pod of a Job, since the Job's podFailurePolicy can't be read from the pod, unless
    the pod says that disruptions are ignored: annotation ``vk-provider.dev/job-ignores-disruption:
    "true"`` from its template, or the Job controller's own count of ignored failures. With
    restartPolicy OnFailure there can be no podFailurePolicy, so those words are not believed.
    """
    if text(_controller(pod), "kind") != "Job":
        return False
    notes = annotations_of(pod)
    ignores = notes.get(names.JOB_IGNORES_DISRUPTION) == "true" or names.IGNORED_FAILURES in notes
    return restart_policy(pod) != "Never" or not ignores


def owner_key(pod: Json) -> str:
    """Whose pod it is in the end, for the storm guard: ``namespace/Kind/name``.

    The owner of a ReplicaSet or Job is derived from its name, without a look-up: a Deployment
    appends the pod-template-hash, a CronJob the scheduled minute. A bare pod is its own owner.
    """
    controller = _controller(pod)
    if not controller:
        return uid(pod)
    kind, name = text(controller, "kind"), text(controller, "name")
    tail = f"-{strings(mapping(pod, 'metadata'), 'labels').get(names.POD_TEMPLATE_HASH, '')}"
    if kind == "ReplicaSet" and tail != "-" and name.endswith(tail):
        kind, name = "Deployment", name.removesuffix(tail)
    elif kind == "Job" and (scheduled := _SCHEDULED_JOB.fullmatch(name)):
        kind, name = "CronJob", scheduled["name"]
    return f"{text(mapping(pod, 'metadata'), 'namespace')}/{kind}/{name}"


def restart_policy(pod: Json) -> str:
    """``spec.restartPolicy``; the API server's default where it is absent."""
    return text(mapping(pod, "spec"), "restartPolicy") or "Always"


def grace_seconds(pod: Json) -> int:
    """How long its containers may take to stop: what the deletion granted, else what the spec
    wants; never longer than a year."""
    granted = number(mapping(pod, "metadata"), "deletionGracePeriodSeconds")
    wanted = number(mapping(pod, "spec"), "terminationGracePeriodSeconds")
    known = [seconds for seconds in (granted, wanted) if seconds is not None]
    return min(max(0, known[0]), LONGEST_GRACE_SECONDS) if known else _DEFAULT_GRACE_SECONDS


def active_deadline_seconds(pod: Json) -> int | None:
    """How long the pod may be active, counted from its startTime."""
    return number(mapping(pod, "spec"), "activeDeadlineSeconds")


def start_time(pod: Json) -> datetime | None:
    """``status.startTime``, which a node of ours wrote."""
    return parse_time(text(mapping(pod, "status"), "startTime"))


def start_seconds(pod: Json) -> float | None:
    """From startTime to the first start of a container, as the API's status tells; None for a pod
    whose containers have started anew since."""
    begun = start_time(pod)
    statuses = [one for _, one in mappings(mapping(pod, "status"), "containerStatuses")]
    starts = [
        parse_time(text(mapping(mapping(one, "state"), "running"), "startedAt")) for one in statuses
    ]
    known = [start for start in starts if start is not None]
    if begun is None or not known or any(number(one, "restartCount") for one in statuses):
        return None
    return max(0.0, (min(known) - begun).total_seconds())


def failed_at(pod: Json) -> datetime | None:
    """When a node of ours marked the pod Failed; None where nobody did, or somebody else.

    A pod that is being deleted ends as Failed without having failed.
    """
    status = mapping(pod, "status")
    conditions = {text(one, "type"): one for _, one in mappings(status, "conditions")}
    disruption = conditions.get(DISRUPTION, {})
    is_disrupted_here = text(disruption, "reason") == TERMINATION_BY_KUBELET
    is_ours = is_disrupted_here or text(status, "reason") in ("", *FailedReason)
    if phase(pod) != "Failed" or is_terminating(pod) or not is_ours:
        return None
    # Ready may have been False all the time; our DisruptionTarget came with the phase.
    shown = disruption if is_disrupted_here else conditions.get(READY, {})
    return parse_time(text(shown, "lastTransitionTime"))


def generation(pod: Json) -> int:
    """``metadata.generation``; 0 where the API server counts none."""
    return number(mapping(pod, "metadata"), "generation") or 0


def version(pod: Json) -> str:
    """``metadata.resourceVersion``; empty where there is none."""
    return text(mapping(pod, "metadata"), "resourceVersion")


def parse_time(shown: str) -> datetime | None:
    """A time as Kubernetes writes it, or None."""
    try:
        moment = datetime.fromisoformat(shown)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _controller(pod: Json) -> Json:
    owners = mappings(mapping(pod, "metadata"), "ownerReferences")
    return next((owner for _, owner in owners if owner.get("controller") is True), {})
