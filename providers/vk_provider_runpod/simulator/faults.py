"""Scripted misfortune: which call fails, how, how often, and whether the work was done before.

The kinds follow what people met on the live service. Everything random comes from one seeded
generator, so a run can be repeated.
Fed by ``/_sim/faults`` and the command line; asked by ``app`` once per call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider_runpod.simulator.placing import NO_CAPACITY

REFUSALS: Mapping[str, tuple[int, str]] = {
    "no-capacity": (400, NO_CAPACITY),
    "rejected": (400, "Invalid container image name provided"),
    "unauthorized": (401, "invalid bearer token"),
    "balance": (402, "Your account balance is too low to rent a pod."),
    "forbidden": (403, "access denied"),
    "conflict": (409, "pod belongs to a cluster"),
    "invalid": (422, "Request validation failed."),
    "throttled": (429, "rate limit exceeded for the minute window"),
    "error": (503, "upstream unavailable"),
    "error-after": (503, "upstream unavailable"),
}
"""Kinds that answer with a status and prose. ``-after`` means: the work was done first."""
KINDS: Mapping[str, str] = {
    **{kind: f"answers {status}" for kind, (status, _) in REFUSALS.items()},
    "error-after": "does the work, then answers 503",
    "blocked": "answers 403 as HTML, error 1010, as the edge does without a User-Agent",
    "reset": "closes the connection without an answer; nothing was done",
    "reset-after": "does the work, then closes the connection",
    "hang": "never does the work, answers nothing for holdMs",
    "hang-after": "does the work, then answers nothing for holdMs and closes",
    "garbage": "answers 200 with HTML; nothing was done",
    "garbage-after": "does the work, then answers HTML",
    "slow": "waits latencyMs, then does the work",
    "hold": "does the work at once, answers after holdMs",
    "empty-list": "a list of pods without a pod",
    "broken-page": "every page of the list but the first fails",
    "repeat-page": "the next page of a list repeats the last pod of the page before",
    "dearer": "the pod is made, and billed at factor times its list price",
    "lingering": "a delete answers 204, but the pod bills on for seconds",
}


class UnknownKindError(ValueError):
    """The fault asked for does not exist."""


@dataclass(slots=True)
class Fault:
    """One scripted fault. ``count`` None never wears off; filters are met when they are equal."""

    id: str
    kind: str
    operation: str = "createPod"
    count: int | None = None
    probability: float = 1.0
    gpu: str | None = None
    data_center: str | None = None
    match: str | None = None
    status: int | None = None
    detail: str | None = None
    hold_ms: float = 60_000
    latency_ms: tuple[float, float] = (0, 0)
    retry_after: int = 1
    seconds: float = 60.0
    factor: float = 2.0
    fired: int = 0

    @property
    def is_after(self) -> bool:
        """Whether the work is done before the fault shows."""
        return self.kind.endswith("-after") or self.kind == "hold"

    def applies(self, operation: str, facts: Mapping[str, Any]) -> bool:
        """Whether this call is one of those that the fault is meant for."""
        if self.operation not in ("*", operation) or self.count == 0:
            return False
        if self.kind == "broken-page" and not facts.get("cursor"):
            return False
        if self.gpu is not None and facts.get("gpu") != self.gpu:
            return False
        centres = facts.get("data_centers") or ()
        # A call that leaves the choice open is not "in" a data centre that is full.
        if self.data_center is not None and self.data_center not in centres:
            return False
        return self.match is None or self.match in str(facts.get("text", ""))

    def answer(self) -> tuple[int, str] | None:
        """Status and prose, where the fault is a plain answer."""
        if self.kind not in REFUSALS:
            return None
        status, detail = REFUSALS[self.kind]
        return self.status or status, self.detail or detail


OPERATIONS: Mapping[str, str] = {
    "empty-list": "listPods",
    "broken-page": "listPods",
    "repeat-page": "listPods",
    "dearer": "createPod",
    "lingering": "deletePod",
}
"""The operation of kinds that make sense for one only."""


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
        settings.setdefault("operation", OPERATIONS.get(kind, "createPod"))
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
