"""A descheduler's policy as the linter reads it: profiles, plugins, selectors, unknown keys. Pure.

Fed by ``doctor.descheduler`` with a ``DeschedulerPolicy`` of API version ``descheduler/v1alpha2``;
feeds :mod:`.descheduler_homecoming` and :mod:`.descheduler_others`. Keys and behaviour are those of
descheduler 0.36.0.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vk_provider.bursting import names
from vk_provider.pods.types import Json

EVICTOR = "DefaultEvictor"
TAINTS = "RemovePodsViolatingNodeTaints"
FAILED = "RemoveFailedPods"
RETURNING = f"{names.GATE_TAINT}=return"
VIRTUAL_LABELS: Mapping[str, str] = {names.TYPE_LABEL: names.TYPE_VALUE}
"""What every virtual node has, whatever else it has."""

_EXTENSIONS = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_POLICY_KEYS = frozenset(
    [
        "apiVersion",
        "kind",
        "profiles",
        "nodeSelector",
        "maxNoOfPodsToEvictPerNode",
        "maxNoOfPodsToEvictPerNamespace",
        "maxNoOfPodsToEvictTotal",
        "evictionFailureEventNotification",
        "metricsCollector",
        "metricsProviders",
        "gracePeriodSeconds",
    ]
)
_PROFILE_KEYS = frozenset({"name", "pluginConfig", "plugins"})
OLD_SWITCHES = frozenset(
    [
        "evictLocalStoragePods",
        "evictDaemonSetPods",
        "evictSystemCriticalPods",
        "ignorePvcPods",
        "ignorePodsWithoutPDB",
        "evictFailedBarePods",
    ]
)
_ARGUMENTS: Mapping[str, frozenset[str]] = {
    EVICTOR: OLD_SWITCHES
    | frozenset(
        [
            "nodeSelector",
            "labelSelector",
            "namespaceLabelSelector",
            "priorityThreshold",
            "nodeFit",
            "minReplicas",
            "minPodAge",
            "noEvictionPolicy",
            "podProtections",
        ]
    ),
    TAINTS: frozenset(
        [
            "namespaces",
            "labelSelector",
            "includePreferNoSchedule",
            "excludedTaints",
            "includedTaints",
        ]
    ),
    FAILED: frozenset(
        [
            "namespaces",
            "labelSelector",
            "excludeOwnerKinds",
            "minPodLifetimeSeconds",
            "reasons",
            "exitCodes",
            "includingInitContainers",
        ]
    ),
}
_TYPE_META = frozenset({"apiVersion", "kind"})
_REQUIREMENT = re.compile(
    r"\s*(?P<no>!)?\s*(?P<key>[A-Za-z0-9][\w./-]*)\s*"
    r"(?:(?P<op>==|!=|=)\s*(?P<value>[\w.-]*)|(?P<set>notin|in)\s*\((?P<values>[^)]*)\))?\s*"
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile. ``arguments`` and ``paths`` are of the plugins it configures; ``enabled`` are
    those that it runs."""

    path: str
    name: str
    arguments: Mapping[str, Json]
    paths: Mapping[str, str]
    enabled: frozenset[str]

    @property
    def evictor(self) -> Json:
        """The arguments of its evictor; empty where it has none, and then the defaults hold."""
        return self.arguments.get(EVICTOR, {})

    @property
    def brings_home(self) -> bool:
        """Whether it acts on our gate on purpose."""
        taints = self.arguments.get(TAINTS, {}).get("includedTaints") or ()
        return any(str(taint).partition("=")[0] == names.GATE_TAINT for taint in taints)

    def path_of(self, plugin: str) -> str:
        """Where the arguments of a plugin stand, or should."""
        return self.paths.get(plugin, f"{self.path}.pluginConfig")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A key that the descheduler does not know: it ends at its start."""

    path: str
    nearest: str


def profiles(policy: Json) -> list[Profile]:
    """The profiles of a policy; what is not of the right shape is left out."""
    found = []
    for number, profile in enumerate(_mappings(policy.get("profiles"))):
        path = f"profiles[{number}]"
        configured = list(enumerate(_mappings(profile.get("pluginConfig"))))
        arguments = {str(one.get("name")): _mapping(one.get("args")) for _, one in configured}
        paths = {
            str(one.get("name")): f"{path}.pluginConfig[{place}].args" for place, one in configured
        }
        found.append(
            Profile(path, str(profile.get("name", "")), arguments, paths, _enabled(profile))
        )
    return found


def brings_home(policy: Json) -> bool:
    """Whether a policy is one that is meant to bring pods home."""
    return any(profile.brings_home for profile in profiles(policy))


def unknown_keys(policy: Json) -> Iterator[Unknown]:
    """Keys that its strict decoding refuses, in the parts that matter to us."""
    yield from _strange(policy, _POLICY_KEYS, "")
    for number, profile in enumerate(_mappings(policy.get("profiles"))):
        path = f"profiles[{number}]."
        yield from _strange(profile, _PROFILE_KEYS, path)
        yield from _strange(
            _mapping(profile.get("plugins")), frozenset(_EXTENSIONS), f"{path}plugins."
        )
    for each in profiles(policy):
        for plugin, known in _ARGUMENTS.items():
            if plugin in each.arguments:
                where = f"{each.paths[plugin]}."
                yield from _strange(each.arguments[plugin], known | _TYPE_META, where)


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector object (``matchLabels``, ``matchExpressions``) takes these labels."""
    if not selector:
        return True
    wanted = _mapping(selector.get("matchLabels"))
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(
        _holds(each.get("operator", ""), labels.get(each.get("key", "")), each.get("values") or ())
        for each in _mappings(selector.get("matchExpressions"))
    )


def takes_node(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector as text (``a=b,c!=d,e in (f,g),!h``) takes a node with these labels."""
    if not selector.strip():
        return True
    return all(_requirement_holds(part, labels) for part in _parts(selector))


def _requirement_holds(found: re.Match[str], labels: Mapping[str, str]) -> bool:
    value = labels.get(found["key"])
    if found["set"]:
        values = [each.strip() for each in found["values"].split(",")]
        return _holds("In" if found["set"] == "in" else "NotIn", value, values)
    if found["op"]:
        return _holds("NotIn" if found["op"] == "!=" else "In", value, [found["value"]])
    return _holds("DoesNotExist" if found["no"] else "Exists", value, ())


def _parts(selector: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(selector):
        found = _REQUIREMENT.match(selector, place)
        if found is None:
            return
        yield found
        place = found.end() + 1  # the comma


def _holds(operator: str, value: str | None, values: Sequence[Any]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _enabled(profile: Json) -> frozenset[str]:
    plugins = _mapping(profile.get("plugins"))
    sets = [_mapping(plugins.get(extension)) for extension in ("deschedule", "balance")]
    return frozenset(str(name) for one in sets for name in one.get("enabled") or ())


def _strange(found: Json, known: frozenset[str], path: str) -> Iterator[Unknown]:
    for key in found:
        if key not in known:
            nearest = difflib.get_close_matches(str(key), sorted(known), n=1)
            yield Unknown(f"{path}{key}", nearest[0] if nearest else "")


def _mapping(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Json]:
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return [each for each in items if isinstance(each, Mapping)]
