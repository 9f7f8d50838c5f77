"""Lists: what runs, what has ended and how, at one call per tick."""

from __future__ import annotations

import asyncio

import pytest
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Simulator
from vk_provider_modal.simulator.model import STATUSES, End

from tests.integration.modal.conftest import Make
from tests.integration.modal.test_creates import L40S, calls, create, gpu_pod
from vk_provider.faults import UnavailableError
from vk_provider.pods.types import EndCause, InstancePhase, InstanceRef, Observation, Terminated
from vk_provider.testing.builders import make_container, make_resolved_pod


def end(simulator: Simulator, ref: InstanceRef, status: str, code: int = 0, why: str = "") -> None:
    """Let a sandbox end."""
    model = simulator.state.model
    ending = End(STATUSES.index(status), simulator.state.clock.now(), code, why)
    model.finish(model.sandboxes[ref.id], ending)


async def only(provider: ModalProvider) -> Observation:
    """The one instance there is."""
    (found,) = await provider.list_instances()
    return found


@pytest.mark.parametrize(
    ("status", "code", "cause", "exit_code"),
    [
        ("SUCCESS", 0, None, 0),
        ("FAILURE", 3, None, 3),
        ("KERNEL_OOM_KILL", 0, None, 137),
        ("TIMEOUT", 0, EndCause.PREEMPTED, None),
        ("INTERNAL_FAILURE", 0, EndCause.LOST, None),
        ("MEMORY_MANAGER_EVICTION", 0, EndCause.LOST, None),
    ],
)
async def test_an_end_is_told_as_it_was(
    provider: ModalProvider,
    simulator: Simulator,
    status: str,
    code: int,
    cause: EndCause | None,
    exit_code: int | None,
) -> None:
    """Until it is deleted, whichever session asks."""
    ref = await create(provider, gpu_pod())
    assert (await only(provider)).phase is InstancePhase.RUNNING
    end(simulator, ref, status, code)

    seen = await only(provider)

    assert (seen.phase, seen.ended_by, seen.reason) == (InstancePhase.ENDED, cause, status)
    (container,) = seen.containers
    assert isinstance(container.state, Terminated)
    assert container.state.exit_code == exit_code
    assert await only(provider) == seen
    await provider.delete_instance(ref, 30)
    assert list(await provider.list_instances()) == []


async def test_a_preempted_sandbox_is_told_as_such(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Whatever its status, the words tell."""
    ref = await create(provider, gpu_pod())
    end(simulator, ref, "TERMINATED", 0, "preempted by the scheduler")

    assert (await only(provider)).ended_by is EndCause.PREEMPTED


async def test_what_a_person_ended_or_nobody_knows_is_gone(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """The core confirms that before it believes it."""
    one, other = await create(provider), await create(provider, make_resolved_pod("app-2"))
    end(simulator, one, "TERMINATED")
    simulator.state.model.vanish(
        simulator.state.model.sandboxes[other.id], simulator.state.clock.now()
    )

    assert list(await provider.list_instances()) == []


async def test_ends_while_we_were_away_are_told(make_provider: Make, simulator: Simulator) -> None:
    """By the first list of the next session; then a delete forgets them."""
    async with make_provider() as before:
        ref, gone = await create(before), await create(before, make_resolved_pod("app-2"))
        end(simulator, ref, "FAILURE", 3)
        end(simulator, gone, "TERMINATED")
    async with make_provider() as provider:
        seen = await only(provider)
        assert seen.ref == ref
        assert isinstance(seen.containers[0].state, Terminated)
        assert seen.containers[0].state.exit_code == 3

        await provider.delete_instance(ref, 0)

        assert list(await provider.list_instances()) == []


async def test_an_empty_list_kills_nobody(provider: ModalProvider, simulator: Simulator) -> None:
    """Each that is missing is asked for by its id."""
    await create(provider)
    await provider.list_instances()
    simulator.state.faults.add("empty-list", count=1)

    assert (await only(provider)).phase is InstancePhase.RUNNING
    assert calls(simulator)["SandboxWaitV2"] == 1


async def test_a_failing_question_fails_the_list(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Rather than shorten it."""
    ref = await create(provider)
    await provider.list_instances()
    end(simulator, ref, "SUCCESS")
    simulator.state.faults.add("unavailable", operation="SandboxWait", count=4)

    with pytest.raises(UnavailableError):
        await provider.list_instances()

    assert (await only(provider)).phase is InstancePhase.ENDED


async def test_a_tick_costs_no_call_per_pod(make_provider: Make, simulator: Simulator) -> None:
    """Five hundred of them, in pages of a hundred."""
    async with make_provider(createBurst=1000, requestTimeoutSeconds=300) as provider:
        pods = [make_resolved_pod(f"app-{number}") for number in range(500)]
        await asyncio.gather(*(create(provider, pod) for pod in pods))
        await provider.list_instances()
        simulator.state.requests.clear()

        assert len(await provider.list_instances()) == 500

    # Pages overlap by one, and only a page without anything new is known to be the last.
    found = calls(simulator)
    assert found.keys() == {"SandboxListV2"}
    assert found["SandboxListV2"] <= 8


async def test_addresses_are_asked_for_once(provider: ModalProvider, simulator: Simulator) -> None:
    """And told on the pod, beside the time of its end."""
    ports = [{"containerPort": 8000}]
    pod = make_resolved_pod(containers=[make_container(ports=ports)])
    simulator.state.faults.add("unavailable", operation="SandboxGetTunnels", count=4)
    ref = await create(provider, pod)

    assert "vk-provider.dev/endpoint-8000" not in (await only(provider)).annotations
    seen = await only(provider)
    await provider.list_instances()

    url = f"https://{ref.id.lower()}-8000.w.modal.host"
    assert seen.annotations["vk-provider.dev/endpoint-8000"] == url
    assert "vk-provider.dev/ends-at" in seen.annotations
    assert calls(simulator)["SandboxGetTunnelsV2"] == 5


async def test_a_sandbox_near_its_limit_is_taken_back(
    make_provider: Make, simulator: Simulator
) -> None:
    """While it runs, so that its pod ends in good order."""
    async with make_provider(maxLifetimeSeconds=7200, expiryMarginSeconds=60) as provider:
        ref = await create(provider)
        assert (await only(provider)).phase is InstancePhase.RUNNING
        sandbox = simulator.state.model.sandboxes[ref.id]
        simulator.state.clock.advance(3600)
        sandbox.placed_at = simulator.state.clock.now() - 7195

        seen = await only(provider)

        assert (seen.phase, seen.ended_by) == (InstancePhase.ENDED, EndCause.PREEMPTED)
        assert "after 2 h" in (seen.message or "")
        assert sandbox.end is None


async def test_prices_come_from_the_account(make_provider: Make, simulator: Simulator) -> None:
    """And stay with the instance; tokens that may not see them rent all the same."""
    async with make_provider() as provider:
        first = (await provider.list_offers(2))[0]
        assert (first.id, first.usd_per_hour) == ("L40S x2", 3.9024)
        offer = (await provider.list_offers(1))[0]
        assert offer.id == L40S.id
        await provider.create_instance(gpu_pod(), offer)
        assert (await only(provider)).usd_per_hour == offer.usd_per_hour
        simulator.state.faults.add("permission-denied", operation="WorkspaceBillingRates")
        assert (await provider.list_offers(1))[0].usd_per_hour is None


async def test_cpu_and_gpu_pods_are_of_different_generations(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """One list shows both, and each is asked for in its own way."""
    cpu = await create(provider)
    gpu = await create(provider, gpu_pod("app-2"))

    assert len(await provider.list_instances()) == 2
    for ref in (cpu, gpu):
        await provider.delete_instance(ref, 0)

    assert list(await provider.list_instances()) == []
    found = calls(simulator)
    assert (found["SandboxTerminate"], found["SandboxTerminateV2"]) == (1, 1)
    assert not simulator.state.model.ledger.open_intervals()
