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


def test_who_leads_no_longer_shows_no_numbers_of_then() -> None:
    """An alert on them would outlive its cause; what was counted stays."""
    bursting = Metrics().bursting
    bursting.leader.set(1)
    bursting.gate_frozen.labels("burst").set(1)
    bursting.webhook_requests.labels("refused").inc()
    bursting.forget()

    text = generate_latest(bursting.registry).decode()
    assert "vk_provider_bursting_leader 0.0" in text
    assert 'vk_provider_gate_frozen{node="burst"}' not in text
    assert 'vk_provider_webhook_requests_total{outcome="refused"} 1.0' in text
