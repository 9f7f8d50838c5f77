"""The provider against the simulator over real sockets: what the contract suite can't know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from vk_provider_runpod import factory
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Simulator
from vk_provider_runpod.simulator.model import Behaviour
from vk_provider_runpod.stamp import instance_name

from vk_provider.faults import (
    ConfigError,
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import (
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    Offer,
    ResolvedPod,
    Running,
    Terminated,
)
from vk_provider.provider import ProviderContext
from vk_provider.testing.builders import CLUSTER_ID, make_container, make_resolved_pod, make_stamp

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
SECRET = "correct-horse-battery-staple"


def gpu_pod(name: str = "app-1", **container: Any) -> ResolvedPod:
    """A pod for one GPU."""
    return make_resolved_pod(name, containers=[make_container(**(GPU | container))])


async def create(provider: RunPodProvider, pod: ResolvedPod | None = None) -> InstanceRef:
    """An instance of the first offer."""
    wanted = pod or gpu_pod()
    return await provider.create_instance(wanted, (await provider.list_offers(1))[0])


async def only(provider: RunPodProvider) -> Observation:
    """The one instance there is."""
    (found,) = await provider.list_instances()
    return found


async def test_an_instance_lives_from_the_pull_to_the_end(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """Starting while RunPod already says RUNNING, running with its uptime, gone when deleted."""
    ref = await create(provider)
    assert (await only(provider)).phase is InstancePhase.STARTING

    simulator.state.clock.advance(10)
    seen = await only(provider)
    await provider.delete_instance(ref, 0)

    assert seen.phase is InstancePhase.RUNNING
    assert isinstance(seen.containers[0].state, Running)
    assert await provider.list_instances() == []
    assert simulator.state.model.ledger.open_intervals() == []


async def test_equal_lists_are_equal_as_time_goes_by(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """For hours, in uneven steps."""
    await create(provider)
    simulator.state.clock.advance(10.3)
    first = await only(provider)

    for step in (0.4, 7.7, 61.2, 3599.9):
        simulator.state.clock.advance(step)
        assert await only(provider) == first


async def test_a_container_that_exits_is_ended_though_runpod_restarts_it(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """For ever, and billed: the first restart that is seen is the pod's end."""
    simulator.state.model.default = Behaviour(pull_seconds=1, run_seconds=30, restart_seconds=2)
    await create(provider)
    simulator.state.clock.advance(20)
    running = await only(provider)

    simulator.state.clock.advance(20)
    ended = await only(provider)
    simulator.state.clock.advance(500)

    assert running.phase is InstancePhase.RUNNING
    assert (ended.phase, ended.ended_by) == (InstancePhase.ENDED, None)
    state = ended.containers[0].state
    assert isinstance(state, Terminated)
    assert state.exit_code is None
    assert await only(provider) == ended


async def test_a_container_that_crashes_at_once_is_seen_to(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """Its uptime never grows old."""
    simulator.state.model.default = Behaviour(pull_seconds=1, run_seconds=3, restart_seconds=0)
    await create(provider)
    simulator.state.clock.advance(3)
    await only(provider)

    phases = []
    for _ in range(8):
        simulator.state.clock.advance(5)
        phases.append((await only(provider)).phase)

    assert phases[-1] is InstancePhase.ENDED


@pytest.mark.parametrize("how", ["exited", "error"])
async def test_what_runpod_stops_is_lost(
    provider: RunPodProvider, simulator: Simulator, how: str
) -> None:
    """And billed for its disk until it is deleted."""
    ref = await create(provider)
    simulator.state.clock.advance(10)
    await only(provider)

    simulator.state.model.end(
        simulator.state.model.pods[ref.id], how.upper(), simulator.state.clock.now()
    )
    seen = await only(provider)

    assert (seen.phase, seen.ended_by) == (InstancePhase.ENDED, EndCause.LOST)
    assert [each.kind for each in simulator.state.model.ledger.open_intervals()] == ["storage"]


async def test_a_dead_host_is_absence(provider: RunPodProvider, simulator: Simulator) -> None:
    """Which the core believes when it sees it twice."""
    ref = await create(provider)

    simulator.state.model.vanish(ref.id, simulator.state.clock.now())

    assert await provider.list_instances() == []


async def test_a_migrated_instance_is_the_same_pods_under_another_id(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """Not a restart of the old one's container: that is gone."""
    ref = await create(provider)
    before = await only(provider)
    simulator.state.clock.advance(60)
    state = simulator.state
    state.model.vanish(ref.id, state.clock.now())
    state.model.create(state.new_id(), state.bodies[0], state.clock.now())

    after = await only(provider)

    assert after.stamp == before.stamp
    assert after.ref != ref
    assert after.phase is InstancePhase.STARTING


async def test_an_image_that_cannot_be_pulled_ends_with_the_hosts_words(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """RunPod's fields don't tell; its system log does."""
    line = "failed to pull image: manifest for registry.example/app:1 not found"
    simulator.state.model.default = Behaviour(pull_seconds=4, pull_error=line)
    await create(provider)

    simulator.state.clock.advance(6)
    seen = await only(provider)

    assert (seen.phase, seen.ended_by) == (InstancePhase.ENDED, EndCause.IMAGE)
    assert line in (seen.message or "")


async def test_a_long_pull_is_no_failure(provider: RunPodProvider, simulator: Simulator) -> None:
    """However often its host is asked."""
    simulator.state.model.default = Behaviour(pull_seconds=900)
    await create(provider)

    for _ in range(3):
        simulator.state.clock.advance(100)
        assert (await only(provider)).phase is InstancePhase.STARTING


@pytest.mark.parametrize(
    ("kind", "fault", "made"),
    [
        ("no-capacity", OutOfCapacityError, 0),
        ("rejected", RejectedError, 0),
        ("invalid", RejectedError, 0),
        ("unauthorized", DeniedError, 0),
        ("balance", DeniedError, 0),
        ("forbidden", DeniedError, 0),
        ("blocked", DeniedError, 0),
        ("throttled", ThrottledError, 0),
        ("error", OutcomeUnknownError, 0),
        ("error-after", OutcomeUnknownError, 1),
        ("reset", OutcomeUnknownError, 0),
        ("reset-after", OutcomeUnknownError, 1),
        ("hang", OutcomeUnknownError, 0),
        ("hang-after", OutcomeUnknownError, 1),
        ("garbage", OutcomeUnknownError, 0),
        ("garbage-after", OutcomeUnknownError, 1),
    ],
)
async def test_a_create_that_fails_says_whether_money_may_flow(
    make_provider: Callable[..., RunPodProvider],
    simulator: Simulator,
    kind: str,
    fault: type[ProviderError],
    made: int,
) -> None:
    """And leaks nothing into its words; the next list shows what was made."""
    simulator.state.faults.add(kind, count=1)
    pod = gpu_pod(env=[{"name": "TOKEN", "value": SECRET}])

    async with make_provider(createTimeoutSeconds=1) as provider:
        with pytest.raises(ProviderError) as raised:
            await create(provider, pod)
        await asyncio.sleep(0)

        assert type(raised.value) is fault
        assert SECRET not in str(raised.value)
        assert "rpa_" not in str(raised.value)
        assert len(simulator.state.model.pods) == made


async def test_a_refused_connection_made_nothing(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """Which the core may try again."""
    offer = (await provider.list_offers(1))[0]
    await simulator.refuse()

    with pytest.raises(UnavailableError) as raised:
        await provider.create_instance(gpu_pod(), offer)

    assert not isinstance(raised.value, OutcomeUnknownError)


async def test_a_name_that_does_not_resolve_made_nothing(
    make_provider: Callable[..., RunPodProvider],
) -> None:
    """Nor does a wrong address."""
    async with make_provider(baseUrl="http://no-such-host.invalid:1") as provider:
        with pytest.raises(UnavailableError):
            await provider.create_instance(gpu_pod(), Offer("x", "NVIDIA L4", 1))


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("error", UnavailableError),
        ("reset", UnavailableError),
        ("garbage", GarbledAnswerError),
        ("blocked", DeniedError),
        ("unauthorized", DeniedError),
        ("throttled", ThrottledError),
    ],
)
async def test_a_list_that_fails_raises(
    provider: RunPodProvider, simulator: Simulator, kind: str, fault: type[ProviderError]
) -> None:
    """It never turns into a shorter list."""
    await create(provider)
    simulator.state.faults.add(kind, operation="listPods")

    with pytest.raises(fault):
        await provider.list_instances()


async def test_a_list_is_whole_or_nothing(provider: RunPodProvider, simulator: Simulator) -> None:
    """Over pages that repeat an instance, and with a second page that fails."""
    refs = {await create(provider, gpu_pod(f"app-{n}")) for n in range(7)}
    simulator.state.options = replace(simulator.state.options, page_size=3)

    simulator.state.faults.add("repeat-page", count=2)
    whole = await provider.list_instances()
    simulator.state.faults.add("broken-page", count=1)

    assert [each.ref for each in whole] != []
    assert {each.ref for each in whole} == refs
    assert len(whole) == 7
    with pytest.raises(UnavailableError):
        await provider.list_instances()


async def test_one_list_is_one_call_however_many_instances(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """Others asked for each pod, twice a tick."""
    for number in range(5):
        await create(provider, gpu_pod(f"app-{number}"))
    before = len(simulator.state.requests)

    await provider.list_instances()

    assert len(simulator.state.requests) == before + 1


async def test_a_deleted_instance_is_deleted_and_not_stopped(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """A stopped one would go on being billed. An empty 204 is an answer."""
    ref = await create(provider)

    await provider.delete_instance(ref, 30)
    await provider.delete_instance(ref, 30)

    assert [each.operation for each in simulator.state.requests][-2:] == ["deletePod"] * 2
    assert simulator.state.model.ledger.open_intervals() == []


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("error", UnavailableError),
        ("error-after", UnavailableError),
        ("conflict", UnavailableError),
        ("unauthorized", DeniedError),
        ("throttled", ThrottledError),
    ],
)
async def test_a_delete_that_fails_raises_and_can_be_repeated(
    provider: RunPodProvider, simulator: Simulator, kind: str, fault: type[ProviderError]
) -> None:
    """Whether it took effect or not."""
    ref = await create(provider)
    simulator.state.faults.add(kind, count=1, operation="deletePod")

    with pytest.raises(fault):
        await provider.delete_instance(ref, 0)
    await provider.delete_instance(ref, 0)

    assert await provider.list_instances() == []


async def test_a_delete_that_lingers_stays_in_the_list(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """204 is a promise; gone is what a list no longer shows."""
    ref = await create(provider)
    simulator.state.faults.add("lingering", count=1, seconds=60)

    await provider.delete_instance(ref, 0)
    still = await provider.list_instances()
    simulator.state.clock.advance(61)

    assert [each.ref for each in still] == [ref]
    assert await provider.list_instances() == []


async def test_strangers_are_neither_seen_nor_touched(
    provider: RunPodProvider, make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """A sibling node is seen, under its own stamp."""
    foreign = simulator.state.add_foreign("vk-looks-like-ours-but-is-not")
    async with make_provider("node-2") as sibling:
        await create(sibling, replace(gpu_pod(), stamp=make_stamp(node_name="node-2")))
    await create(provider)

    nodes = sorted(each.stamp.node_name for each in await provider.list_instances())

    assert nodes == ["node-1", "node-2"]
    assert foreign in simulator.state.model.pods


async def test_an_instance_of_ours_without_its_mark_is_a_stray(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Leaving it out would look like its death."""
    stray = simulator.state.add_foreign(instance_name(make_stamp()))

    async with make_provider() as provider:
        (seen,) = await provider.list_instances()

    assert seen.ref.id == stray
    assert seen.stamp.is_stray


async def test_a_key_that_was_rotated_is_read_again(
    make_provider: Callable[..., RunPodProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first refusal."""
    async with make_provider() as provider:
        right = "rpa_integration_key_0123456789"
        monkeypatch.setenv("RUNPOD_API_KEY", "rpa_old_key_0123456789")
        with pytest.raises(DeniedError):
            await provider.list_instances()
        monkeypatch.setenv("RUNPOD_API_KEY", f"{right}\n")

        assert await provider.list_instances() == []


async def test_a_key_that_no_header_could_carry_is_denied_and_not_shown(
    make_provider: Callable[..., RunPodProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with two lines, say."""
    async with make_provider() as provider:
        monkeypatch.setenv("RUNPOD_API_KEY", "rpa_a\r\nX-Evil: 1")
        with pytest.raises(DeniedError) as raised:
            await provider.list_instances()

    assert "rpa_a" not in str(raised.value)


async def test_the_user_agent_is_ours(provider: RunPodProvider, simulator: Simulator) -> None:
    """Without one the edge answers 403."""
    await provider.list_instances()

    assert simulator.state.requests[-1].status == 200


async def test_offers_follow_the_catalogue(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Stock and price of the configured places, in the configured order."""
    simulator.state.model.catalogue.limits[("NVIDIA L40S", "EU-RO-1")] = 0
    async with make_provider(dataCenters=["eu-ro-1", "us-ks-2"], minCudaVersion="12.4") as provider:
        found = await provider.list_offers(2)
        cpus = await provider.list_offers(0)

    assert [(each.id, each.stock.value) for each in found] == [
        ("NVIDIA L40S x2 SECURE EU-RO-1", "None"),
        ("NVIDIA L40S x2 SECURE US-KS-2", "High"),
        ("NVIDIA L4 x2 SECURE EU-RO-1", "High"),
        ("NVIDIA L4 x2 SECURE US-KS-2", "High"),
    ]
    assert found[1].usd_per_hour == pytest.approx(1.72)
    assert {each.data_center for each in cpus} == {"EU-RO-1", "US-KS-2"}


async def test_a_full_data_center_is_out_of_capacity(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Whatever the stock said a moment ago; the next one is the core's to try."""
    simulator.state.faults.add("no-capacity", data_center="EU-RO-1")
    async with make_provider(dataCenters=["EU-RO-1", "US-KS-2"]) as provider:
        full, free, *_ = await provider.list_offers(1)
        with pytest.raises(OutOfCapacityError):
            await provider.create_instance(gpu_pod(), full)
        await provider.create_instance(gpu_pod(), free)

        assert (await only(provider)).data_center == "US-KS-2"


async def test_a_cpu_pod_comes_and_goes(provider: RunPodProvider, simulator: Simulator) -> None:
    """On the first flavour."""
    pod = make_resolved_pod(containers=[make_container(resources={"requests": {"cpu": "3"}})])

    await provider.create_instance(pod, (await provider.list_offers(0))[0])
    simulator.state.clock.advance(10)

    seen = await only(provider)
    assert (seen.phase, seen.gpu_type) == (InstancePhase.RUNNING, None)
    assert seen.usd_per_hour == pytest.approx(4 * 0.035)


def private_pod(name: str) -> ResolvedPod:
    """A pod with a pull secret that fits its image."""
    login = f'{{"auths": {{"registry.example": {{"username": "me", "password": "{SECRET}"}}}}}}'
    objects = {
        ObjectKey("Secret", "default", "regcred"): {"stringData": {".dockerconfigjson": login}}
    }
    return make_resolved_pod(
        name,
        containers=[make_container(**GPU)],
        imagePullSecrets=[{"name": "regcred"}],
        objects=objects,
    )


async def test_a_login_becomes_one_registry_for_all_pods(
    provider: RunPodProvider, make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """Also for those of a later process, which finds it by name."""
    await asyncio.gather(*(create(provider, private_pod(f"app-{n}")) for n in range(3)))
    async with make_provider() as later:
        await create(later, private_pod("app-9"))

    registries = simulator.state.model.registries
    assert len(registries) == 1
    used = {body["registry"] for body in simulator.state.bodies}
    assert used == set(registries)
    assert SECRET not in next(iter(registries.values()))


async def test_a_login_that_is_not_accepted_yet_is_waited_for(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """For the minutes that RunPod takes; one that never is ends the instance."""
    simulator.state.options = replace(simulator.state.options, registry_seconds=240)
    await create(provider, private_pod("app-1"))
    phases = []
    for seconds in (40, 100, 90, 40):
        simulator.state.clock.advance(seconds)
        phases.append((await only(provider)).phase)

    assert phases == [InstancePhase.STARTING] * 3 + [InstancePhase.RUNNING]

    later = simulator.state.clock.now() + 3600
    simulator.state.model.usable_at = dict.fromkeys(simulator.state.model.registries, later)
    await create(provider, private_pod("app-2"))
    simulator.state.clock.advance(400)
    ended = [seen for seen in await provider.list_instances() if seen.ended_by is not None]
    assert [seen.ended_by for seen in ended] == [EndCause.IMAGE]


async def test_a_registry_that_a_sibling_has_just_made_is_used(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """The name is taken; the one of that name is ours as well."""
    simulator.state.faults.add("error-after", count=1, operation="createRegistry")
    with pytest.raises(UnavailableError):
        await create(provider, private_pod("app-1"))

    await create(provider, private_pod("app-1"))

    assert len(simulator.state.model.registries) == 1


async def test_a_registry_that_was_deleted_is_made_again(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """After the one create call that finds out: it made nothing, so the core calls again."""
    ref = await create(provider, private_pod("app-1"))
    await provider.delete_instance(ref, 0)
    simulator.state.model.registries.clear()

    with pytest.raises(UnavailableError, match="removed meanwhile"):
        await create(provider, private_pod("app-2"))
    await create(provider, private_pod("app-2"))

    assert len(simulator.state.model.registries) == 1


async def test_the_rate_limit_is_obeyed_without_meeting_it(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """The headers of good answers say when the minute is used up."""
    simulator.state.options = replace(simulator.state.options, requests_per_minute=3)
    clock = simulator.state.clock
    clock.advance(61 - clock.now() % 60)  # a minute that has just begun is not over soon
    async with make_provider() as provider:
        for _ in range(3):
            await provider.list_instances()
        with pytest.raises(ThrottledError):
            async with asyncio.timeout(5):
                await provider.list_instances()

    assert [each.status for each in simulator.state.requests] == [200, 200, 200]


async def test_a_create_that_is_cancelled_leaves_a_marked_instance(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """So that the next list finds whose it is."""
    simulator.state.faults.add("hold", count=1, hold_ms=5000)
    creating = asyncio.create_task(create(provider))
    async with asyncio.timeout(5):
        while not simulator.state.model.pods:  # noqa: ASYNC110  # the service has no event for it
            await asyncio.sleep(0.01)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating

    assert (await only(provider)).stamp == gpu_pod().stamp


async def test_a_call_before_the_session_is_open_is_a_fault(
    make_provider: Callable[..., RunPodProvider],
) -> None:
    """Not an exception of some library."""
    with pytest.raises(UnavailableError, match="not open"):
        await make_provider().list_instances()


def test_a_wrong_configuration_is_refused_with_every_problem() -> None:
    """Before anything is asked of RunPod."""
    context = ProviderContext(CLUSTER_ID, "node-1", "runpod", "spec.backends[0].config", "test/1")

    with pytest.raises(ConfigError) as raised:
        factory({"cloudType": "ANY", "gputypes": []}, context)

    assert len(raised.value.problems) == 3


def test_traits_are_those_of_a_service_that_bills_to_the_last(
    make_provider: Callable[..., RunPodProvider],
) -> None:
    """Starting and ended instances cost money."""
    traits = make_provider(listLagSeconds=7).traits

    assert traits.list_lag_seconds == 7
    assert [traits.ended_is_free, traits.starting_is_free, traits.restarts_in_place] == [False] * 3


async def test_a_start_time_survives_a_difference_of_clocks(
    provider: RunPodProvider, simulator: Simulator
) -> None:
    """The server's clock counts, not ours."""
    simulator.state.clock.advance(timedelta(days=3).total_seconds())
    await create(provider)
    simulator.state.clock.advance(10)
    first = await only(provider)

    simulator.state.clock.advance(3600)

    assert await only(provider) == first
