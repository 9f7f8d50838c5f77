"""Taints of others are left alone; ours come and go by their keys."""

from typing import Any

from vk_provider.node.taints import (
    edit,
    gate,
    gate_value,
    taints_patch,
    unavailable,
    unavailable_value,
)

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
PERMANENT = {"key": "virtual-kubelet.io/provider", "value": "vk-provider", "effect": "NoSchedule"}


def test_a_closing_door_adds_its_taint_after_those_of_others() -> None:
    """In the words of the documentation."""
    assert edit([CORDON], [unavailable("capacity")]) == [
        CORDON,
        {"key": "vk-provider.dev/unavailable", "value": "capacity", "effect": "NoSchedule"},
    ]


def test_an_opening_door_removes_its_own_alone() -> None:
    """Permanent taints and a cordon stay in their order."""
    current = [PERMANENT, unavailable("denied"), CORDON]

    assert edit(current, []) == [PERMANENT, CORDON]
    assert current == [PERMANENT, unavailable("denied"), CORDON]


def test_a_change_of_reason_replaces_the_value() -> None:
    """One taint per key and effect."""
    assert edit([unavailable("outage"), CORDON], [unavailable("budget")]) == [
        CORDON,
        unavailable("budget"),
    ]


def test_door_and_gate_do_not_disturb_each_other() -> None:
    """Each editor may own its key alone."""
    current = [gate("hold"), unavailable("capacity")]

    assert edit(current, [], frozenset({"vk-provider.dev/unavailable"})) == [gate("hold")]


def test_nothing_to_do_is_none() -> None:
    """Also with a time that the API server added, and without any taints."""
    stamped = unavailable("capacity") | {"timeAdded": "2024-05-01T00:00:00Z"}

    assert edit([CORDON, stamped], [unavailable("capacity")]) is None
    assert edit(None, []) is None


def test_the_patch_fails_if_the_node_changed_meanwhile() -> None:
    """It carries the version and the UID that were read."""
    node: dict[str, Any] = {"metadata": {"resourceVersion": "9", "uid": "u1"}}

    assert taints_patch(node, [CORDON]) == {
        "metadata": {"resourceVersion": "9", "uid": "u1"},
        "spec": {"taints": [CORDON]},
    }
    assert taints_patch({}, [])["metadata"] == {"resourceVersion": None, "uid": None}


def test_why_the_taint_says_that_the_door_is_closed() -> None:
    """Of our taint alone."""
    other = {"key": "example.com/x", "value": "y", "effect": "NoSchedule"}

    assert unavailable_value({"spec": {"taints": [other, unavailable("denied")]}}) == "denied"
    assert unavailable_value({"spec": {"taints": [other]}}) is None
    assert unavailable_value({}) is None


def test_where_the_gate_stands() -> None:
    """None is open."""
    assert gate_value({"spec": {"taints": [unavailable("denied"), gate("return")]}}) == "return"
    assert gate_value({}) is None
