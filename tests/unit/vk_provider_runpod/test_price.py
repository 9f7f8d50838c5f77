"""Whether a created pod is billed at more than was allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.price import overcharge

from vk_provider.pods.types import PlacementHints
from vk_provider.testing.builders import make_resolved_pod


@pytest.mark.parametrize(
    ("cost", "configured", "wished", "names"),
    [
        (0.86, None, None, None),
        (0.86, 0.86, 0.86, None),
        (0.86003, 0.86, None, None),
        (0.87, 0.86, None, "maxUsdPerHour of the configuration (0.86)"),
        (0.87, 1.0, 0.5, "vk-provider.dev/max-price of the pod (0.5)"),
        (None, 0.5, 0.5, None),
        (True, 0.5, 0.5, None),
    ],
)
def test_the_lower_limit_counts(
    config: RunPodConfig,
    cost: Any,
    configured: float | None,
    wished: float | None,
    names: str | None,
) -> None:
    """The operator's or the pod's, and it is named; a price that is not told is not judged."""
    pod = replace(make_resolved_pod(), hints=PlacementHints(max_usd_per_hour=wished))
    limited = replace(config, max_usd_per_hour=configured)

    words = overcharge({"cost": cost}, pod, limited)

    assert words == (names and f"RunPod bills 0.87 USD/h for it, which is more than {names}")
