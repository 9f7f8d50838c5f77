"""The Prometheus collectors of the bursting side, and nothing else.

Part of :class:`vk_provider.metrics.Metrics`, as its attribute ``bursting``: one set per process,
whoever leads. Fed by ``controllers``; feeds ``/metrics``.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

_PREFIX = "vk_provider"


class BurstingMetrics:
    """What the controllers count; the attribute says what."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._about_the_webhook()
        self._about_gpu_health()
        self._about_quotas()

    def _about_the_webhook(self) -> None:
        self.webhook_requests = self.counter(
            "webhook_requests",
            "Pods that the webhook was asked about: patched, unchanged, refused, garbled.",
            ("outcome",),
        )

    def _about_gpu_health(self) -> None:
        self.gpu_health_nodes = self.gauge(
            "gpu_health_nodes", "Home nodes by the value of the gpu-health taint.", ("verdict",)
        )
        self.gpu_health_held_back = self.gauge(
            "gpu_health_held_back", "Home nodes that should be tainted and are not: budget."
        )
        self.gpu_health_up = self.gauge(
            "gpu_health_up", "1 if the last look at Prometheus was complete."
        )
        self.gpu_health_changes = self.counter(
            "gpu_health_changes", "Taints that were set (verdict) or removed (none).", ("verdict",)
        )

    def _about_quotas(self) -> None:
        self.quota_gpus = self.gauge(
            "quota_gpus",
            "GPUs of a ClusterQueue's flavor: its nominal quota, and what it should be.",
            ("cluster_queue", "flavor", "kind"),
        )
        self.quota_refused = self.gauge(
            "quota_refused",
            "1 for a quota that the bridge was asked for and leaves alone.",
            ("cluster_queue", "flavor"),
        )
        self.quota_changes = self.counter(
            "quota_changes", "Quotas that were written.", ("cluster_queue", "flavor")
        )

    def counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        """A counter under our prefix."""
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        """A gauge under our prefix."""
        return Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)
