"""What a decision may know beside its own pod: a read-only view, made afresh for each step.

Fed by ``loops.pod_workers`` (the door, the storm guard, the node's admission); read by
``pods.lifecycle``. Callables are asked only when a rule needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vk_provider.pods.admission import Refusal
from vk_provider.pods.types import Candidate, Json


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """The traits of a backend that decide over a pod (see ``provider.ProviderTraits``)."""

    ended_is_free: bool = False
    restarts_in_place: bool = False
    runs_probes: bool = False
    follows_updates: bool = False


@dataclass(frozen=True, slots=True)
class LifecycleLimits:
    """Seconds: how long a Job's pod waits for capacity; when Failed is written although the
    instance is not confirmed gone; how often a waiting pod looks again; after how long without a
    backend's word its pods are given up (None: never, an outage of an API is no death of a pod);
    how long an instance may take to start (None: as long as it takes).
    """

    pending_deadline: float = 1800.0
    confirm_deadline: float = 300.0
    recheck: float = 15.0
    backend_lost: float | None = None
    start_deadline: float | None = None


@dataclass(frozen=True, slots=True)
class World:
    """One moment, as seen from one pod.

    ``door_closed``: why no create may begin, or None. ``headroom``: creates that a half-open door
    still lets in; None: no limit. ``door_published``: the API server has the node's latest door,
    so a Failed pod's replacement will not be sent here. ``synced``: the pod cache is complete.
    ``silence``: for how many seconds a backend has given no list. ``over_budget``: why none of
    these offers may be rented, empty where money is not the reason. ``dismissed``: why the pod's
    instance must end so that a cap of the budget holds; empty if it may run on.
    """

    now: datetime
    facts: Mapping[str, BackendFacts]
    held_until: Callable[[], datetime | None]
    refusal: Callable[[Json], Refusal | None]
    cooled: Callable[[Candidate], bool]
    door_closed: str | None = None
    headroom: int | None = None
    door_published: bool = True
    synced: bool = True
    host_ip: str | None = None
    direct: bool = False
    limits: LifecycleLimits = LifecycleLimits()
    silence: Callable[[str], float] = lambda _: 0.0
    over_budget: Callable[[Sequence[Candidate]], str] = lambda _: ""
    dismissed: str = ""
