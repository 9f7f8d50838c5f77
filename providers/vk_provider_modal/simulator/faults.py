"""Scripted misfortune of the service: its kinds, and what their answers are.

A kind is a gRPC status in small letters (``unavailable``, ``permission-denied``), with ``-after``
when the work is done first, or one of :data:`SPECIAL`.
Fed by the back door and tests; asked by ``service`` once per call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grpclib import Status

from vk_provider.testing.simulator.faults import Faults, ScriptedFault

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


@dataclass(slots=True)
class Fault(ScriptedFault):
    """One scripted fault."""

    operation: str = CREATE
    retry_after: float = 1.0

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


def make_faults(seed: int = 0) -> Faults[Fault]:
    """An empty script."""
    return Faults(Fault, KINDS, OPERATIONS, seed)
