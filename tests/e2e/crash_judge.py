"""The judge of crashes: the account's ledger and its record of calls, never our own word.

Fed by ``crashes`` after each kill and at the end; raises VerdictError with the story of the
instance concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.crash_stage import NODE, SIBLING, CrashStage

LONGEST_CREATE_SECONDS = 1.0
"""An unanswered create that came longer before the kill was not cut off by it."""
_NEVER_ANSWERED = ("hang", "reset")
_CHANGES = ("deletePod", "updatePod", "podAction")


class VerdictError(AssertionError):
    """Something happened that must not; the message tells the story."""


@dataclass(slots=True)
class Kill:
    """One kill: when (the account's clock), of whom, and whose creates it cut off."""

    at: float
    round: str
    replica: str
    cut_off: set[int] = field(default_factory=set)
    """The numbers of these calls."""


async def judge(stage: CrashStage, *, settled: bool = False) -> Mapping[str, Any]:
    """Check what must hold at any moment; ``settled``: and what must hold once all is quiet."""
    ledger: Mapping[str, Any] = await stage.account.ask("/ledger")
    for double in ledger["doubleBilled"]:
        told = await story(stage, double["podUid"], double["instances"])
        raise VerdictError(f"pod {double['podUid']} was billed twice: {double}\n{told}")
    untouchable = _untouchable(stage, ledger)
    for charge in ledger["charges"]:
        if charge["instance"] in untouchable and charge["end"] is not None:
            told = await story(stage, charge["podUid"], [charge["instance"]])
            raise VerdictError(f"somebody else's instance was ended: {charge}\n{told}")
    await _nobody_else_is_touched(stage, untouchable)
    if settled:
        await _running_means_one(stage, ledger)
    return ledger


def ours(charges: Iterable[Mapping[str, Any]], stage: CrashStage) -> list[Mapping[str, Any]]:
    """The charges of the node under test; strangers may carry its name."""
    return [
        charge
        for charge in charges
        if charge["nodeName"] == NODE and charge["instance"] not in stage.strangers
    ]


def _untouchable(stage: CrashStage, ledger: Mapping[str, Any]) -> set[str]:
    siblings = {c["instance"] for c in ledger["charges"] if c["nodeName"] == SIBLING}
    return siblings | stage.strangers


async def _nobody_else_is_touched(stage: CrashStage, untouchable: set[str]) -> None:
    """The sibling's workload never shrinks, so nobody at all has reason to call for these."""
    for request in await stage.account.requests():
        instance = request["path"].split("/")[3:4]
        if request["operation"] in _CHANGES and untouchable.intersection(instance):
            raise VerdictError(f"somebody else's instance was called for: {request}")


async def _running_means_one(stage: CrashStage, ledger: Mapping[str, Any]) -> None:
    billing = [charge["podUid"] for charge in ours(ledger["open"], stage)]
    for pod in await stage.pods():
        uid, phase = pod["metadata"]["uid"], pod["status"]["phase"]
        if pod["spec"].get("nodeName") == NODE and phase == "Running" and billing.count(uid) != 1:
            told = await story(stage, uid, [])
            raise VerdictError(f"pod {uid} is Running with {billing.count(uid)} instances\n{told}")


async def count_cut_off(stage: CrashStage, kill: Kill, after: int) -> None:
    """Note the creates that had come and were not answered when the kill struck.

    A create that the node itself gave up, since its pod was deleted, does not count: only pods
    count that nobody asked to go.
    """
    wanted = {
        pod["metadata"]["uid"]
        for pod in await stage.pods()
        if "deletionTimestamp" not in pod["metadata"]
    }
    earliest = kill.at - LONGEST_CREATE_SECONDS * max(1.0, stage.plan.speed)
    for request in await stage.account.requests(after):
        came = earliest < request["arrivedAt"] <= kill.at
        if (
            request["operation"] == "createPod"
            and came
            and request["answeredAt"] is None
            and not (request["fault"] or "").startswith(_NEVER_ANSWERED)
            and request["podUid"] in wanted
        ):
            kill.cut_off.add(request["number"])


async def forget_answered(stage: CrashStage, kills: Sequence[Kill]) -> None:
    """A create that was answered after all was not cut off: a clean stop waits for it."""
    calls = await stage.account.requests()
    answered = {call["number"] for call in calls if call["answeredAt"] is not None}
    for kill in kills:
        kill.cut_off -= answered


async def story(stage: CrashStage, uid: str, instances: Sequence[str]) -> str:
    """Everything that the account and the replicas have to tell about one pod UID."""
    ledger = await stage.account.ask("/ledger")
    charges = [c for c in ledger["charges"] if c["podUid"] == uid or c["instance"] in instances]
    words = {uid, *instances, *(charge["instance"] for charge in charges)}
    words |= {charge["pod"] for charge in charges if charge["pod"] != "/"}
    calls = [
        f"{r['arrivedAt']:.3f}-{r['answeredAt'] or 0:.3f} {r['method']} {r['path']} "
        f"{r['status']} {r['fault'] or ''} {r['instance'] or ''}"
        for r in await stage.account.requests()
        if r["podUid"] == uid or words.intersection(r["path"].split("/"))
    ]
    lines = [
        f"{replica.name}: {line}"
        for replica in stage.replicas
        for line in stage.bed.log_tail(replica.name, 100_000).splitlines()
        if any(word in line for word in words) or "is up" in line or "stopping" in line
    ]
    parts = [("charges", list(map(str, charges))), ("calls", calls), ("log", lines[-120:])]
    return "\n".join(f"-- {title}\n" + "\n".join(rows) for title, rows in parts)
