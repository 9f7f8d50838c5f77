"""One ``Bursting`` document becomes :class:`BurstingSettings`: the blocks, joined. Pure.

Fed by :mod:`vk_provider.settings_file`; feeds ``app.bursting``. Each block has a module of its own
with its settings and one parse function, and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.bursting.picture import Selection
from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings import LeaderElectionSettings
from vk_provider.settings_blocks import parse_leader_election
from vk_provider.settings_bursting_admission_check import (
    AdmissionCheckSettings,
    parse_admission_check,
)
from vk_provider.settings_bursting_gate import GateSettings, parse_gate, parse_homecoming
from vk_provider.settings_bursting_gpu_health import GpuHealthSettings, parse_gpu_health
from vk_provider.settings_bursting_prometheus import PrometheusSettings, parse_prometheus
from vk_provider.settings_bursting_quota_bridge import QuotaBridgeSettings, parse_quota_bridge
from vk_provider.settings_bursting_selection import parse_selection
from vk_provider.settings_bursting_webhook import WebhookSettings, parse_webhook
from vk_provider.syntax import DNS_SUBDOMAIN

BURSTING_KIND = "Bursting"
LEASE_NAME = "vk-provider-bursting"


@dataclass(frozen=True, slots=True)
class BurstingSettings:
    """The bursting side of one process. ``source`` is the file the document came from."""

    name: str = "default"
    leader_election: LeaderElectionSettings = field(
        default_factory=lambda: LeaderElectionSettings(LEASE_NAME)
    )
    selection: Selection = field(default_factory=Selection)
    gate: GateSettings = field(default_factory=GateSettings)
    homecoming: HomecomingLimits = field(default_factory=HomecomingLimits)
    prometheus: PrometheusSettings | None = None
    admission_check: AdmissionCheckSettings = field(default_factory=AdmissionCheckSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)
    quota_bridge: QuotaBridgeSettings = field(default_factory=QuotaBridgeSettings)
    gpu_health: GpuHealthSettings = field(default_factory=GpuHealthSettings)
    source: str = ""


def parse_bursting_document(
    document: Mapping[str, Any], problems: list[FieldProblem], source: str = ""
) -> BurstingSettings:
    """The settings of one document whose apiVersion and kind are known to be ours."""
    top = Fields(document, "", problems)
    for key in ("apiVersion", "kind"):
        top.take(key)
    metadata = top.child("metadata")
    name = metadata.text("name", "default", pattern=DNS_SUBDOMAIN)
    metadata.done()
    spec = top.child("spec")
    top.done()
    settings = BurstingSettings(
        name=name,
        leader_election=parse_leader_election(spec.child("leaderElection"), "bursting"),
        selection=parse_selection(spec),
        gate=parse_gate(spec.child("gate")),
        homecoming=parse_homecoming(spec.child("homecoming")),
        prometheus=parse_prometheus(spec.child("prometheus")),
        admission_check=parse_admission_check(spec.child("admissionCheck")),
        webhook=parse_webhook(spec.child("webhook")),
        quota_bridge=parse_quota_bridge(spec.child("quotaBridge")),
        gpu_health=parse_gpu_health(spec.child("gpuHealth")),
        source=source,
    )
    _demand_frequent_answers(spec, settings)
    if settings.gpu_health.enabled and settings.prometheus is None:
        spec.refuse("gpuHealth", "needs to know where Prometheus answers: give prometheus.url")
    spec.done()
    return settings


def _demand_frequent_answers(spec: Fields, settings: BurstingSettings) -> None:
    """An answer must not be stale before the next one can come."""
    prometheus, stale = settings.prometheus, settings.gate.signals.stale_after
    if prometheus is not None and prometheus.every * 2 > stale:
        allowed = f"at most half of gate.signals.staleAfterSeconds ({stale:g})"
        Fields({}, spec.at("prometheus"), spec.problems).wrong(
            "everySeconds", prometheus.every, allowed
        )
