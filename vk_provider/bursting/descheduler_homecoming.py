"""Whether a descheduler would bring pods home, and nothing else: every trap that is known. Pure.

Fed by ``doctor.descheduler`` with the program that has the homecoming policy; feeds
``doctor.report``. Each rule was tried on descheduler 0.36.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.descheduler_policy import (
    EVICTOR,
    FAILED,
    OLD_SWITCHES,
    RETURNING,
    TAINTS,
    VIRTUAL_LABELS,
    Profile,
    profiles,
    takes_node,
    unknown_keys,
)
from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.pods.types import Json

OUR_REASONS = frozenset(
    [
        "OutOfCapacity",
        "Unsupported",
        "Rejected",
        "ProviderLost",
        "Preempted",
        "ContainerExited",
        "NodeAffinity",
        "TaintToleration",
        "DeadlineExceeded",
    ]
)
"""Reasons of pods that we mark Failed, beside those that begin with ``OutOf``."""
LONG_MINUTES = 30.0
SHORT_FAILED_SECONDS = 600
_TOTAL = "maxNoOfPodsToEvictTotal"
_LIMITS = (_TOTAL, "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
_UNITS = {"h": 60.0, "m": 1.0, "s": 1 / 60, "ms": 1 / 60_000}


@dataclass(frozen=True, slots=True)
class Program:
    """A descheduler that runs: where it was found, its flags and its policy.

    ``flags`` is None where only a policy was given. ``is_repeated`` is whether something else, such
    as a CronJob, starts it again and again.
    """

    where: str
    policy: Json
    flags: Mapping[str, str] | None = None
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What the rest of the cluster says: our own limits, and the labels of the virtual nodes."""

    limits: HomecomingLimits | None = None
    virtual: Sequence[Mapping[str, str]] = field(default_factory=lambda: (VIRTUAL_LABELS,))


def examine(program: Program, expected: Expected | None = None) -> list[Advice]:
    """All that would keep it from bringing pods home, or let it do more than that."""
    against = expected or Expected()
    policy = program.policy
    found = [*_of_the_program(program), *_of_the_policy(policy, against.limits)]
    for profile in profiles(policy):
        if profile.brings_home:
            found += [*_of_the_evictor(profile, against), *_of_the_taints(profile)]
        found += _of_the_plugins(profile)
    if not found:
        return [Advice(Level.OK, program.where, "brings pods home at the pace that it says")]
    return [
        Advice(one.level, f"{program.where}: {one.subject}", one.what, one.remedy) for one in found
    ]


def _of_the_program(program: Program) -> Iterator[Advice]:
    flags = program.flags
    if flags is None:
        return
    interval = flags.get("descheduling-interval", "0")
    if not minutes(interval) and not program.is_repeated:
        what = f"found {interval!r}: it looks once, and never again"
        yield _error("--descheduling-interval", what, "set 1m: the limits are per cycle")
    if flags.get("dry-run", "false") != "false":
        yield _error("--dry-run", "it moves nobody", "leave it out")


def _of_the_policy(policy: Json, limits: HomecomingLimits | None) -> Iterator[Advice]:
    for unknown in unknown_keys(policy):
        meant = f"did you mean {unknown.nearest!r}?" if unknown.nearest else "remove it"
        yield _error(unknown.path, "unknown key: the descheduler ends at its start", meant)
    if policy.get("nodeSelector"):
        what = f"found {policy['nodeSelector']!r}: with fewer than two Ready nodes in it, every "
        remedy = "remove it; the one inside DefaultEvictor.args is the one that is wanted"
        yield _error("nodeSelector", f"{what}cycle is skipped", remedy)
    if policy.get("gracePeriodSeconds") is not None:
        what = "overrules terminationGracePeriodSeconds of every pod"
        yield _error("gracePeriodSeconds", what, "remove it")
    yield from _of_the_limits(policy, limits)
    if policy.get("evictionFailureEventNotification") is not True:
        what = "nobody is told why a pod could not be evicted"
        yield Advice(Level.NOTE, "evictionFailureEventNotification", what, "set true")


def _of_the_limits(policy: Json, limits: HomecomingLimits | None) -> Iterator[Advice]:
    if policy.get(_TOTAL) is None:
        what = "no limit: every pod that would fit somewhere by itself is evicted in one cycle"
        yield _error(_TOTAL, what, "set 2; it is the pace together with the interval")
    for key in _LIMITS:
        if policy.get(key) == 0:
            yield _error(key, "found 0: nobody is moved", "set at least 1")
    total, cycle = policy.get(_TOTAL), limits.evictions_per_cycle if limits else None
    if isinstance(total, int) and cycle is not None and total > cycle:
        what = (
            f"found {total}: more than homecoming.evictionsPerCycle ({cycle}), by which the gate "
        )
        remedy = f"set {cycle} here, or {total} there"
        yield _error(_TOTAL, f"keeps maxInFlight: {what}reckons", remedy)


def _of_the_evictor(profile: Profile, expected: Expected) -> Iterator[Advice]:
    args, path = profile.evictor, profile.path_of(EVICTOR)
    if EVICTOR not in profile.arguments:
        what = "no DefaultEvictor: by default every pod with an emptyDir stays, home full or not"
        yield _error(path, what, "configure it as deploy/descheduler/policy.yaml does")
        return
    if args.get("nodeFit") is not True:
        what = "pods are evicted while home is full: they would only wait"
        yield _error(f"{path}.nodeFit", what, "set true")
    yield from _of_the_targets(
        str(args.get("nodeSelector") or ""), f"{path}.nodeSelector", expected
    )
    if not args.get("labelSelector"):
        what = "pods that never opted in are moved as well"
        remedy = f'set matchLabels {{{names.BURST_LABEL}: "true"}}'
        yield Advice(Level.WARNING, f"{path}.labelSelector", what, remedy)
    yield from _of_the_threshold(args, path)
    yield from _of_replicas_and_age(args, path)
    yield from _of_the_protections(args, path)


def _of_the_targets(selector: str, path: str, expected: Expected) -> Iterator[Advice]:
    remedy = f'set "{names.TYPE_LABEL}!={names.TYPE_VALUE}", or a label that only home nodes have'
    if any(takes_node(selector, {**VIRTUAL_LABELS, **labels}) for labels in expected.virtual):
        what = "another virtual node counts as a place to go: pods move from cloud to cloud"
        yield _error(path, f"found {selector!r}: {what}" if selector else what, remedy)


def _of_the_threshold(args: Json, path: str) -> Iterator[Advice]:
    threshold = args.get("priorityThreshold") or {}
    where = f"{path}.priorityThreshold"
    if threshold.get("name") and threshold.get("value") is not None:
        what = "has a name and a value: the descheduler ends at its start"
        yield _error(where, what, "keep one of the two")
    if not threshold:
        what = "every pod below system-critical is moved, training too if it ever were outside"
        yield Advice(Level.NOTE, where, what, "set name to the class of training")


def _of_replicas_and_age(args: Json, path: str) -> Iterator[Advice]:
    replicas = args.get("minReplicas") or 0
    where = f"{path}.minReplicas"
    if replicas < 2:
        what = "a workload of one replica is down while it moves"
        yield Advice(Level.WARNING, where, what, "set 2")
    if replicas > 2:
        what = f"found {replicas}: workloads with fewer replicas never come home"
        yield Advice(Level.WARNING, where, what, "set 2")
    where, age = f"{path}.minPodAge", minutes(str(args.get("minPodAge") or "0"))
    if age is None:
        what = f"found {args['minPodAge']!r}: not a duration"
        yield _error(where, what, "allowed: a duration such as 10m")
    elif age > LONG_MINUTES:
        what = f"found {args['minPodAge']}: a pod stays outside at least that long"
        yield Advice(Level.WARNING, where, what, "set 10m")
    elif not age:
        what = "a pod that has just come is moved again"
        yield Advice(Level.WARNING, where, what, "set 10m")
    if args.get("noEvictionPolicy") != "Mandatory":
        what = "descheduler.alpha.kubernetes.io/prefer-no-eviction is not obeyed"
        yield Advice(Level.NOTE, f"{path}.noEvictionPolicy", what, "set Mandatory")


def _of_the_protections(args: Json, path: str) -> Iterator[Advice]:
    protections = args.get("podProtections") or {}
    disabled = protections.get("defaultDisabled") or ()
    extra = protections.get("extraEnabled") or ()
    old = sorted(key for key in OLD_SWITCHES if args.get(key))
    if old and (disabled or extra):
        what = "does not go together with podProtections: the descheduler ends at its start"
        yield _error(f"{path}.{old[0]}", what, "remove it")
    elif old:
        what = "is deprecated"
        yield Advice(Level.NOTE, f"{path}.{old[0]}", what, "use podProtections")
    local = "PodsWithLocalStorage"
    if local not in disabled and not args.get("evictLocalStoragePods"):
        what = "pods with an emptyDir, such as the usual one at /dev/shm, never come home"
        yield _error(f"{path}.podProtections.defaultDisabled", what, f"add {local}")
    if "PodsWithoutPDB" in extra or args.get("ignorePodsWithoutPDB"):
        what = (
            "with 0.36.0 PodsWithoutPDB protects every pod for ever, and a dry run says otherwise"
        )
        yield _error(f"{path}.podProtections.extraEnabled", what, "remove PodsWithoutPDB")
    for name, listed in (("defaultDisabled", disabled), ("extraEnabled", extra)):
        if len(set(listed)) < len(listed):
            what = "names one twice: the descheduler ends at its start"
            yield _error(f"{path}.podProtections.{name}", what, "name each once")


def _of_the_taints(profile: Profile) -> Iterator[Advice]:
    args, path = profile.arguments[TAINTS], profile.path_of(TAINTS)
    included = [str(taint) for taint in args.get("includedTaints") or ()]
    where = f"{path}.includedTaints"
    if included != [RETURNING]:
        what = f"found {included}: it acts on more than `return`, so closing moves pods"
        yield _error(where, what, f"set [{RETURNING!r}]")
    if args.get("excludedTaints"):
        what = "goes together with includedTaints nowhere: the descheduler ends at its start"
        yield _error(f"{path}.excludedTaints", what, "remove it")
    if args.get("includePreferNoSchedule"):
        what = "the permanent soft taint would count as a violation for ever"
        yield _error(f"{path}.includePreferNoSchedule", what, "remove it")
    if TAINTS not in profile.enabled:
        what = f"{TAINTS} is configured but never runs"
        yield _error(f"{profile.path}.plugins.deschedule.enabled", what, f"add {TAINTS}")


def _of_the_plugins(profile: Profile) -> Iterator[Advice]:
    for plugin in sorted(profile.enabled - {TAINTS, FAILED}):
        what = f"{plugin} runs beside it: the limits count over both, and it acts on every node"
        remedy = "run it in an instance of its own"
        yield _error(f"{profile.path}.plugins", what, remedy)
    if TAINTS in profile.enabled and not profile.brings_home:
        what = "acts on every NoSchedule taint: a gate at hold and a closed door move pods"
        remedy = f"set includedTaints [{RETURNING!r}]"
        yield _error(f"{profile.path_of(TAINTS)}.includedTaints", what, remedy)
    if FAILED in profile.enabled:
        yield from _of_failed_pods(profile)


def _of_failed_pods(profile: Profile) -> Iterator[Advice]:
    args, path = profile.arguments.get(FAILED, {}), profile.path_of(FAILED)
    reasons = [str(reason) for reason in args.get("reasons") or ()]
    if not reasons:
        what = "every Failed pod of the cluster is removed, whoever marked it"
        yield _error(f"{path}.reasons", what, "name the reasons of virtual nodes")
    strange = [one for one in reasons if one not in OUR_REASONS and not one.startswith("OutOf")]
    if strange:
        what = f"found {', '.join(strange)}: no virtual node gives them"
        yield Advice(Level.WARNING, f"{path}.reasons", what, "remove them")
    lifetime = args.get("minPodLifetimeSeconds")
    if lifetime is not None and lifetime < SHORT_FAILED_SECONDS:
        what = f"found {lifetime}: nobody can read in time why a pod failed"
        yield Advice(Level.WARNING, f"{path}.minPodLifetimeSeconds", what, "set 3600")
    if profile.evictor.get("nodeFit"):
        what = "Failed pods stay as long as home is full"
        remedy = f"give {FAILED} a profile of its own without nodeFit"
        yield Advice(Level.WARNING, f"{profile.path_of(EVICTOR)}.nodeFit", what, remedy)


def minutes(duration: str) -> float | None:
    """A Go duration (``1h30m``, ``10s``, ``0``) in minutes; None if it is none."""
    if duration == "0":
        return 0.0
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _error(path: str, what: str, remedy: Any) -> Advice:
    return Advice(Level.ERROR, path, what, remedy)
