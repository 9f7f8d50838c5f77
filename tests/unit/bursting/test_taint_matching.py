"""Tolerations match taints by the API server's rules."""

import pytest

from vk_provider.bursting.taint_matching import tolerates

TAINT = {"key": "vk-provider.dev/gate", "value": "hold", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "vk-provider.dev/gate", "operator": "Exists"}, True),
        ({"key": "vk-provider.dev/gate", "value": "hold"}, True),
        ({"key": "vk-provider.dev/gate", "operator": "Equal", "value": "return"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({"key": "vk-provider.dev/gate", "operator": "Gt", "value": "5"}, False),
        ({"value": "hold"}, False),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect(
    toleration: dict[str, str], matches: bool
) -> None:
    """What is left out of it matches everything, but only with the operator that says so."""
    assert tolerates(toleration, TAINT) is matches
