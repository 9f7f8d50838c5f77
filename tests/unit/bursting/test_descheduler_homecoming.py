"""Every trap of a homecoming policy: the shipped one passes, and each change of it is noticed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.descheduler_homecoming import Expected, Program, examine, minutes
from vk_provider.bursting.limits import HomecomingLimits

SHIPPED = Path(__file__).parents[3] / "deploy" / "descheduler" / "policy.yaml"
_SHIPPED = yaml.safe_load(SHIPPED.read_text())
Policy = dict[str, Any]
Change = Callable[[Policy], object]


def policy(change: Change = lambda _: None) -> Policy:
    """The shipped policy with one change."""
    made: Policy = copy.deepcopy(_SHIPPED)
    change(made)
    return made


def args(made: Policy, plugin: int = 0, profile: int = 0) -> dict[str, Any]:
    """The arguments of the evictor, or of another plugin."""
    found: dict[str, Any] = made["profiles"][profile]["pluginConfig"][plugin]["args"]
    return found


def plugins(made: Policy, profile: int = 0) -> list[str]:
    """What a profile runs."""
    enabled: list[str] = made["profiles"][profile]["plugins"]["deschedule"]["enabled"]
    return enabled


def said(change: Change, expected: Expected | None = None) -> list[Advice]:
    """What is said of the changed policy."""
    return examine(Program("here", policy(change)), expected)


def test_the_shipped_policy_is_sound() -> None:
    """Nothing to say but that."""
    (only,) = examine(Program("here", policy()), Expected(HomecomingLimits()))

    assert only.level is Level.OK


ERRORS: dict[str, tuple[Change, str]] = {
    "no total limit": (lambda p: p.pop("maxNoOfPodsToEvictTotal"), "maxNoOfPodsToEvictTotal"),
    "a limit of nothing": (
        lambda p: p.update(maxNoOfPodsToEvictPerNode=0),
        "maxNoOfPodsToEvictPerNode",
    ),
    "nodeSelector at the top": (
        lambda p: p.update(nodeSelector="type=virtual-kubelet"),
        "here: nodeSelector",
    ),
    "grace period of its own": (lambda p: p.update(gracePeriodSeconds=0), "gracePeriodSeconds"),
    "unknown key": (lambda p: args(p).update(nodefit=True), "args.nodefit"),
    "no evictor": (lambda p: p["profiles"][0]["pluginConfig"].pop(0), "profiles[0].pluginConfig"),
    "no nodeFit": (lambda p: args(p).pop("nodeFit"), "nodeFit"),
    "no targets": (lambda p: args(p).pop("nodeSelector"), "args.nodeSelector"),
    "virtual targets": (lambda p: args(p).update(nodeSelector="type"), "args.nodeSelector"),
    "two thresholds": (
        lambda p: args(p)["priorityThreshold"].update(value=1),
        "priorityThreshold",
    ),
    "no duration": (lambda p: args(p).update(minPodAge="soon"), "minPodAge"),
    "emptyDir protected": (
        lambda p: args(p)["podProtections"].pop("defaultDisabled"),
        "podProtections.defaultDisabled",
    ),
    "no protections at all": (
        lambda p: args(p).pop("podProtections"),
        "podProtections.defaultDisabled",
    ),
    "PodsWithoutPDB": (
        lambda p: args(p)["podProtections"]["extraEnabled"].append("PodsWithoutPDB"),
        "podProtections.extraEnabled",
    ),
    "its old name": (lambda p: args(p).update(ignorePodsWithoutPDB=True), "extraEnabled"),
    "old and new": (lambda p: args(p).update(evictLocalStoragePods=True), "evictLocalStoragePods"),
    "a protection twice": (
        lambda p: args(p)["podProtections"]["extraEnabled"].append("PodsWithPVC"),
        "extraEnabled",
    ),
    "the whole key": (
        lambda p: args(p, 1).update(includedTaints=["vk-provider.dev/gate"]),
        "includedTaints",
    ),
    "another taint": (lambda p: args(p, 1)["includedTaints"].append("x"), "includedTaints"),
    "excluded too": (lambda p: args(p, 1).update(excludedTaints=["x"]), "excludedTaints"),
    "the soft taint": (
        lambda p: args(p, 1).update(includePreferNoSchedule=True),
        "includePreferNoSchedule",
    ),
    "never runs": (lambda p: plugins(p).clear(), "plugins.deschedule.enabled"),
    "a plugin beside it": (lambda p: plugins(p).append("LowNodeUtilization"), "plugins"),
    "taints in the other profile": (
        lambda p: plugins(p, 1).append("RemovePodsViolatingNodeTaints"),
        "profiles[1].pluginConfig.includedTaints",
    ),
    "every reason": (lambda p: args(p, 1, 1).pop("reasons"), "reasons"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_traps_are_errors(name: str) -> None:
    """Each makes that nobody comes home, or that more happens than that."""
    change, path = ERRORS[name]

    found = [one for one in said(change) if one.level is Level.ERROR]

    assert [one for one in found if one.subject.endswith(path)], found
    assert all(one.remedy for one in found)


MILDER: dict[str, tuple[Change, str, Level]] = {
    "silent": (
        lambda p: p.pop("evictionFailureEventNotification"),
        "evictionFailureEventNotification",
        Level.NOTE,
    ),
    "everybody": (lambda p: args(p).pop("labelSelector"), "labelSelector", Level.WARNING),
    "no threshold": (lambda p: args(p).pop("priorityThreshold"), "priorityThreshold", Level.NOTE),
    "single replicas": (lambda p: args(p).pop("minReplicas"), "minReplicas", Level.WARNING),
    "many replicas": (lambda p: args(p).update(minReplicas=99), "minReplicas", Level.WARNING),
    "an hour": (lambda p: args(p).update(minPodAge="1h"), "minPodAge", Level.WARNING),
    "no age": (lambda p: args(p).pop("minPodAge"), "minPodAge", Level.WARNING),
    "preferred": (
        lambda p: args(p).pop("noEvictionPolicy"),
        "noEvictionPolicy",
        Level.NOTE,
    ),
    "old switch alone": (
        lambda p: args(p).update(podProtections={}, evictLocalStoragePods=True),
        "evictLocalStoragePods",
        Level.NOTE,
    ),
    "foreign reasons": (
        lambda p: args(p, 1, 1)["reasons"].append("Evicted"),
        "reasons",
        Level.WARNING,
    ),
    "too soon": (
        lambda p: args(p, 1, 1).update(minPodLifetimeSeconds=10),
        "minPodLifetimeSeconds",
        Level.WARNING,
    ),
    "soonest": (
        lambda p: args(p, 1, 1).update(minPodLifetimeSeconds=0),
        "minPodLifetimeSeconds",
        Level.WARNING,
    ),
    "failed ones need room": (
        lambda p: args(p, 0, 1).update(nodeFit=True),
        "nodeFit",
        Level.WARNING,
    ),
}


@pytest.mark.parametrize("name", MILDER)
def test_what_is_only_unwise_is_no_error(name: str) -> None:
    """It works, differently from what most people want."""
    change, path, level = MILDER[name]

    (only,) = said(change)

    assert only.subject.endswith(path)
    assert only.level is level
    assert only.remedy


def test_the_pace_must_be_the_gates() -> None:
    """The gate reckons with evictionsPerCycle to keep maxInFlight."""
    limits = HomecomingLimits(max_in_flight=4, evictions_per_cycle=1)

    (only,) = said(lambda _: None, Expected(limits))

    assert only.level is Level.ERROR
    assert "evictionsPerCycle (1)" in only.what


def test_labels_of_real_virtual_nodes_count() -> None:
    """A positive label keeps them out only if they do not have it."""
    change: Change = lambda p: args(p).update(nodeSelector="pool=gpu")  # noqa: E731

    assert said(change)[0].level is Level.OK
    assert said(change, Expected(virtual=[{"pool": "gpu"}]))[0].level is Level.ERROR


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ({}, "--descheduling-interval"),
        ({"descheduling-interval": "0s"}, "--descheduling-interval"),
        ({"descheduling-interval": "1m", "dry-run": "true"}, "--dry-run"),
    ],
)
def test_flags_of_the_program(flags: dict[str, str], path: str) -> None:
    """Without an interval it looks once; a dry run moves nobody."""
    (only,) = examine(Program("here", policy(), flags))

    assert only.subject == f"here: {path}"
    assert only.level is Level.ERROR


def test_good_flags_are_sound() -> None:
    """An interval is enough; a CronJob's program needs none."""
    flags = {"descheduling-interval": "1m", "dry-run": "false"}

    assert examine(Program("here", policy(), flags))[0].level is Level.OK
    assert examine(Program("here", policy(), {}, is_repeated=True))[0].level is Level.OK


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0.0), ("10m", 10.0), ("1h30m", 90.0), ("30s", 0.5), ("600ms", 0.01), ("x", None)],
)
def test_durations(text: str, expected: float | None) -> None:
    """Go's way of writing them."""
    assert minutes(text) == pytest.approx(expected)


def test_a_duration_with_a_rest_is_none() -> None:
    """Go refuses it as a whole."""
    assert minutes("10m later") is None
