"""The node's address: said, told by the downward API, or found."""

import pytest

from vk_provider.address import internal_address
from vk_provider.faults import ConfigError


@pytest.mark.parametrize(
    ("configured", "environ", "expected"),
    [
        ("10.0.0.1", {"POD_IP": "10.0.0.2"}, "10.0.0.1"),
        (None, {"POD_IP": "10.0.0.2", "NODE_IP": "10.0.0.3"}, "10.0.0.2"),
        (None, {"POD_IP": "", "NODE_IP": "10.0.0.3"}, "10.0.0.3"),
    ],
)
def test_the_nearest_word_wins(
    configured: str | None, environ: dict[str, str], expected: str
) -> None:
    """Configuration, then the pod's address, then the machine's."""
    assert internal_address(configured, environ) == expected


@pytest.mark.parametrize(
    ("configured", "environ", "where"),
    [
        ("host", {}, "spec.server.address"),
        (None, {"POD_IP": "x"}, "environment variable POD_IP"),
    ],
)
def test_what_is_no_address_is_refused_where_it_stands(
    configured: str | None, environ: dict[str, str], where: str
) -> None:
    """The API server would look for it in vain."""
    with pytest.raises(ConfigError, match=f"{where}: found"):
        internal_address(configured, environ)
