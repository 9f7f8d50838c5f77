"""The shipped configurations: each is one that `validate` accepts."""

from pathlib import Path

import pytest

from vk_provider.settings_file import load_settings

DEPLOY = Path(__file__).parents[3] / "deploy"
CONFIGURATIONS = [DEPLOY / "kustomize" / "config.yaml", *sorted((DEPLOY / "samples").iterdir())]


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.name)
def test_a_shipped_configuration_is_valid(file: Path) -> None:
    """A person's first step must not be a repair."""
    assert load_settings([str(file)]).nodes


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.name)
def test_a_shipped_configuration_caps_its_cost(file: Path) -> None:
    """Whoever copies it pays for it, unless its backends have no prices."""
    for node in load_settings([str(file)]).nodes:
        is_free = all(backend.provider in ("fake", "kubernetes") for backend in node.backends)
        assert is_free or node.placement.budget.node.usd_per_hour is not None


def test_there_is_a_sample_for_every_provider_of_ours() -> None:
    """Named after it."""
    found = {file.stem for file in (DEPLOY / "samples").iterdir()}
    assert found - {"bursting"} == {"fake", "kubernetes", "modal", "runpod"}
