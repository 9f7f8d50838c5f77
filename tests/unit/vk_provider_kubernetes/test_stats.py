"""Usage as the other cluster's metrics API tells it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.stats import read_stats

from vk_provider.testing.builders import make_stamp


def metrics(at: str = "2026-11-01T12:00:00Z", **usage: Any) -> dict[str, Any]:
    """One PodMetrics."""
    return {
        "metadata": {"labels": marks.labels(make_stamp())},
        "timestamp": at,
        "containers": [{"name": "main", "usage": usage}],
    }


def test_what_is_measured_is_told() -> None:
    """In the seam's units."""
    (found,) = read_stats([metrics(cpu="1500000n", memory="2Mi")])

    (container,) = found.containers
    assert found.pod_uid == make_stamp().pod_uid
    assert container.at == datetime(2026, 11, 1, 12, tzinfo=UTC)
    assert container.cpu_nanocores == 1_500_000
    assert container.memory_working_set_bytes == 2 << 20
    assert container.cpu_nanoseconds is None


def test_what_is_not_measured_is_absent() -> None:
    """Nor is anything made of what can't be read."""
    (found,) = read_stats([metrics(cpu="fast")])

    assert found.containers[0].cpu_nanocores is None
    assert found.containers[0].memory_working_set_bytes is None


@pytest.mark.parametrize("odd", [metrics("noon"), metrics("2026-11-01T12:00:00"), {"metadata": {}}])
def test_an_entry_without_an_owner_or_a_time_is_left_out(odd: dict[str, Any]) -> None:
    """It can't be told whose or when it was."""
    assert list(read_stats([odd])) == []
