"""Making instances against the simulator: what they are billed, and where they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Simulator
from vk_provider_runpod.simulator.model import Volume

from tests.integration.runpod.test_provider import GPU, create, gpu_pod, only
from vk_provider.faults import (
    ForbiddenError,
    KubeUnavailableError,
    OutcomeUnknownError,
    OutOfCapacityError,
    RejectedError,
    UnavailableError,
    UnsupportedFieldsError,
)
from vk_provider.pods.types import EndCause, InstancePhase, Json, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod


async def test_an_instance_that_is_billed_too_high_is_ended_again(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Before it costs anything, and the next offer may be tried; lists that lag don't show it."""
    simulator.state.faults.add("dearer", count=1, factor=1.5)
    async with make_provider(maxUsdPerHour=1.0) as provider:
        with pytest.raises(OutOfCapacityError, match=r"bills 1.29 USD/h .* maxUsdPerHour"):
            await create(provider)
        assert await provider.list_instances() == []
        assert simulator.state.model.ledger.open_intervals() == []

        await create(provider)

        assert (await only(provider)).phase is InstancePhase.STARTING


async def test_one_that_can_not_be_ended_is_handed_to_the_core(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Its outcome is unknown until a list shows it, as one that has ended."""
    simulator.state.faults.add("dearer", count=1, factor=1.5)
    simulator.state.faults.add("error", count=1, operation="deletePod")
    async with make_provider(maxUsdPerHour=1.0) as provider:
        with pytest.raises(OutcomeUnknownError, match="ending it failed"):
            await create(provider)

        seen = await only(provider)

    assert (seen.phase, seen.ended_by) == (InstancePhase.ENDED, EndCause.LOST)
    assert "maxUsdPerHour" in (seen.message or "")


async def test_a_create_that_was_held_up_does_not_leave_once_another_may_lead(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """This process may have stood still on the way; that nothing was made is certain."""
    async with make_provider(may_act=lambda: False) as provider:
        offer = (await provider.list_offers(1))[0]

        with pytest.raises(UnavailableError, match="not sent, another replica may lead"):
            await provider.create_instance(gpu_pod(), offer)

    assert simulator.state.model.pods == {}


def volume_pod(name: str, volume: str) -> ResolvedPod:
    """A pod that mounts a network volume."""
    note = {"runpod.vk-provider.dev/network-volume": f"{volume}:/data"}
    containers = [make_container(**GPU)]
    return make_resolved_pod(name, containers=containers, metadata={"annotations": note})


async def test_a_network_volume_decides_about_the_data_centre(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """It is asked for once; an offer for another place is refused, and nothing is sent."""
    state = simulator.state
    state.model.volumes["vol-1"] = Volume("vol-1", "models", 100, "US-KS-2")
    async with make_provider(gpuTypes=["NVIDIA L4"]) as provider:
        for number in range(2):
            await create(provider, volume_pod(f"app-{number}", "vol-1"))
        with pytest.raises(RejectedError, match='no network volume "vol-2"'):
            await create(provider, volume_pod("app-3", "vol-2"))
    async with make_provider(dataCenters=["EU-RO-1", "US-KS-2"]) as provider:
        offers = await provider.list_offers(1)
        with pytest.raises(RejectedError, match="is in US-KS-2"):
            await provider.create_instance(volume_pod("app-4", "vol-1"), offers[0])
        await provider.create_instance(volume_pod("app-4", "vol-1"), offers[1])

    assert [body["dataCenterIds"] for body in state.bodies] == [["US-KS-2"]] * 3
    asked = [each for each in state.requests if each.path == "/v2/network-volumes/vol-1"]
    assert len(asked) == 2


async def test_a_place_that_lost_two_in_a_row_is_left_alone(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """With that GPU type, where RunPod was to choose."""
    state = simulator.state
    for number in range(2):
        ref = await create(provider, gpu_pod(f"app-{number}"))
        await provider.list_instances()
        state.model.vanish(ref.id, state.clock.now())
        await provider.list_instances()

    await create(provider, gpu_pod("app-2"))

    first, *_, last = (pod.data_center for pod in state.model.pods.values())
    assert first != last
    assert first not in state.bodies[-1]["dataCenterIds"]
    assert "dataCenterIds" not in state.bodies[0]


def claiming_pod() -> ResolvedPod:
    """A pod that mounts a claim."""
    mounts = [{"name": "models", "mountPath": "/models"}]
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
    containers = [make_container(**GPU, volumeMounts=mounts)]
    return make_resolved_pod(containers=containers, volumes=[volume])


async def test_a_claim_is_the_network_volume_of_its_persistent_volume(
    simulator: Simulator, make_provider: Callable[..., RunPodProvider]
) -> None:
    """Read when the instance is made; what `explain` can't know it says."""
    asked = []

    async def read_claim(namespace: str, name: str) -> tuple[Json, Json]:
        asked.append((namespace, name))
        csi = {"driver": "runpod.vk-provider.dev", "volumeHandle": "vol-1"}
        return {"spec": {"volumeName": "models"}}, {"spec": {"csi": csi}}

    simulator.state.model.volumes["vol-1"] = Volume("vol-1", "models", 100, "US-KS-2")
    async with make_provider(read_claim=read_claim) as provider:
        offer = (await provider.list_offers(1))[0]
        explained = provider.explain(claiming_pod(), offer)
        assert not asked

        await provider.create_instance(claiming_pod(), offer)

    assert asked == [("default", "models")]
    (body,) = simulator.state.bodies
    assert body["mounts"] == {"network": [{"volumeId": "vol-1", "path": "/models"}]}
    assert body["dataCenterIds"] == ["US-KS-2"]
    shown = explained.request["mounts"]["network"][0]["volumeId"]
    assert "PersistentVolume" in shown


@pytest.mark.parametrize(
    ("answer", "fault", "words"),
    [
        (({}, {}), UnsupportedFieldsError, 'has no claim "models"'),
        (({"spec": {}}, {}), UnsupportedFieldsError, "bound to no PersistentVolume"),
        (({"spec": {}}, {"spec": {"nfs": {}}}), UnsupportedFieldsError, "csi.driver runpod"),
        (ForbiddenError("no get on claims", 403), UnsupportedFieldsError, "no get on claims"),
        (KubeUnavailableError("down", 503), UnavailableError, "can't be read now"),
    ],
)
async def test_a_claim_that_stands_for_nothing_is_refused_by_its_path(
    simulator: Simulator,
    make_provider: Callable[..., RunPodProvider],
    answer: tuple[Json, Json] | Exception,
    fault: type[Exception],
    words: str,
) -> None:
    """And nothing is made; an API server that is down is asked again."""

    async def read_claim(namespace: str, name: str) -> tuple[Json, Json]:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with make_provider(read_claim=read_claim) as provider:
        offer = (await provider.list_offers(1))[0]
        with pytest.raises(fault, match=words) as raised:
            await provider.create_instance(claiming_pod(), offer)

    if isinstance(raised.value, UnsupportedFieldsError):
        (problem,) = raised.value.problems
        assert problem.path == "spec.volumes[0].persistentVolumeClaim"
    assert not simulator.state.model.pods


async def test_a_pod_without_a_gpu_is_priced_by_its_size(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """As it is billed; a GPU's price is the instance's, and an unknown one stays so."""
    large: dict[str, Any] = {"resources": {"requests": {"cpu": "7", "memory": "8Gi"}}}
    pod = make_resolved_pod(containers=[make_container(**large)])
    (known, *_) = provider.known_offers(0)
    assert provider.priced(pod, known) == known

    (offer, *_) = await provider.list_offers(0)
    priced = provider.priced(pod, offer)
    ref = await provider.create_instance(pod, priced)

    assert priced.usd_per_hour == pytest.approx(8 * 0.035)
    assert priced.usd_per_hour == pytest.approx(simulator.state.model.pods[ref.id].cost)
    (gpu, *_) = await provider.list_offers(1)
    assert provider.priced(gpu_pod(), gpu) == gpu
