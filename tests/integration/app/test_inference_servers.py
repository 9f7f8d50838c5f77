"""Every inference server that a cloud accepts becomes Ready there, all at once on one node."""

from __future__ import annotations

import pytest
from vk_provider_modal import simulator as modal
from vk_provider_runpod import simulator as runpod
from vk_provider_runpod.simulator.model import Volume

from tests.integration.app.served import all_ready
from tests.support.inference_servers import accepted

TOKEN = "a-token-of-the-tests"


async def test_what_runpod_accepts_becomes_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its simulator, one instance each."""
    monkeypatch.setenv("RUNPOD_API_KEY", TOKEN)
    options = runpod.Options(pull_seconds=0, log_every_seconds=0)
    async with runpod.running(options) as service:
        service.state.model.volumes["models"] = Volume("models", "models", 500, "US-KS-2")
        async with all_ready("runpod", baseUrl=service.url):
            assert len(service.state.model.pods) == len(accepted("runpod"))


async def test_what_modal_accepts_becomes_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its simulator, through the real SDK, one sandbox each."""
    monkeypatch.setenv("MODAL_TOKEN_ID", TOKEN)
    monkeypatch.setenv("MODAL_TOKEN_SECRET", TOKEN)
    options = modal.Options(start_seconds=0, log_every_seconds=0)
    async with modal.running(options) as service, all_ready("modal", baseUrl=service.url):
        assert len(service.state.model.sandboxes) == len(accepted("modal"))
