"""What of the bursting side is opt-in: webhook, GPU health, quotas. Built here, run by the term.

Fed by ``app.bursting``; each answers nothing where its block is not enabled.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from vk_provider.bursting.evacuation import EvacuationLimits
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.evacuation import Evacuation, EvacuationRules
from vk_provider.controllers.gpu_health import GpuHealthController
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_client import PrometheusClient
from vk_provider.controllers.quota_bridge import QuotaBridge
from vk_provider.controllers.webhook import OptInWebhook, rules_of
from vk_provider.controllers.webhook_certificates import WebhookCertificates, WebhookPlace
from vk_provider.settings_bursting import BurstingSettings

Loop = tuple[str, Coroutine[Any, Any, None]]


def leading(
    settings: BurstingSettings,
    means: ControllerMeans,
    view: ClusterView,
    prometheus: PrometheusClient | None,
    own_namespace: str,
) -> Iterator[Loop]:
    """What only the leader runs."""
    if settings.webhook.enabled:
        place = _place(settings, own_namespace)
        yield "webhook certificates", WebhookCertificates(means, place).run()
    check = settings.admission_check
    if check.enabled or check.topology or settings.homecoming.surge:
        limits = EvacuationLimits(deadline=check.deadline_seconds, topology=check.topology)
        rules = EvacuationRules(limits, settings.homecoming, answers_checks=check.enabled)
        yield "evacuation", Evacuation(means, view, rules).run()
    if settings.quota_bridge.enabled:
        yield "quota bridge", QuotaBridge(means, view, settings.quota_bridge).run()
    if settings.gpu_health.enabled and prometheus is not None:
        health = GpuHealthController(means, view, settings.gpu_health, prometheus)
        yield "GPU health", health.run()


def everywhere(
    settings: BurstingSettings, means: ControllerMeans, own_namespace: str
) -> Iterator[Loop]:
    """What every replica runs: the API server may ask any of them."""
    if settings.webhook.enabled:
        place = _place(settings, own_namespace)
        rules = rules_of(settings.webhook, settings.selection)
        yield "webhook", OptInWebhook(means, place, rules).run()


def _place(settings: BurstingSettings, own_namespace: str) -> WebhookPlace:
    return WebhookPlace(settings.webhook, settings.webhook.namespace or own_namespace)
