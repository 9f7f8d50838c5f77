"""Scripted misfortune of the service: its kinds, and what their answers are.

The kinds follow what people met on the live service.
Fed by ``/_sim/faults`` and tests; asked by ``app`` once per call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.testing.simulator.faults import Faults, ScriptedFault
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
OPERATIONS: Mapping[str, str] = {
    "empty-list": "listPods",
    "broken-page": "listPods",
    "repeat-page": "listPods",
    "dearer": "createPod",
    "lingering": "deletePod",
}
"""The operation of kinds that make sense for one only."""


@dataclass
class Fault(ScriptedFault):
    """One scripted fault."""

    operation: str = "createPod"
    data_center: str | None = None
    status: int | None = None
    retry_after: int = 1
    seconds: float = 60.0
    factor: float = 2.0

    def applies(self, operation: str, facts: Mapping[str, Any]) -> bool:
        """Whether this call is one of those that the fault is meant for."""
        centres = facts.get("data_centers") or ()
        # A call that leaves the choice open is not "in" a data centre that is full.
        is_there = self.data_center is None or self.data_center in centres
        return is_there and super().applies(operation, facts)

    def answer(self) -> tuple[int, str] | None:
        """Status and prose, where the fault is a plain answer."""
        if self.kind not in REFUSALS:
            return None
        status, detail = REFUSALS[self.kind]
        return self.status or status, self.detail or detail


def make_faults(seed: int = 0) -> Faults[Fault]:
    """An empty script."""
    return Faults(Fault, KINDS, OPERATIONS, seed)
