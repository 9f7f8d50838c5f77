"""Reading a descheduler's policy: profiles, selectors and keys that it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.bursting.descheduler_policy import (
    EVICTOR,
    TAINTS,
    VIRTUAL_LABELS,
    brings_home,
    profiles,
    selects,
    takes_node,
    unknown_keys,
)

POLICY: dict[str, Any] = {
    "profiles": [
        {
            "name": "bring-home",
            "pluginConfig": [
                {"name": EVICTOR, "args": {"nodeFit": True}},
                {"name": TAINTS, "args": {"includedTaints": ["vk-provider.dev/gate=return"]}},
            ],
            "plugins": {"deschedule": {"enabled": [TAINTS]}, "balance": {"enabled": ["Other"]}},
        }
    ]
}


def test_a_profile_is_read() -> None:
    """Arguments by plugin, with the path of each for the messages."""
    (profile,) = profiles(POLICY)

    assert profile.name == "bring-home"
    assert profile.evictor == {"nodeFit": True}
    assert profile.path_of(TAINTS) == "profiles[0].pluginConfig[1].args"
    assert profile.path_of("RemoveFailedPods") == "profiles[0].pluginConfig"
    assert profile.enabled == {TAINTS, "Other"}
    assert profile.brings_home
    assert brings_home(POLICY)


@pytest.mark.parametrize("odd", [{}, {"profiles": "x"}, {"profiles": [1, {"pluginConfig": 2}]}])
def test_odd_shapes_are_no_fault(odd: dict[str, Any]) -> None:
    """The descheduler itself will say what is wrong with them."""
    assert not brings_home(odd)


@pytest.mark.parametrize(
    ("policy", "path", "nearest"),
    [
        ({"profile": []}, "profile", "profiles"),
        ({"profiles": [{"plugin": {}}]}, "profiles[0].plugin", "plugins"),
        (
            {"profiles": [{"plugins": {"descedule": {}}}]},
            "profiles[0].plugins.descedule",
            "deschedule",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": EVICTOR, "args": {"nodefit": True}}]}]},
            "profiles[0].pluginConfig[0].args.nodefit",
            "nodeFit",
        ),
        ({"qqqqq": 1}, "qqqqq", ""),
    ],
)
def test_unknown_keys_are_found(policy: dict[str, Any], path: str, nearest: str) -> None:
    """Its decoding is strict: a typo ends it at its start."""
    (unknown,) = unknown_keys(policy)

    assert (unknown.path, unknown.nearest) == (path, nearest)


def test_a_good_policy_has_no_unknown_key() -> None:
    """Plugins that are not ours to know are left alone."""
    strange = {"name": "Other", "args": {"whatever": 1}}

    assert not list(unknown_keys(POLICY))
    assert not list(unknown_keys({"profiles": [{"pluginConfig": [strange]}]}))


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (None, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_label_selectors(selector: dict[str, Any] | None, taken: bool) -> None:
    """As the API server has them."""
    assert selects(selector, {"a": "1"}) is taken


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ("", True),
        ("type!=virtual-kubelet", False),
        ("type=virtual-kubelet", True),
        ("type==virtual-kubelet", True),
        ("pool=home", False),
        ("pool!=home", True),
        ("type in (virtual-kubelet, other)", True),
        ("type notin (virtual-kubelet)", False),
        ("!type", False),
        ("type", True),
        ("type, pool!=x,!other", True),
        ("type=virtual-kubelet,pool=home", False),
        ("type=virtual-kubelet,???", True),
    ],
)
def test_node_selectors_as_text(selector: str, taken: bool) -> None:
    """Every form of a requirement, on a node of which only the type is known."""
    assert takes_node(selector, VIRTUAL_LABELS) is taken
