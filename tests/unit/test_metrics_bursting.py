"""The collectors of the bursting side belong to the process's one set."""

from prometheus_client import generate_latest

from vk_provider.metrics import Metrics


def test_what_controllers_count_is_exposed_with_all_else() -> None:
    """Under the product's prefix."""
    metrics = Metrics()
    metrics.bursting.webhook_requests.labels("patched").inc()
    metrics.bursting.gpu_health_held_back.set(2)

    text = generate_latest(metrics.registry).decode()
    assert 'vk_provider_webhook_requests_total{outcome="patched"} 1.0' in text
    assert "vk_provider_gpu_health_held_back 2.0" in text
