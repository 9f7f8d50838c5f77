"""The fake provider beyond the contract: what tests, rehearsals and benchmarks do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import pytest

from vk_provider.faults import (
    ConfigError,
    DeniedError,
    InstanceNotFoundError,
    NotSupportedError,
    OutOfCapacityError,
    RejectedError,
    UnavailableError,
    UnsupportedFieldsError,
)
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    EndCause,
    InstancePhase,
    InstanceRef,
    LogLine,
    LogOptions,
    Observation,
    ResolvedPod,
    Running,
    Stock,
    Terminated,
)
from vk_provider.provider import ProviderContext, SupportsKnownOffers, capabilities
from vk_provider.testing.builders import (
    CLUSTER_ID,
    NODE_NAME,
    make_container,
    make_resolved_pod,
    make_stamp,
    uid_of,
)
from vk_provider.testing.fake import (
    FakeBackend,
    FakeConfig,
    FakeOffer,
    FakeProvider,
    ManualClock,
    factory,
)

CONTEXT = ProviderContext(CLUSTER_ID, NODE_NAME, "fake", "spec.backends[0].config", "tests")


def fake(**config: Any) -> tuple[FakeProvider, ManualClock]:
    """A provider over a service of its own, and the clock of that service."""
    clock = ManualClock()
    backend = FakeBackend(FakeConfig(**config), clock)
    return FakeProvider(backend, CLUSTER_ID), clock


def annotated(**wishes: str) -> ResolvedPod:
    """A pod that tells the fake service what to do with it."""
    prefix = "fake.vk-provider.dev/"
    annotations = {prefix + name.replace("_", "-"): value for name, value in wishes.items()}
    return make_resolved_pod(metadata={"annotations": annotations})


async def only(provider: FakeProvider) -> Observation:
    """The one instance there is."""
    (seen,) = await provider.list_instances()
    return seen


async def logs(provider: FakeProvider, ref: InstanceRef, options: LogOptions) -> list[LogLine]:
    """The lines of the container."""
    return [line async for line in provider.read_logs(ref, "main", options)]


def test_the_entry_point_checks_its_block() -> None:
    """And names the path it stands at."""
    with pytest.raises(ConfigError, match=r"spec\.backends\[0\]\.config\.nope"):
        factory({"nope": 1}, CONTEXT)


def test_a_named_service_is_shared_and_an_unnamed_one_is_not() -> None:
    """Two nodes on one account; a provider that comes back after a restart."""
    first, second = (factory({"service": "shared"}, CONTEXT) for _ in range(2))
    alone, lonely = (factory({}, CONTEXT) for _ in range(2))

    assert first.backend is second.backend
    assert alone.backend is not lonely.backend


def test_all_capabilities_are_there() -> None:
    """The fake is also what shows how to write them."""
    provider, _ = fake()

    assert set(capabilities(provider)) >= {"offers", "watch", "logs"}
    assert isinstance(provider, SupportsKnownOffers)


async def test_known_offers_are_offers_of_unknown_stock() -> None:
    """Nobody was asked."""
    provider, _ = fake(offers=(FakeOffer("a", capacity=0),))

    assert [each.stock for each in provider.known_offers(0)] == [Stock.UNKNOWN]
    assert [each.stock for each in await provider.list_offers(0)] == [Stock.NONE]


async def test_capacity_is_what_was_configured() -> None:
    """Or the fault that a test asked for."""
    provider, _ = fake(capacity={"cpu": "8"})

    assert (await provider.capacity()).resources == {"cpu": "8"}
    provider.backend.script.fail_always("capacity", UnavailableError("down"))
    with pytest.raises(UnavailableError):
        await provider.capacity()
    provider.backend.script.heal()
    assert (await provider.capacity()).resources


async def test_an_instance_starts_and_ends_by_its_times() -> None:
    """Nothing but the clock moves it."""
    provider, clock = fake(start_after_seconds=10, run_seconds=5, exit_code=3)
    await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
    phases = []

    for _ in range(3):
        phases.append((await only(provider)).phase)
        clock.now += 10

    assert phases == [InstancePhase.STARTING, InstancePhase.RUNNING, InstancePhase.ENDED]
    (container,) = (await only(provider)).containers
    assert isinstance(container.state, Terminated)
    assert (container.state.exit_code, container.state.reason) == (3, "Error")


async def test_annotations_steer_an_instance() -> None:
    """So that a test across a process boundary can."""
    provider, clock = fake()
    pod = annotated(start_after_seconds="1", run_seconds="2", exit_code="0")
    await provider.create_instance(pod, IMPLICIT_OFFER)

    clock.now += 3

    (container,) = (await only(provider)).containers
    assert isinstance(container.state, Terminated)
    assert container.state.reason == "Completed"


async def test_annotations_ask_for_refusals() -> None:
    """Of every kind that a pod can bring about."""
    provider, _ = fake()

    with pytest.raises(OutOfCapacityError):
        await provider.create_instance(annotated(out_of_capacity="true"), IMPLICIT_OFFER)
    with pytest.raises(RejectedError, match="bad image"):
        await provider.create_instance(annotated(rejected="bad image"), IMPLICIT_OFFER)
    with pytest.raises(UnsupportedFieldsError) as raised:
        await provider.create_instance(
            annotated(unsupported="a.b", run_seconds="x"), IMPLICIT_OFFER
        )

    assert [each.path for each in raised.value.problems] == [
        "a.b",
        "metadata.annotations[fake.vk-provider.dev/run-seconds]",
    ]


async def test_an_offer_runs_out() -> None:
    """What was deleted or has ended makes room again."""
    provider, clock = fake(offers=(FakeOffer("a", capacity=1), FakeOffer("b")), run_seconds=5)
    scarce, endless = await provider.list_offers(0)
    await provider.create_instance(make_resolved_pod("x"), scarce)

    with pytest.raises(OutOfCapacityError, match="all 1 of a"):
        await provider.create_instance(make_resolved_pod("y"), scarce)
    await provider.create_instance(make_resolved_pod("y"), endless)
    clock.now += 5
    await provider.create_instance(make_resolved_pod("z"), scarce)


async def test_init_containers_end_and_sidecars_stay() -> None:
    """As they do at home."""
    init = [make_container("prepare"), make_container("proxy", restartPolicy="Always")]
    provider, clock = fake(start_after_seconds=1, direct_addresses=True)
    await provider.create_instance(make_resolved_pod(initContainers=init), IMPLICIT_OFFER)
    waiting = await only(provider)

    clock.now += 1

    prepare, proxy = (await only(provider)).init_containers
    assert isinstance(prepare.state, Terminated)
    assert isinstance(proxy.state, Running)
    assert waiting.addresses == ()
    assert (await only(provider)).addresses == ("10.64.0.1",)


async def test_ends_that_are_not_the_containers_own_say_why() -> None:
    """Preempted, died, vanished, unreadable."""
    provider, _ = fake()
    backend = provider.backend
    refs = [
        await provider.create_instance(make_resolved_pod(f"p{n}"), IMPLICIT_OFFER) for n in range(4)
    ]

    backend.preempt(refs[0])
    backend.die(refs[1])
    backend.lose(refs[2])
    backend.garble(refs[3])

    seen = {each.ref: each for each in await provider.list_instances()}
    assert seen[refs[0]].ended_by is EndCause.PREEMPTED
    assert seen[refs[1]].ended_by is EndCause.LOST
    assert refs[2] not in seen
    assert seen[refs[3]].phase is InstancePhase.UNKNOWN


async def test_a_deleted_instance_shows_as_deleting_while_lists_lag() -> None:
    """And is gone afterwards."""
    provider, clock = fake(list_lag_seconds=5)
    ref = await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
    assert list(await provider.list_instances()) == []
    clock.now += 5

    await provider.delete_instance(ref, 30)

    assert (await only(provider)).phase is InstancePhase.DELETING
    with pytest.raises(InstanceNotFoundError):
        provider.backend.find(ref)
    clock.now += 5
    assert list(await provider.list_instances()) == []


async def test_the_ledger_tells_who_paid_for_what() -> None:
    """Per instance, and in all it never bills one pod twice at once unless somebody erred."""
    provider, clock = fake(offers=(FakeOffer("a", usd_per_hour=3600.0),), ended_is_free=False)
    (offer,) = await provider.list_offers(0)
    ref = await provider.create_instance(make_resolved_pod(), offer)
    provider.backend.add(None)
    clock.now += 2
    provider.backend.end(ref)
    clock.now += 3
    await provider.delete_instance(ref, 0)
    clock.now += 4

    (bill,) = provider.backend.bills(uid_of("app-1"))
    assert (bill.stop - bill.start, bill.usd, bill.is_open) == (5, 5.0, False)
    assert provider.backend.bills() == (bill,)
    assert not provider.backend.billed_twice()
    assert not provider.backend.ledger.open_bills(clock.now)


async def test_two_instances_of_a_pod_are_billed_twice() -> None:
    """One after the other is fine, side by side is not."""
    provider, clock = fake()
    backend = provider.backend
    backend.add(make_stamp("one"))
    for name in ("other", "one"):
        ref = backend.add(make_stamp(name)).ref
        clock.now += 1
        backend.end(ref)
    backend.add(make_stamp("other"))

    assert backend.billed_twice() == {uid_of("one")}
    assert len(backend.instances_of(uid_of("one"))) == 2


async def test_scripted_faults_hit_the_calls_they_are_for() -> None:
    """Once each, before or after the work was done."""
    provider, _ = fake()
    provider.backend.script.fail_next("delete", UnavailableError("down"))
    provider.backend.script.fail_next("offers", DeniedError("no"), times=2)
    ref = await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)

    with pytest.raises(UnavailableError):
        await provider.delete_instance(ref, 0)
    for _ in range(2):
        with pytest.raises(DeniedError):
            await provider.list_offers(0)

    assert await provider.list_offers(0)
    assert await provider.list_instances()
    assert provider.backend.calls["offers"] == 3


async def test_a_held_create_goes_on_when_it_is_let_go() -> None:
    """Its answer was only kept back."""
    provider, _ = fake()
    script = provider.backend.script
    script.release()
    script.hold_next_create()
    creating = asyncio.create_task(provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER))
    await script.create_held()
    assert provider.backend.instances

    script.hold_next_create()
    script.release()
    await provider.create_instance(make_resolved_pod("b"), IMPLICIT_OFFER)
    script.hold_next_create()
    creating.cancel()

    with pytest.raises(asyncio.CancelledError):
        await creating


@pytest.mark.looptime
async def test_a_watch_pushes_changes_when_they_are_due() -> None:
    """With the loop's own clock, and without a timer per instance."""
    backend = FakeBackend(FakeConfig(start_after_seconds=10, run_seconds=20, create_seconds=2))
    provider = FakeProvider(backend, CLUSTER_ID)
    backend.add(make_stamp("other", cluster_id="cluster-2"))
    await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
    loop, seen = asyncio.get_running_loop(), []
    started = loop.time()

    async with aclosing(cast(AsyncGenerator[Observation], provider.watch_instances())) as changes:
        async for change in changes:
            seen.append((change.phase, round(loop.time() - started)))
            if change.phase is InstancePhase.ENDED:
                break

    assert seen == [
        (InstancePhase.STARTING, 0),
        (InstancePhase.RUNNING, 9),
        (InstancePhase.ENDED, 29),
    ]


async def test_a_broken_watch_raises() -> None:
    """The core restarts it."""
    provider, _ = fake()
    provider.backend.script.fail_next("watch", UnavailableError("cut"))

    with pytest.raises(UnavailableError):
        await anext(aiter(provider.watch_instances()))


@pytest.mark.looptime
async def test_planned_lines_are_followed_to_the_end() -> None:
    """One every two seconds of the loop's clock."""
    backend = FakeBackend()
    provider = FakeProvider(backend, CLUSTER_ID)
    pod = annotated(start_after_seconds="3", run_seconds="5", log_every_seconds="2")
    ref = await provider.create_instance(pod, IMPLICIT_OFFER)

    lines = await logs(provider, ref, LogOptions(follow=True))

    assert [line.text for line in lines] == [b"started", b"line 1", b"line 2"]
    assert [line.text for line in await logs(provider, ref, LogOptions(tail_lines=1))] == [
        b"line 2"
    ]


async def test_logs_end_when_their_instance_is_deleted() -> None:
    """A follower is never left hanging."""
    provider, _ = fake()
    ref = await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
    following = asyncio.create_task(logs(provider, ref, LogOptions(follow=True)))
    await asyncio.sleep(0)

    await provider.delete_instance(ref, 0)

    assert [line.text for line in await following] == [b"started"]


async def test_logs_that_do_not_exist_say_so() -> None:
    """An earlier run, another container."""
    provider, _ = fake()
    ref = await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)

    with pytest.raises(NotSupportedError):
        await logs(provider, ref, LogOptions(previous=True))
    with pytest.raises(InstanceNotFoundError, match="no container nope"):
        await anext(aiter(provider.read_logs(ref, "nope", LogOptions())))


async def test_only_the_latest_requests_are_kept() -> None:
    """A rehearsal may run for days."""
    provider, _ = fake()
    provider.backend.requests.extend({"number": number} for number in range(5_000))

    assert len(provider.backend.requests) == 1_000


async def test_a_watcher_is_told_of_all_owners_or_of_one() -> None:
    """And forgotten when it closes."""
    provider, _ = fake()
    watchers = provider.backend.watchers

    with watchers.open() as everybody, watchers.open("cluster-2") as other:
        ref = await provider.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
        watchers.wake()
        assert everybody.take(0) == (ref.id,)
        assert other.take(0) == ()

    provider.backend.end(ref)
    assert everybody.take(0) == ()


def test_without_a_loop_the_service_has_a_clock_too() -> None:
    """Tests may script it from anywhere."""
    backend = FakeBackend()

    assert backend.add(make_stamp()).created_at > 0
    assert backend.wall_time(1) == backend.wall_time(1)
