"""The block that makes Prometheus the second signal."""

import pytest

from vk_provider.fields import Fields
from vk_provider.settings_bursting_prometheus import (
    PrometheusQueries,
    PrometheusSettings,
    parse_prometheus,
)


def test_without_the_block_there_is_no_second_signal() -> None:
    """The watches decide alone."""
    assert parse_prometheus(Fields(None, "prometheus", [])) is None


def test_an_address_is_enough() -> None:
    """The queries are ours."""
    fields = Fields({"url": "http://prometheus:9090"}, "prometheus", [])

    assert parse_prometheus(fields) == PrometheusSettings("http://prometheus:9090")
    assert fields.problems == []


def test_queries_may_be_replaced_one_by_one() -> None:
    """Each gives one number."""
    fields = Fields({"url": "http://p", "queries": {"slots": "vector(1)"}}, "prometheus", [])
    found = parse_prometheus(fields)

    assert found is not None
    assert found.queries == PrometheusQueries(slots="vector(1)")


@pytest.mark.parametrize("url", ["prometheus:9090", "http://[", "http://p:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """With what is allowed."""
    fields = Fields({"url": url}, "prometheus", [])
    parse_prometheus(fields)

    assert [str(one) for one in fields.problems] == [
        f'prometheus.url: found "{url}", allowed: http://HOST:PORT or https://…'
    ]
