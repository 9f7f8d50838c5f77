"""What the shell is told to do for a pod. Frozen values; nothing here acts.

Fed by :func:`vk_provider.pods.lifecycle.decide`; carried out by ``loops.pod_workers``, whose
results come back as stimuli. At most one action against the backend is in flight per pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vk_provider.pods.stimuli import Notice
from vk_provider.pods.types import Candidate, InstanceRef, Json, ResolvedPod, Stamp, Verdict


@dataclass(frozen=True, slots=True)
class Prepare:
    """Resolve references, translate, rank the offers. Answer: ``Prepared``."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """PATCH the pod's status subresource. Answer: ``StatusWritten``.

    The patch may carry the placement annotation: intent before create, in one write.
    """

    patch: Json


@dataclass(frozen=True, slots=True)
class CreateInstance:
    """One create call (with the core's retries of calls that provably created nothing).
    Answer: ``Created`` or ``CreateFailed``. Cancelled by ``CancelCreate``."""

    resolved: ResolvedPod
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class CancelCreate:
    """Cancel the create in flight; its outcome is then unknown until a list shows it."""


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    """Order the instance's end. Answer: ``Deleted`` or ``DeleteFailed``.
    ``keep_logs``: save the tail of its logs first (best effort, bounded)."""

    backend: str
    ref: InstanceRef
    grace_seconds: int
    keep_logs: bool = False


@dataclass(frozen=True, slots=True)
class DeleteExtra:
    """End a double of the pod's instance. Answer: ``ExtraDeleted``."""

    backend: str
    ref: InstanceRef


@dataclass(frozen=True, slots=True)
class ReportShortage:
    """The pod found no capacity in any of its offers. ``default_need``: it asked for nothing
    special, so the door of these backends closes. ``at``: since when. Given once per walk through
    the candidates. No answer."""

    backends: tuple[str, ...]
    message: str
    default_need: bool
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conclude:
    """Take ``verdict`` as the pod's end and charge its owner. Answer, at once: ``Concluded``."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Enter:
    """Reserve the owner's token for a first verdict (see ``pods.storm``). No answer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Walk the candidates again. Answer, at once: ``Retried``."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Emit an Event, once per ``key`` and pod. Answer, at once: ``Announced``."""

    key: str
    notice: Notice


@dataclass(frozen=True, slots=True)
class CheckOrphan:
    """Ask the API server for the pod of this stamp, by name. Answer: ``OrphanChecked``."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class RemovePod:
    """DELETE the pod object, grace 0, with its uid. Answer: the watch, or ``RemovalFailed``."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Look again at this time. Replaces an earlier ``WakeAt``; there is one per decision at most.
    Answer: ``Woken``."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop the record: nothing of the pod is left anywhere."""


Action = (
    Prepare
    | WriteStatus
    | CreateInstance
    | CancelCreate
    | DeleteInstance
    | DeleteExtra
    | ReportShortage
    | Conclude
    | Enter
    | Retry
    | Announce
    | CheckOrphan
    | RemovePod
    | WakeAt
    | Forget
)
