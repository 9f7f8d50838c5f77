"""The smallest configuration and RunPod answers that the unit tests vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.stamp import Mark, stamp_env

from vk_provider.secrets import SecretSource
from vk_provider.testing.builders import make_stamp


@pytest.fixture
def config() -> RunPodConfig:
    """One GPU type, and everything else by default."""
    return RunPodConfig(SecretSource(env="RUNPOD_API_KEY"), gpu_types=("NVIDIA L40S",))


@pytest.fixture
def mark() -> Mark:
    """The mark of pod ``app-1``."""
    return Mark(make_stamp(), "main")


@pytest.fixture
def backend_pod() -> Callable[..., dict[str, Any]]:
    """A pod as RunPod lists it; fields are laid over it."""

    def make(**fields: Any) -> dict[str, Any]:
        return {
            "id": "abc123",
            "name": "vk-x-app-1-y",
            "status": "RUNNING",
            "image": "registry.example/app:1",
            "env": stamp_env(make_stamp(), "main"),
            "ports": [],
            "gpu": {"id": "NVIDIA L40S", "count": 1},
            "dataCenterId": "EU-RO-1",
            "cost": 0.86,
            "runtime": None,
            "createdAt": "2026-06-01T12:00:00Z",
        } | fields

    return make
