"""Creates that go wrong: never two sandboxes, none forgotten, and the truth about each."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Simulator
from vk_provider_modal.simulator.model import Behaviour

from tests.integration.modal.conftest import Make
from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    OutOfCapacityError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.pods.types import EndCause, InstancePhase, InstanceRef, Offer, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod
from vk_provider.testing.simulator.account import Rule

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
L40S = Offer("L40S x1", gpu_type="L40S", gpu_count=1)
CPU = Offer("cpu")


def gpu_pod(name: str = "app-1", **container: Any) -> ResolvedPod:
    """A pod that wants a GPU, which makes it one of Modal's elder sandboxes."""
    return make_resolved_pod(name, containers=[make_container(**GPU, **container)])


def calls(simulator: Simulator) -> Counter[str]:
    """How often each call arrived."""
    return Counter(each.operation for each in simulator.state.requests)


async def create(provider: ModalProvider, pod: ResolvedPod | None = None) -> InstanceRef:
    """An instance of a pod, a CPU pod unless given."""
    pod = pod or make_resolved_pod()
    return await provider.create_instance(pod, L40S if pod.gpu_count else CPU)


@pytest.mark.parametrize("pod", [make_resolved_pod(), gpu_pod()], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kind", ["drop-after", "internal-after", "unknown-after"])
async def test_a_lost_answer_is_an_unknown_outcome_and_is_not_asked_for_again(
    provider: ModalProvider, simulator: Simulator, pod: ResolvedPod, kind: str
) -> None:
    """The SDK would, and here its idempotency key is not honoured."""
    simulator.state.faults.add(kind, count=1)

    with pytest.raises(OutcomeUnknownError):
        await create(provider, pod)

    assert len(simulator.state.wishes) == 1
    assert [each.stamp for each in await provider.list_instances()] == [pod.stamp]


async def test_an_answer_that_never_comes_is_an_unknown_outcome(
    hasty_provider: ModalProvider, simulator: Simulator
) -> None:
    """After the time that the configuration allows."""
    simulator.state.faults.add("hold", count=1, hold_ms=30_000)

    with pytest.raises(OutcomeUnknownError):
        await create(hasty_provider)

    assert len(await hasty_provider.list_instances()) == 1


async def test_a_refused_connection_made_nothing(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """So the core may try again."""
    await create(provider)
    await simulator.refuse()
    # By this the client learns that its connection is gone; what it had sent into that would
    # be of unknown outcome.
    with pytest.raises(UnavailableError):
        await provider.list_instances()

    with pytest.raises(UnavailableError):
        await create(provider, make_resolved_pod("app-2"))

    assert len(simulator.state.wishes) == 1


async def test_a_second_sandbox_for_a_pod_is_refused_by_its_name(
    make_provider: Make, simulator: Simulator
) -> None:
    """Even where another process of ours made the first."""
    async with make_provider() as one, make_provider() as other:
        await create(one)

        with pytest.raises(OutcomeUnknownError, match="earlier create"):
            await create(other)

    assert len(simulator.state.model.living) == 1
    assert simulator.state.model.ledger.double_billed() == []


async def test_a_rate_limit_is_told_with_its_wish(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """And the SDK doesn't wait in secret."""
    simulator.state.faults.add("throttled", count=1, retry_after=7)

    with pytest.raises(ThrottledError) as raised:
        await create(provider)

    assert raised.value.retry_after_seconds == 7
    assert calls(simulator)["SandboxCreateV2"] == 1


async def test_our_own_budget_keeps_below_the_limit(
    make_provider: Make, simulator: Simulator
) -> None:
    """Creates wait for their turn here instead."""
    async with make_provider(createsPerSecond=20, createBurst=2) as provider:
        pods = [make_resolved_pod(f"app-{number}") for number in range(8)]
        before = asyncio.get_running_loop().time()

        await asyncio.gather(*(create(provider, pod) for pod in pods))

        assert asyncio.get_running_loop().time() - before >= 0.28
    assert len(simulator.state.model.living) == 8


async def test_no_machine_in_time_is_out_of_capacity(
    hasty_provider: ModalProvider, simulator: Simulator
) -> None:
    """What was queued is ended first, and has cost nothing."""
    simulator.state.model.stock["L40S"] = 0

    with pytest.raises(OutOfCapacityError, match="no machine within 1 s"):
        await create(hasty_provider, gpu_pod())

    assert not simulator.state.model.living
    assert simulator.state.model.ledger.charges == []
    assert list(await hasty_provider.list_instances()) == []


async def test_what_could_not_be_ended_is_an_unknown_outcome(
    hasty_provider: ModalProvider, simulator: Simulator
) -> None:
    """It may get its machine yet."""
    simulator.state.model.stock["L40S"] = 0
    simulator.state.faults.add("unavailable", operation="SandboxTerminate")

    with pytest.raises(OutcomeUnknownError, match="could not be ended"):
        await create(hasty_provider, gpu_pod())

    assert len(simulator.state.model.living) == 1


async def test_a_create_that_waits_for_a_machine_can_be_called_off(
    make_provider: Make, simulator: Simulator
) -> None:
    """The SDK ends what it was waiting for."""
    simulator.state.model.stock["L40S"] = 0
    async with make_provider(capacityWaitSeconds=60) as provider:
        creating = asyncio.create_task(create(provider, gpu_pod()))
        async with asyncio.timeout(10):
            while not calls(simulator)["SandboxGetTaskId"]:  # noqa: ASYNC110  # no event for it
                await asyncio.sleep(0.01)

        creating.cancel()
        with suppress(asyncio.CancelledError):
            await creating

    assert len(simulator.state.wishes) == 1
    assert not simulator.state.model.living


async def test_what_a_create_waits_for_is_not_listed_before_it_has_an_outcome(
    make_provider: Make, simulator: Simulator
) -> None:
    """Or giving it up for the next offer would look like a loss. Whoever else looks sees it."""
    simulator.state.model.stock["L40S"] = 0
    async with make_provider(capacityWaitSeconds=60) as provider, make_provider() as other:
        creating = asyncio.create_task(create(provider, gpu_pod()))
        async with asyncio.timeout(10):
            while not calls(simulator)["SandboxGetTaskId"]:  # noqa: ASYNC110  # no event for it
                await asyncio.sleep(0.01)

        assert list(await provider.list_instances()) == []
        (seen,) = await other.list_instances()
        assert seen.phase is InstancePhase.STARTING

        simulator.state.model.stock["L40S"] = 1
        ref = await creating
        assert [each.ref for each in await provider.list_instances()] == [ref]


async def test_a_container_that_never_starts_is_listed_with_the_reason(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Its create succeeded, so its end is an end like any other."""
    failing = Behaviour(start_failure="exec: no-such-file: not found")
    simulator.state.model.rules.append(Rule("", failing))

    ref = await create(provider, gpu_pod())

    (seen,) = await provider.list_instances()
    assert (seen.ref, seen.phase, seen.ended_by) == (ref, InstancePhase.ENDED, EndCause.IMAGE)
    assert "no-such-file" in (seen.message or "")
    assert seen.containers == ()


@pytest.mark.parametrize(
    ("detail", "fault"),
    [("manifest unknown", RejectedError), ("503 Service Unavailable", UnavailableError)],
)
async def test_an_image_that_cannot_be_built_makes_no_sandbox(
    provider: ModalProvider, simulator: Simulator, detail: str, fault: type[Exception]
) -> None:
    """A registry that hiccups may be asked again, and then it is."""
    simulator.state.faults.add("build-fails", count=1, detail=detail)

    with pytest.raises(fault, match=detail):
        await create(provider)

    assert not simulator.state.wishes
    await create(provider)


async def test_an_image_is_built_once(provider: ModalProvider, simulator: Simulator) -> None:
    """However many pods run it, at once or in turn."""
    pods = [make_resolved_pod(f"app-{number}") for number in range(5)]

    await asyncio.gather(*(create(provider, pod) for pod in pods[:4]))
    await create(provider, pods[4])

    assert calls(simulator)["ImageGetOrCreate"] == 1


async def test_a_private_image_is_pulled_with_its_login(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Out of the pod's own pull secret."""
    from vk_provider.pods.references import SECRET, ObjectKey

    login = '{"auths": {"registry.example": {"username": "me", "password": "hunter2-hunter2"}}}'
    key = ObjectKey(SECRET, "default", "pull")
    pod = make_resolved_pod(
        objects={key: {"stringData": {".dockerconfigjson": login}}},
        imagePullSecrets=[{"name": "pull"}],
    )

    await create(provider, pod)

    (wish,) = simulator.state.wishes
    assert wish.image["login"] == {
        "REGISTRY_USERNAME": "me",
        "REGISTRY_PASSWORD": "hunter2-hunter2",
    }


async def test_claims_are_mounted_as_volumes(make_provider: Make, simulator: Simulator) -> None:
    """And one that is not there refuses the pod before anything is made."""
    claim = {"claimName": "data", "readOnly": True}
    mounts = [{"name": "data", "mountPath": "/data", "subPath": "today"}]
    pod = make_resolved_pod(
        containers=[make_container(volumeMounts=mounts)],
        volumes=[{"name": "data", "persistentVolumeClaim": claim}],
    )
    async with make_provider(volumes={"data": "training"}) as provider:
        await create(provider, pod)
    async with make_provider(volumes={"data": "missing-training"}) as provider:
        with pytest.raises(RejectedError, match="missing-training"):
            await create(provider, pod)

    (wish,) = simulator.state.wishes
    (mount,) = wish.definition.volume_mounts
    assert mount.volume_id == simulator.state.volumes["training"]
    assert (mount.mount_path, mount.read_only, mount.sub_path) == ("/data", True, "today")


async def test_everything_asked_for_arrives(make_provider: Make, simulator: Simulator) -> None:
    """In the service's own units."""
    annotations = {
        "modal.vk-provider.dev/h2-ports": "9000",
        "modal.vk-provider.dev/tcp-ports": "22",
    }
    resources = {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "4"}}
    container = make_container(
        command=["serve"], args=["--fast"], workingDir="/srv", resources=resources
    )
    pod = make_resolved_pod(containers=[container], metadata={"annotations": annotations} | {
        "name": "app-1", "namespace": "default", "uid": "0b5c"})  # fmt: skip
    config: dict[str, Any] = {"cloud": "aws", "inboundCidrs": ["10.0.0.0/8"]}
    async with make_provider(**config) as provider:
        await provider.create_instance(pod, Offer("cpu us-east", data_center="us-east"))

    (wish,) = simulator.state.wishes
    definition = wish.definition
    assert list(definition.entrypoint_args) == ["serve", "--fast"]
    assert wish.image["dockerfile"] == ["ENTRYPOINT []"]
    assert (definition.resources.milli_cpu, definition.resources.milli_cpu_max) == (1500, 2000)
    assert definition.resources.memory_mb == 1024
    assert list(definition.scheduler_placement.regions) == ["us-east"]
    assert (definition.cloud_provider_str, definition.workdir) == ("aws", "/srv")
    assert list(definition.inbound_cidr_allowlist) == ["10.0.0.0/8"]
    ports = {
        each.port: (each.unencrypted, each.tunnel_type) for each in definition.open_ports.ports
    }
    assert ports[22][0]
    assert ports[9000][1] != 0


async def test_a_message_that_quotes_a_secret_is_masked(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Services do that."""
    word = "correct-horse-battery"
    pod = make_resolved_pod(containers=[make_container(env=[{"name": "A", "value": word}])])
    simulator.state.faults.add("invalid-argument", detail=f"bad value {word} in env")

    with pytest.raises(RejectedError) as raised:
        await create(provider, pod)

    assert word not in str(raised.value)
    assert "bad value *** in env" in str(raised.value)


async def test_tokens_are_read_anew_after_they_were_refused(
    make_provider: Make, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotated Secret needs no restart."""
    async with make_provider() as provider:
        monkeypatch.setenv("MODAL_SECRET", "as-of-yesterday")
        with pytest.raises(DeniedError) as raised:
            await create(provider)
        assert "as-of-yesterday" not in str(raised.value)

        monkeypatch.setenv("MODAL_SECRET", "as-integration-secret")
        await create(provider)

        simulator.state.faults.add("unauthenticated", operation="SandboxList", count=1)
        with pytest.raises(DeniedError):
            await provider.list_instances()
        assert len(await provider.list_instances()) == 1


async def test_many_creates_at_once(provider: ModalProvider, simulator: Simulator) -> None:
    """Forty, each its own."""
    pods = [gpu_pod(f"app-{number}") for number in range(40)]

    refs = await asyncio.gather(*(create(provider, pod) for pod in pods))

    assert len(set(refs)) == 40
    assert simulator.state.model.ledger.double_billed() == []
