"""Other deschedulers of the cluster must leave our taints, and so our pods, alone."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.bursting.checkup import Level
from vk_provider.bursting.descheduler_homecoming import Program
from vk_provider.bursting.descheduler_others import examine_other

TAINTS = "RemovePodsViolatingNodeTaints"
OURS = ["vk-provider.dev/gate", "vk-provider.dev/unavailable", "vk-provider.dev/gpu-health"]
BURST = {"matchExpressions": [{"key": "vk-provider.dev/burst", "operator": "DoesNotExist"}]}


def stock(
    arguments: dict[str, Any] | None = None,
    evictor: dict[str, Any] | None = None,
    plugins: tuple[str, ...] = (TAINTS,),
    **top: Any,
) -> Program:
    """A policy as its chart ships it, with changes."""
    configured = [
        {"name": "DefaultEvictor", "args": evictor or {}},
        {"name": TAINTS, "args": arguments or {}},
    ]
    profile = {"pluginConfig": configured, "plugins": {"deschedule": {"enabled": list(plugins)}}}
    return Program("theirs", {**top, "profiles": [profile]})


def levels(program: Program, **more: Any) -> set[Level]:
    """How bad what is said of it is."""
    return {one.level for one in examine_other(program, **more)}


def test_a_stock_policy_closes_the_door_on_pods() -> None:
    """It acts on every NoSchedule taint: on the gate and on a closed door."""
    found = examine_other(stock())

    errors = [one for one in found if one.level is Level.ERROR]
    assert [one.remedy for one in errors] == [f"add {key}" for key in OURS[:2]]
    assert [one.remedy for one in found if one.level is Level.WARNING] == [f"add {OURS[2]}"]


@pytest.mark.parametrize(
    "program",
    [
        stock({"excludedTaints": OURS}),
        stock({"includedTaints": ["somebody.example/else"]}),
        stock(
            {
                "includePreferNoSchedule": True,
                "excludedTaints": [*OURS, "vk-provider.dev/prefer-home"],
            }
        ),
        stock({"labelSelector": BURST}),
        stock(evictor={"labelSelector": BURST}),
        stock(plugins=("RemoveDuplicatesOfOthers",)),
        stock(nodeSelector="type!=virtual-kubelet"),
        stock(
            {
                "excludedTaints": [
                    *OURS[2:],
                    *(f"{OURS[0]}={value}" for value in ("hold", "return")),
                    *(f"{OURS[1]}={value}" for value in ("capacity", "denied", "budget", "outage")),
                ]
            }
        ),
    ],
    ids=[
        "excluded",
        "others included",
        "soft taint excluded",
        "labels of the plugin",
        "labels of the evictor",
        "no taints",
        "home nodes alone",
        "every value excluded",
    ],
)
def test_what_leaves_us_alone_passes(program: Program) -> None:
    """Any of the ways to do it is good enough."""
    assert levels(program) == {Level.OK}


@pytest.mark.parametrize(
    "arguments",
    [
        {"excludedTaints": OURS[:1]},
        {"excludedTaints": [f"{OURS[0]}=hold", OURS[1]]},
        {"includedTaints": OURS[:1]},
        {"includedTaints": [f"{OURS[1]}=outage"]},
        {"excludedTaints": OURS, "includePreferNoSchedule": True},
    ],
    ids=["door", "one value", "gate included", "a value included", "soft taint"],
)
def test_half_measures_fail(arguments: dict[str, Any]) -> None:
    """One taint, or one value, is enough to move pods."""
    assert Level.ERROR in levels(stock(arguments))


@pytest.mark.parametrize("plugin", ["LowNodeUtilization", "RemoveDuplicates"])
def test_plugins_that_see_our_node_are_told(plugin: str) -> None:
    """They may be wanted; they are not safe."""
    assert levels(stock(plugins=(plugin,))) == {Level.WARNING, Level.OK}


def test_node_affinity_matters_where_preferences_count() -> None:
    """Required terms hold outside, too; preferred ones are violated for ever."""
    plugin = "RemovePodsViolatingNodeAffinity"
    program = stock(plugins=(plugin,))
    assert levels(program) == {Level.OK}

    kinds = ["preferredDuringSchedulingIgnoredDuringExecution"]
    configured = program.policy["profiles"][0]["pluginConfig"]
    configured.append({"name": plugin, "args": {"nodeAffinityType": kinds}})
    assert levels(program) == {Level.WARNING, Level.OK}


def test_labels_of_real_virtual_nodes_count() -> None:
    """A selector that takes one of them takes its pods."""
    program = stock(nodeSelector="pool=gpu")

    assert levels(program) == {Level.OK}
    assert Level.ERROR in levels(program, virtual=[{"pool": "gpu"}])
