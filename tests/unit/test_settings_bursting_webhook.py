"""The block `webhook` of kind `Bursting`."""

from typing import Any

import pytest

from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings_bursting_webhook import WebhookSettings, parse_webhook


def parsed(block: dict[str, Any]) -> tuple[WebhookSettings, list[str]]:
    """The settings, and what is wrong."""
    problems: list[FieldProblem] = []
    settings = parse_webhook(Fields(block, "spec.webhook", problems))
    return settings, [str(problem) for problem in problems]


def test_nothing_is_said_and_nothing_runs() -> None:
    """Off until somebody switches it on."""
    assert parsed({}) == (WebhookSettings(), [])


def test_every_key_is_taken() -> None:
    """Patience of 0 leaves the API server's."""
    block = {
        "enabled": True,
        "address": "127.0.0.1",
        "port": 0,
        "configuration": "mine",
        "namespace": "here",
        "service": "hook",
        "url": "https://127.0.0.1:9443",
        "secret": "certificates",
        "tolerateEverything": "narrow",
        "narrowTo": ["nvidia.com/gpu", "dedicated"],
        "tolerationSeconds": 0,
        "markEvictable": True,
    }

    assert parsed(block) == (
        WebhookSettings(
            enabled=True,
            address="127.0.0.1",
            port=0,
            configuration="mine",
            namespace="here",
            service="hook",
            url="https://127.0.0.1:9443",
            secret="certificates",
            narrow_to=("nvidia.com/gpu", "dedicated"),
            outage_seconds=None,
            mark_evictable=True,
        ),
        [],
    )


def test_keys_to_narrow_to_count_only_where_holes_are_narrowed() -> None:
    """Refusing is the default."""
    assert parsed({"narrowTo": ["a"]})[0].narrow_to is None
    assert parsed({"tolerateEverything": "narrow"})[0].narrow_to == ("nvidia.com/gpu",)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (
            {"narrowTo": ["vk-provider.dev/gate"]},
            'spec.webhook.narrowTo[0]: found "vk-provider.dev/gate", '
            "allowed: any key but those of our own taints",
        ),
        (
            {"url": "http://x"},
            'spec.webhook.url: found "http://x", allowed: https://HOST:PORT',
        ),
        (
            {"url": "https://[x"},
            'spec.webhook.url: found "https://[x", allowed: https://HOST:PORT',
        ),
        (
            {"url": "https://x/path"},
            'spec.webhook.url: found "https://x/path", allowed: https://HOST:PORT',
        ),
        (
            {"tolerateEverything": "yes"},
            'spec.webhook.tolerateEverything: found "yes", allowed: refuse, narrow',
        ),
    ],
)
def test_a_wrong_value_names_what_is_allowed(block: dict[str, Any], problem: str) -> None:
    """With its path."""
    assert parsed(block)[1] == [problem]
