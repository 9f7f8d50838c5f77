"""The configuration block: every problem at once, by its path."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_modal.config import ModalConfig, parse_config

from tests.unit.vk_provider_modal.conftest import BLOCK
from vk_provider.faults import ConfigError


def problems(**block: Any) -> list[str]:
    """What is wrong with a block."""
    with pytest.raises(ConfigError) as raised:
        parse_config({**BLOCK, **block}, "config")
    return [str(each) for each in raised.value.problems]


def parsed(**block: Any) -> ModalConfig:
    """A block that is right."""
    return parse_config({**BLOCK, **block}, "config")


def test_tokens_are_all_that_must_be_given(config: ModalConfig) -> None:
    """The rest has defaults."""
    assert config.gpu_types[0] == "T4"
    assert config.base_url is None
    with pytest.raises(ConfigError, match="tokenSecret"):
        parse_config({"tokenId": {"env": "A"}}, "config")


def test_lists_are_kept_in_order_once_each() -> None:
    """In the service's spelling."""
    found = parsed(gpuTypes=["h100!", "L40S", "H100!"], regions=["us-east", "us-east"])

    assert found.gpu_types == ("H100!", "L40S")
    assert found.regions == ("us-east",)


def test_prices_and_networks_are_read() -> None:
    """An empty list of networks closes every tunnel, which is not the same as none."""
    found = parsed(usdPerHour={"h100": 3.95}, inboundCidrs=[], volumes={"a": "b"})

    assert found.usd_per_hour == {"H100": 3.95}
    assert found.inbound_cidrs == ()
    assert found.volumes == {"a": "b"}


def test_the_address_may_be_several() -> None:
    """As the SDK's own is."""
    url = "https://api.modal.com,https://api.modal2.com"

    assert parsed(baseUrl=url + "/").base_url == url


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"baseUrl": "api.modal.com"}, "config.baseUrl"),
        ({"baseUrl": "https://a/v1"}, "config.baseUrl"),
        ({"baseUrl": "https://[x"}, "config.baseUrl"),
        ({"baseUrl": "https://me:word@a"}, "config.baseUrl"),
        ({"gpuTypes": ["H100:2"]}, "config.gpuTypes[0]"),
        ({"regions": [" "]}, "config.regions[0]"),
        ({"cloud": "azure"}, "config.cloud"),
        ({"inboundCidrs": ["here"]}, "config.inboundCidrs[0]"),
        ({"usdPerHour": {"H100": "dear"}}, "config.usdPerHour.H100"),
        ({"maxLifetimeSeconds": 90_000}, "config.maxLifetimeSeconds"),
        ({"capacityWaitSeconds": 5000}, "config.capacityWaitSeconds"),
        ({"app": "a b"}, "config.app"),
        ({"gpuType": ["H100"]}, "config.gpuType"),
    ],
)
def test_a_wrong_value_is_told_by_its_path(block: dict[str, Any], path: str) -> None:
    """And by what is allowed."""
    (problem,) = problems(**block)

    assert problem.startswith(path)


def test_a_short_life_has_a_short_margin() -> None:
    """Never more than half of it."""
    assert parsed(maxLifetimeSeconds=120).expiry_margin_seconds == 30
    assert problems(maxLifetimeSeconds=120, expiryMarginSeconds=100)


def test_an_unknown_name_is_honoured_and_told_with_its_place() -> None:
    """A price of a type that the list names is as doubtful as the type: told once."""
    found = parsed(gpuTypes=["l40s", "H1000"], usdPerHour={"h1000": 9, "A1000": 2, "cpu": 0.1})

    assert found.gpu_types == ("L40S", "H1000")
    told = [str(doubt) for doubt in found.doubts]
    assert [words.partition(": ")[0] for words in told] == [
        "config.gpuTypes[1]",
        "config.usdPerHour.A1000",
    ]
    assert told[0].endswith('did you mean "H100"?')
