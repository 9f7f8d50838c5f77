"""The collectors: their names, and that two sets do not meet."""

from prometheus_client import generate_latest

from vk_provider.metrics import Metrics


def test_every_name_has_the_prefix() -> None:
    """Dashboards find us by it."""
    names = {family.name for family in Metrics().registry.collect()}
    assert names
    assert all(name.startswith("vk_provider_") for name in names)


def test_two_sets_count_apart() -> None:
    """Several in one process, tests in parallel."""
    first, second = Metrics(), Metrics()
    first.failed_verdicts.labels("burst", "Rejected").inc()
    assert b'reason="Rejected"' in generate_latest(first.registry)
    assert b'reason="Rejected"' not in generate_latest(second.registry)


def test_a_counter_appears_with_its_labels() -> None:
    """The exposition is what alerts are written against."""
    metrics = Metrics()
    metrics.backend_requests.labels("burst", "runpod", "create", "OutOfCapacity").inc()
    wanted = (
        b'vk_provider_backend_requests_total{backend="runpod",call="create",node="burst",'
        b'outcome="OutOfCapacity"} 1.0'
    )
    assert wanted in generate_latest(metrics.registry)


def test_the_process_is_observed_on_request() -> None:
    """CPU and memory under the names every exporter uses."""
    metrics = Metrics()
    metrics.observe_process()
    assert b"python_info" in generate_latest(metrics.registry)
