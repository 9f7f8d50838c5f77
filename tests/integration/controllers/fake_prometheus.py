"""What the second signal is read from, in tests: answers by query, or a fault."""

from __future__ import annotations

from collections import Counter

from vk_provider.controllers.prometheus_signal import PrometheusReader
from vk_provider.faults import UnavailableError
from vk_provider.loops.clock import Clock
from vk_provider.settings_bursting_prometheus import PrometheusQueries

QUERIES = PrometheusQueries("nodes", "slots {gpus} {resource}", "waiting", "age")


class FakePrometheus:
    """Implements ``Numbers``: what a Prometheus would answer."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.fault: UnavailableError | None = None
        self.heal()

    def heal(self) -> None:
        """Everything is well: one home node, four slots."""
        self.fault = None
        self.answers: dict[str, float | None] = {
            "nodes": 1, "slots 1 nvidia_com_gpu": 4, "waiting": 0, "age": 3,
        }  # fmt: skip

    def reader(self, clock: Clock) -> PrometheusReader:
        """The reader over this."""
        return PrometheusReader(self, QUERIES, "nvidia.com/gpu", lambda: (1,), clock)

    async def number(self, promql: str) -> float | None:
        """The answer to one query."""
        self.asked[promql] += 1
        if self.fault is not None:
            raise self.fault
        return self.answers[promql]
