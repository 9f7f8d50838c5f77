"""Settings as values: complete and safe to print."""

from vk_provider.placement.ranking import Policy
from vk_provider.settings import (
    BackendSettings,
    LeaderElectionSettings,
    NodeSettings,
)


def test_a_node_prints_without_its_backends_configuration() -> None:
    """A provider may take what it likes in its block."""
    backend = BackendSettings("a", "acme", {"note": "hidden"}, "spec.backends[0]")
    node = NodeSettings("n", {"cpu": "1"}, (backend,), LeaderElectionSettings("lease"))

    assert "hidden" not in repr(node)
    assert backend.config_path == "spec.backends[0].config"


def test_the_default_policy_is_the_cheapest() -> None:
    """Nobody who rents by the hour expects anything else."""
    node = NodeSettings("n", {}, (), LeaderElectionSettings("lease"))

    assert node.placement.policy is Policy.CHEAPEST
