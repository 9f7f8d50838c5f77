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
        self._gauges: list[tuple[Gauge, bool]] = []
        self._about_the_gate()
        self._about_home()
        self._about_the_webhook()
        self._about_evacuation()
        self._about_gpu_health()
        self._about_quotas()

    def _about_the_gate(self) -> None:
        node = ("node",)
        self.leader = self.gauge("bursting_leader", "1 while this process moves the gates.")
        self.gate_state = self.gauge(
            "gate_state",
            "1 for the value that the gate has: open, hold, return.",
            ("node", "state"),
        )
        self.gate_transitions = self.counter(
            "gate_transitions", "Moves of the gate.", ("node", "from", "to", "reason")
        )
        self.gate_frozen = self.gauge(
            "gate_frozen", "1 while the gate would move home and has moved too often.", node
        )
        self.gate_paused = self.gauge(
            "gate_paused", "1 while a return waits for those on their way.", node
        )
        self.gate_signals_doubted = self.gauge(
            "gate_signals_doubted", "1 while a signal is stale, empty, shrunken or missing."
        )
        self.burst_pods = self.gauge("burst_pods", "Opted-in pods on the virtual node.", node)
        self.pods_waiting_for_gate = self.gauge(
            "pods_waiting_for_gate", "Unschedulable pods that the virtual node could take.", node
        )
        self.homecomings_in_flight = self.gauge(
            "homecomings_in_flight", "Pods that were evicted and are not Ready at home yet.", node
        )
        self.homecomings = self.counter(
            "homecomings",
            "Replacements: home, late (not Ready in time), outside again.",
            ("node", "outcome"),
        )

    def _about_home(self) -> None:
        self.home_free_gpus = self.gauge("home_free_gpus", "Free GPUs on usable home nodes.")
        self.home_usable_nodes = self.gauge(
            "home_usable_nodes", "Home nodes that inference could use."
        )
        self.home_spare_slots = self.gauge(
            "home_spare_slots",
            "Pods of so many GPUs that fit at home, less what training waits for.",
            ("gpus",),
        )
        self.training_waiting_gpus = self.gauge(
            "training_waiting_gpus", "GPUs that training waits for."
        )

    def _about_evacuation(self) -> None:
        self.evacuating_pods = self.gauge(
            "evacuating_pods", "Pods that are asked to go, for training or to come home."
        )
        self.held_workloads = self.gauge(
            "evacuation_workloads_held", "Jobs that wait until inference is out of the way."
        )
        self.surge_pods = self.gauge(
            "surge_pods", "Replicas beyond what was asked for, while pods are moved."
        )
        self.admission_answers = self.counter(
            "admission_check_answers", "What Kueue was told of its jobs.", ("state",)
        )

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
            "gpu_health_up", "1 if the last look at it was complete.", ("source",)
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
        made = Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)
        self._gauges.append((made, bool(labels)))
        return made

    def forget(self) -> None:
        """This process leads no longer: what it saw last is nobody's present. Counters stay."""
        for gauge, is_labelled in self._gauges:
            if is_labelled:
                gauge.clear()
            else:
                gauge.set(0)
