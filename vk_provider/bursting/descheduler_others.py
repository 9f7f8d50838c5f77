"""Whether a descheduler that is none of ours would undo what we do. Pure.

Fed by ``doctor.descheduler`` with every descheduler of the cluster but the one that brings pods
home; feeds ``doctor.report``. A stock policy acts on every NoSchedule taint, so on a gate that only
says hold, and takes a big empty node for the ideal target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vk_provider.bursting import names
from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.descheduler_homecoming import Program
from vk_provider.bursting.descheduler_policy import (
    TAINTS,
    VIRTUAL_LABELS,
    Profile,
    profiles,
    selects,
    takes_node,
)

VALUES: Mapping[str, tuple[str, ...]] = {
    names.GATE_TAINT: ("hold", "return"),
    names.UNAVAILABLE_TAINT: ("capacity", "denied", "budget", "outage"),
    names.GPU_HEALTH_TAINT: (names.TRAINING_UNFIT, names.DRAIN, names.DEAD),
}
"""Our NoSchedule taints that come and go, and what they may say."""
_MUST = (names.GATE_TAINT, names.UNAVAILABLE_TAINT)
_AFFINITY = "RemovePodsViolatingNodeAffinity"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EYES_ON_NODES: Mapping[str, str] = {
    "LowNodeUtilization": "sees an empty virtual node as the ideal target, and evicts to fill it",
    "HighNodeUtilization": "empties a virtual node that is little used",
    "RemoveDuplicates": "moves replicas apart, onto virtual nodes too",
    "RemovePodsViolatingTopologySpreadConstraint": "evens out replicas between home and outside",
    _AFFINITY: "evicts where a preferred node is full, again and again",
}


def examine_other(
    program: Program, virtual: Sequence[Mapping[str, str]] = (VIRTUAL_LABELS,)
) -> list[Advice]:
    """What it would do to our pods; ``virtual`` are the labels of the virtual nodes."""
    selector = str(program.policy.get("nodeSelector") or "")
    if not any(takes_node(selector, {**VIRTUAL_LABELS, **labels}) for labels in virtual):
        return [Advice(Level.OK, program.where, "keeps off virtual nodes")]
    found = [one for profile in profiles(program.policy) for one in _of(profile)]
    if not any(one.level is Level.ERROR for one in found):
        found.append(Advice(Level.OK, "policy", "leaves our taints alone"))
    return [
        Advice(one.level, f"{program.where}: {one.subject}", one.what, one.remedy) for one in found
    ]


def _of(profile: Profile) -> Iterator[Advice]:
    # It never touches what opted in.
    if not selects(profile.evictor.get("labelSelector"), {names.BURST_LABEL: "true"}):
        return
    if TAINTS in profile.enabled:
        yield from _of_the_taints(profile)
    for plugin in sorted(profile.enabled & set(_EYES_ON_NODES)):
        if plugin == _AFFINITY and _PREFERRED not in _affinity_types(profile):
            continue
        remedy = f'set the policy\'s nodeSelector "{names.TYPE_LABEL}!={names.TYPE_VALUE}"'
        yield Advice(
            Level.WARNING, f"{profile.path}.plugins", f"{plugin} {_EYES_ON_NODES[plugin]}", remedy
        )


def _affinity_types(profile: Profile) -> Sequence[str]:
    return profile.arguments.get(_AFFINITY, {}).get("nodeAffinityType") or ()


def _of_the_taints(profile: Profile) -> Iterator[Advice]:
    args, path = profile.arguments.get(TAINTS, {}), profile.path_of(TAINTS)
    if not selects(args.get("labelSelector"), {names.BURST_LABEL: "true"}):
        return
    included = [str(taint) for taint in args.get("includedTaints") or ()]
    excluded = [str(taint) for taint in args.get("excludedTaints") or ()]
    for key, values in VALUES.items():
        if _acts_on(key, values, included, excluded):
            level = Level.ERROR if key in _MUST else Level.WARNING
            what = f"evicts pods from a node as soon as it has our taint {key}"
            where, remedy = f"{path}.excludedTaints", f"add {key}"
            if included:
                where, remedy = f"{path}.includedTaints", f"remove {key}"
            yield Advice(level, where, what, remedy)
    if args.get("includePreferNoSchedule") and _acts_on(
        names.PREFER_HOME_TAINT, ("",), included, excluded
    ):
        what = f"evicts every pod outside, for ever: {names.PREFER_HOME_TAINT} stays"
        remedy = f"exclude {names.PREFER_HOME_TAINT}"
        yield Advice(Level.ERROR, f"{path}.includePreferNoSchedule", what, remedy)


def _acts_on(
    key: str, values: Sequence[str], included: Sequence[str], excluded: Sequence[str]
) -> bool:
    """Whether some value of the taint is acted on; a list names keys, or keys with a value."""
    whole = [f"{key}={value}" for value in values]
    if included:
        return key in included or any(taint in included for taint in whole)
    return key not in excluded and any(taint not in excluded for taint in whole)
