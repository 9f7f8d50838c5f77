"""Scripted misfortune: which call fails, how, how often, and whether the work was done before.

A kind is a gRPC status in small letters (``unavailable``, ``permission-denied``), with ``-after``
when the work is done first, or one of :data:`SPECIAL`. Everything random comes from one seeded
generator, so a run can be repeated.
Fed by the back door and the command line; asked by ``service`` once per call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grpclib import Status

STATUSES: Mapping[str, Status] = {
    status.name.lower().replace("_", "-"): status for status in Status if status is not Status.OK
}
REFUSALS: Mapping[str, tuple[Status, str]] = {
    "throttled": (Status.RESOURCE_EXHAUSTED, "Sandbox creation rate limit (5/s) exceeded"),
    "no-capacity": (Status.RESOURCE_EXHAUSTED, "Insufficient capacity for the requested GPU"),
    "quota": (Status.RESOURCE_EXHAUSTED, "Workspace GPU limit reached, please upgrade your plan"),
}
"""Prose of the service's own; ``throttled`` carries a retry policy as well."""
SPECIAL: Mapping[str, str] = {
    **{kind: f"answers {status.name}" for kind, (status, _) in REFUSALS.items()},
    "drop": "closes the connection without an answer; nothing was done",
    "drop-after": "does the work, then closes the connection",
    "hang": "never does the work, answers nothing for holdMs",
    "hang-after": "does the work, answers nothing for holdMs, then closes the connection",
    "hold": "does the work at once, answers after holdMs",
    "slow": "waits latencyMs, then does the work",
    "garbage": "answers a message that lacks what it must have",
    "empty-list": "a list without a sandbox",
    "broken-page": "every page of the list but the first fails",
    "build-fails": "the image can't be built",
}
KINDS: Mapping[str, str] = {
    **{kind: f"answers {status.name}" for kind, status in STATUSES.items()},
    **{f"{k}-after": f"does the work, then answers {s.name}" for k, s in STATUSES.items()},
    **SPECIAL,
}
CREATE = "SandboxCreate"
LIST = "SandboxList"
OPERATIONS: Mapping[str, str] = {
    "empty-list": LIST,
    "broken-page": LIST,
    "build-fails": "ImageBuild",
}
"""The operation of kinds that make sense for one only. ``V2`` calls count as their elders."""


class UnknownKindError(ValueError):
    """The fault asked for does not exist."""


@dataclass(slots=True)
class Fault:
    """One scripted fault. ``count`` None never wears off; filters are met when they are equal."""

    id: str
    kind: str
    operation: str = CREATE
    count: int | None = None
    probability: float = 1.0
    gpu: str | None = None
    match: str | None = None
    detail: str | None = None
    hold_ms: float = 60_000
    latency_ms: tuple[float, float] = (0, 0)
    retry_after: float = 1.0
    fired: int = 0

    @property
    def is_after(self) -> bool:
        """Whether the work is done before the fault shows."""
        return self.kind.endswith("-after") or self.kind == "hold"

    def applies(self, operation: str, facts: Mapping[str, Any]) -> bool:
        """Whether this call is one of those that the fault is meant for."""
        if self.operation not in ("*", operation) or self.count == 0:
            return False
        if self.kind == "broken-page" and not facts.get("before"):
            return False
        if self.gpu is not None and facts.get("gpu") != self.gpu:
            return False
        return self.match is None or self.match in str(facts.get("text", ""))

    def answer(self) -> tuple[Status, str] | None:
        """Status and prose, where the fault is a plain answer."""
        if self.kind in REFUSALS:
            status, detail = REFUSALS[self.kind]
            return status, self.detail or detail
        if self.kind == "broken-page":
            return Status.UNAVAILABLE, self.detail or "upstream unavailable"
        name = self.kind.removesuffix("-after")
        if name not in STATUSES:
            return None
        return STATUSES[name], self.detail or f"scripted {STATUSES[name].name}"


@dataclass(slots=True)
class Faults:
    """All scripted faults, first come first served."""

    seed: int = 0
    script: list[Fault] = field(default_factory=list)
    rng: random.Random = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def add(self, kind: str, **settings: Any) -> Fault:
        """Script a fault; ``seed`` restarts the generator."""
        if kind not in KINDS:
            raise UnknownKindError(f"unknown kind {kind!r}; known: {', '.join(sorted(KINDS))}")
        if (seed := settings.pop("seed", None)) is not None:
            self.rng.seed(seed)
        settings.setdefault("operation", OPERATIONS.get(kind, CREATE))
        self._made += 1
        fault = Fault(f"fault-{self._made}", kind, **settings)
        self.script.append(fault)
        return fault

    def remove(self, fault_id: str | None = None) -> None:
        """Forget one fault, or all."""
        self.script = [fault for fault in self.script if fault_id not in (None, fault.id)]

    def draw(self, operation: str, facts: Mapping[str, Any]) -> Fault | None:
        """The fault that this call meets, if any."""
        for fault in self.script:
            if fault.applies(operation, facts) and self.rng.random() < fault.probability:
                fault.fired += 1
                if fault.count is not None:
                    fault.count -= 1
                return fault
        return None

    def between(self, low: float, high: float) -> float:
        """A seeded random number, for latencies."""
        return self.rng.uniform(low, high)
