"""A policy, an object or values of another shape: one sentence for each field."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.doctor.descheduler_shape import shape_problems

TAINTS = "profiles[0].pluginConfig[0].args.includedTaints"


def policy(profile: Any) -> dict[str, Any]:
    """A policy with one profile."""
    return {"kind": "DeschedulerPolicy", "profiles": [profile]}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"kind": "DeschedulerPolicy", "profiles": 5}, "profiles: found 5, allowed: a list"),
        (policy(5), "profiles[0]: found 5, allowed: a mapping"),
        (policy(None), 'profiles[0]: found "", allowed: a mapping'),
        (
            policy({"pluginConfig": [{"args": {"includedTaints": 5}}]}),
            f"{TAINTS}: found 5, allowed: a list",
        ),
        (
            policy({"plugins": {"deschedule": {"enabled": [1]}}}),
            "profiles[0].plugins.deschedule.enabled[0]: found 1, "
            "allowed: a text (put it in quotes)",
        ),
        (
            {"kind": "DeschedulerPolicy", "maxNoOfPodsToEvictTotal": True},
            "maxNoOfPodsToEvictTotal: found true, allowed: a whole number",
        ),
        ({"kind": "ConfigMap", "data": 6}, "data: found 6, allowed: a mapping"),
        (
            {"kind": "ConfigMap", "data": {"policy.yaml": 5}},
            "data[policy.yaml]: found 5, allowed: a text (put it in quotes)",
        ),
        ({"kind": "Deployment", "spec": 5}, "spec: found 5, allowed: a mapping"),
        ({"deschedulerPolicy": 5}, "deschedulerPolicy: found 5, allowed: a mapping"),
        (
            {"kind": "Deployment", "deschedulerPolicy": 5},
            "deschedulerPolicy: found 5, allowed: a mapping",
        ),
        ({"kind": 7, "cmdOptions": 6}, "cmdOptions: found 6, allowed: a mapping"),
    ],
)
def test_another_shape_is_a_problem(found: dict[str, Any], problem: str) -> None:
    """With its path, what was found and what is allowed."""
    assert [str(each) for each in shape_problems(found)] == [problem]


def test_what_is_absent_empty_or_not_read_is_no_problem() -> None:
    """Other plugins have arguments of their own."""
    expressions = [{"key": "a", "operator": "In", "values": [1, "b"]}]
    arguments = {"labelSelector": {"matchExpressions": expressions}, "thresholds": 5}
    profile = {"name": "a", "plugins": None, "pluginConfig": [{"args": arguments}, {}]}

    assert shape_problems(policy(profile)) == []
    assert shape_problems({"kind": "ConfigMap", "data": {"a": "b"}}) == []
