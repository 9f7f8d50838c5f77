"""What the account of every simulated service has."""

from __future__ import annotations

import pytest

from vk_provider.testing.simulator.account import Account, ContainerBehaviour, Rule
from vk_provider.testing.simulator.ledger import Charge


class Service(Account[ContainerBehaviour, Charge]):
    """A service in which nothing happens."""

    def settle(self, now: float) -> None:
        """Nothing is due."""


@pytest.mark.parametrize(
    ("text", "env", "seconds"),
    [
        ("app:1", {}, None),
        ("batch:1", {}, 7),
        ("batch:1", {"SIMULATE_RUN_SECONDS": "3"}, 3),
        ("app:1", {"SIMULATE_RUN_SECONDS": "soon"}, None),
        ("app:1", {"SIMULATE_RUN_SECONDS": "inf"}, None),
    ],
)
def test_a_behaviour_is_the_rules_the_default_or_the_manifests(
    text: str, env: dict[str, str], seconds: float | None
) -> None:
    """The manifest's word stands above the rule."""
    service = Service(ContainerBehaviour(), rules=[Rule("batch", ContainerBehaviour(7))])

    assert service.behaviour(text, env).run_seconds == seconds
