"""What sandboxes cost: foretold by the account's rates, told by its bill, judged by the ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_modal.simulator import Simulator

from tests.integration.app.served import home, node_of
from tests.integration.app.test_virtual_node import running as running_node
from tests.integration.modal.conftest import TOKENS, Make
from tests.integration.modal.test_creates import gpu_pod
from tests.support.eventually import eventually
from tests.support.inference_servers import FOLDER, bound
from tests.support.model_apiserver import ModelApiServer
from vk_provider.faults import RejectedError
from vk_provider.pods.types import ResolvedPod
from vk_provider.provider import SupportsPricing, SupportsSpend
from vk_provider.testing.builders import make_container, make_resolved_pod


def cpu_pod(name: str, cpu: str, memory: str) -> ResolvedPod:
    """A pod of this size."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return make_resolved_pod(name, containers=[make_container(resources=resources)])


async def test_a_price_is_the_rate_that_is_billed(
    make_provider: Make, simulator: Simulator
) -> None:
    """Cores and memory too, of CPU pods as well; the instance keeps it."""
    pods = [cpu_pod("small", "1", "512Mi"), cpu_pod("large", "8", "32Gi"), gpu_pod("gpu")]
    async with make_provider() as provider:
        assert isinstance(provider, SupportsPricing)
        told = {}
        for pod in pods:
            offer = provider.priced(pod, (await provider.list_offers(pod.gpu_count))[0])
            ref = await provider.create_instance(pod, offer)
            told[ref.id] = offer.usd_per_hour

        billed = {each.instance: each.usd_per_hour for each in simulator.state.model.ledger.charges}
        shown = {each.ref.id: each.usd_per_hour for each in await provider.list_instances()}

    assert told == pytest.approx(billed, abs=1e-5)
    assert shown == pytest.approx(told)


async def test_the_bill_is_told_by_sandbox_and_hour(
    make_provider: Make, simulator: Simulator
) -> None:
    """To the cent, also of what is long deleted, and once for each hour."""
    clock, ledger = simulator.state.clock, simulator.state.model.ledger
    since = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    async with make_provider() as provider:
        assert isinstance(provider, SupportsSpend)
        offer = (await provider.list_offers(1))[0]
        first = await provider.create_instance(gpu_pod("first"), offer)
        clock.advance(1200)
        second = await provider.create_instance(gpu_pod("second"), offer)
        await provider.list_instances()
        await provider.delete_instance(first, 0)
        clock.advance(1800)
        await provider.list_instances()

        reports = await provider.read_spend(since)

    billed = {each.instance: ledger.usd(clock.now(), [each]) for each in ledger.charges}
    told = {ref.id: sum(r.usd for r in reports if r.instance == ref.id) for ref in (first, second)}
    assert told == pytest.approx(billed, abs=1e-6)
    hours = [(each.instance, each.begin) for each in reports]
    assert len(set(hours)) == len(hours)
    assert all(each.end - each.begin <= timedelta(hours=1) for each in reports)


async def test_a_token_that_may_not_see_the_bill_says_so(
    make_provider: Make, simulator: Simulator
) -> None:
    """The core reckons for itself then; nothing else is refused."""
    simulator.state.faults.add("permission-denied", operation="SandboxGetTimeRangeStats")
    async with make_provider() as provider:
        with pytest.raises(RejectedError):
            await provider.read_spend(datetime.now(UTC) - timedelta(hours=1))

        assert list(await provider.list_instances()) == []


async def test_nobody_elses_sandboxes_are_on_the_bill(
    make_provider: Make, simulator: Simulator
) -> None:
    """They have no mark of ours."""
    simulator.state.add_foreign("strange")
    simulator.state.clock.advance(600)
    async with make_provider() as provider:
        assert list(await provider.read_spend(datetime.now(UTC) - timedelta(hours=2))) == []


@pytest.mark.parametrize(("most", "phase"), [("1.00", "Running"), ("0.01", "Failed")])
async def test_a_cpu_pods_wish_for_a_price_is_kept(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, most: str, phase: str
) -> None:
    """Its size decides what it costs, so it is priced before offers are ranked."""
    monkeypatch.setenv("MODAL_TOKEN_ID", TOKENS[0])
    monkeypatch.setenv("MODAL_TOKEN_SECRET", TOKENS[1])
    pod = bound(FOLDER / "llama-cpp.yaml", "burst")
    pod["metadata"]["annotations"] = {"vk-provider.dev/max-price": most}

    async with home() as api:
        api.store.put("pods", pod)
        async with running_node(api, node_of("modal", baseUrl=simulator.url)):
            await eventually(lambda: status_of(api).get("phase") == phase, phase)
            message = str(status_of(api).get("message", ""))

    assert len(simulator.state.model.sandboxes) == (1 if phase == "Running" else 0)
    assert phase == "Running" or "max-price" in message


def status_of(api: ModelApiServer) -> dict[str, Any]:
    """The status of the one pod."""
    found: dict[str, Any] = api.store.objects["pods", "default", "llama-cpp"]["status"]
    return found
