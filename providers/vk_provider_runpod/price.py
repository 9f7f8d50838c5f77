"""What an instance may cost, and whether it is billed at more.

A price of the catalogue is a list price, and nothing holds it until the create call: only the
created pod says what it costs. Pure. Fed by ``creating`` with the answer of a create call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider.pods.names import MAX_PRICE
from vk_provider.pods.types import ResolvedPod
from vk_provider_runpod.config import RunPodConfig

ROUNDING_USD = 0.0001
"""RunPod tells prices with so many digits."""


def overcharge(created: Mapping[str, Any], pod: ResolvedPod, config: RunPodConfig) -> str | None:
    """In words, by how much a created pod is too dear; None where it is not, or does not say."""
    limits = {
        f"maxUsdPerHour of the configuration ({config.max_usd_per_hour})": config.max_usd_per_hour,
        f"{MAX_PRICE} of the pod ({pod.hints.max_usd_per_hour})": pod.hints.max_usd_per_hour,
    }
    cost = created.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return None
    for name, most in limits.items():
        if most is not None and cost > most + ROUNDING_USD:
            return f"RunPod bills {cost:.4g} USD/h for it, which is more than {name}"
    return None
