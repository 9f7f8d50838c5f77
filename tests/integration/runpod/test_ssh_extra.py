"""Without the SSH client everything but what needs it works, and says what is missing."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, sys

sys.modules["asyncssh"] = None  # as where the extra is not installed

from vk_provider_runpod import factory

from vk_provider.faults import NotSupportedError
from vk_provider.pods.types import InstanceRef
from vk_provider.provider import ProviderContext
from vk_provider.streams import ExecRequest
from vk_provider.testing.builders import make_resolved_pod

config = {"apiKey": {"env": "KEY"}, "ssh": {"privateKey": {"env": "KEY"}}}
provider = factory(config, ProviderContext("cluster", "node", "runpod", "config", "test/1"))
explained = provider.explain(make_resolved_pod(), provider.known_offers(0)[0])
assert "PUBLIC_KEY" not in explained.request["env"], explained.request


async def refused() -> None:
    ref, request = InstanceRef("i"), ExecRequest("main", ("true",))
    for call in (provider.exec(ref, request, None), provider.open_port(ref, 80)):
        try:
            await call
        except NotSupportedError as fault:
            print(fault)


asyncio.run(refused())
"""


def test_the_extra_is_named_where_it_is_missing() -> None:
    """In a process of its own, which has never seen the client."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'vk-provider[ssh]'") == 2
