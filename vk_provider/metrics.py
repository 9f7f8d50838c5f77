"""The Prometheus collectors and their names, and nothing else.

One :class:`Metrics` per process (or per test), with a registry of its own; the label ``node``
tells the nodes of a process apart. Fed by ``kube``, ``loops`` and ``server``; feeds ``/metrics``.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from vk_provider.metrics_bursting import BurstingMetrics

_PREFIX = "vk_provider"
_BACKEND = ("node", "backend")
_LIST_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_START_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Metrics:
    """Every collector of the product; the attribute says what is counted."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._about_backends()
        self._about_pods()
        self._about_placement()
        self._about_the_api_server()
        self.bursting = BurstingMetrics(self.registry)
        """What the controllers of the bursting side count."""

    def _about_backends(self) -> None:
        self.backend_requests = self._counter(
            "backend_requests", "Calls to a backend.", (*_BACKEND, "call", "outcome")
        )
        self.backend_list_seconds = self._histogram(
            "backend_list_seconds", "Duration of a complete list.", _BACKEND, _LIST_SECONDS
        )
        self.backend_list_failures = self._counter(
            "backend_list_failures", "Lists that failed or were partial.", (*_BACKEND, "reason")
        )
        self.garbled_observations = self._counter(
            "garbled_observations", "Answers that could not be understood.", _BACKEND
        )
        self.instances = self._gauge(
            "instances", "Instances in the last complete list.", (*_BACKEND, "phase")
        )
        self.instances_elsewhere = self._gauge(
            "instances_elsewhere",
            "Instances of this cluster that carry another node's name; never touched from here.",
            (*_BACKEND, "owner"),
        )
        self.price_usd_per_hour = self._gauge(
            "price_usd_per_hour", "What the listed instances cost in USD per hour.", _BACKEND
        )
        self.unconfirmed_deletions = self._gauge(
            "unconfirmed_deletions", "Instances ordered to end that still are listed.", _BACKEND
        )
        self.backend_up = self._gauge(
            "backend_up", "1 if the last list of the backend succeeded.", _BACKEND
        )
        self.orphans_deleted = self._counter(
            "orphans_deleted", "Instances of ours without a pod that were deleted.", _BACKEND
        )

    def _about_pods(self) -> None:
        self.pods = self._gauge("pods", "Pods bound to the node.", ("node", "phase"))
        self.pod_start_seconds = self._histogram(
            "pod_start_seconds",
            "From bound to the first running container.",
            ("node",),
            _START_SECONDS,
        )
        self.door_state = self._gauge(
            "door_state", "1 for the state that the door is in.", ("node", "state")
        )
        self.storm_guard_held_pods = self._gauge(
            "storm_guard_held_pods", "Pods whose first verdict waits for a token.", ("node",)
        )
        self.failed_verdicts = self._counter(
            "failed_verdicts", "Pods that were marked Failed.", ("node", "reason")
        )
        self.invalid_transitions = self._counter(
            "invalid_transitions", "Records in a state without a name: our bug.", ("node",)
        )
        self.internal_errors = self._counter(
            "internal_errors",
            "Bugs, ours or a provider's: each parks one pod for a while.",
            ("node", "action"),
        )

    def _about_placement(self) -> None:
        budget = ("node", "namespace", "period")
        self.spend_usd = self._counter(
            "spend_usd",
            "What instances have cost, in USD, since this process leads.",
            (*_BACKEND, "namespace"),
        )
        self.budget_usd = self._gauge(
            "budget_usd", "Caps in USD; an empty namespace is the node's own.", budget
        )
        self.budget_spent_usd = self._gauge(
            "budget_spent_usd",
            "What is spent of a cap in this day or month; of the hour's, what runs now costs.",
            budget,
        )
        self.budget_remaining_usd = self._gauge(
            "budget_remaining_usd", "What is left of a cap.", budget
        )
        self.start_seen_seconds = self._gauge(
            "start_seen_seconds",
            "From the create call to the first running container, of the last 64 starts.",
            (*_BACKEND, "gpu_type", "quantile"),
        )

    def _about_the_api_server(self) -> None:
        self.api_requests = self._counter(
            "api_requests", "Requests to the API server.", ("verb", "resource", "code")
        )
        self.watch_restarts = self._counter(
            "watch_restarts", "Watches that were resumed or listed again.", ("resource", "reason")
        )
        self.status_patches = self._counter(
            "status_patches", "Pod status PATCHes.", ("node", "outcome")
        )
        self.events_dropped = self._counter(
            "events_dropped", "Events that were not written.", ("node", "reason")
        )
        self.kubelet_requests = self._counter(
            "kubelet_requests", "Requests to the kubelet API.", ("node", "route", "code")
        )
        self.leader = self._gauge("leader", "1 while this process leads.", ("node",))

    def observe_process(self) -> None:
        """Add CPU, memory and garbage collection of the process; once per registry."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(f"{_PREFIX}_{name}", text, labels, registry=self.registry, buckets=buckets)
