"""Counts calls to the API server and resumed watches. Fed by ``kube``; feeds ``metrics``."""

from __future__ import annotations

from vk_provider.metrics import Metrics


class ApiObserver:
    """Implements ``kube.observer.Observer``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def request(self, verb: str, resource: str, code: int) -> None:
        """One more answer, or none (code 0)."""
        self._metrics.api_requests.labels(verb, resource, str(code)).inc()

    def watch_restarted(self, resource: str, reason: str) -> None:
        """One more watch that ended."""
        self._metrics.watch_restarts.labels(resource, reason).inc()
