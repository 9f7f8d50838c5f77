"""``ProviderContract``: what every provider must do, as a pytest class to subclass.

    class TestAcme(ProviderContract):
        @pytest.fixture
        async def rig(self) -> AsyncIterator[ContractRig]:
            service = AcmeSimulator()                # implements ContractBackend
            async with AcmeProvider(...) as provider:
                yield ContractRig(provider, service, unsupported=(pod, {"spec.hostNetwork"}))

The provider must be entered, belong to the cluster ``builders.CLUSTER_ID``, and talk to a service
that is all its own. Where it offers exec, attach, port-forward or stats, the class also derives
from their contracts, which are in :mod:`.contract_streams`. Coroutine tests need pytest-asyncio's
``asyncio_mode = auto``, and failures read best after
``pytest.register_assert_rewrite("vk_provider.testing.contract")`` in a conftest.
Fed by :mod:`.contract_rig`; feeds whoever writes a provider.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any

import pytest

from vk_provider.faults import (
    InstanceNotFoundError,
    NotSupportedError,
    OutcomeUnknownError,
    ProviderError,
    ThrottledError,
    UnsupportedFieldsError,
)
from vk_provider.pods.types import InstancePhase, InstanceRef, LogLine, LogOptions, Terminated
from vk_provider.provider import SupportsLogs, SupportsOffers, SupportsWatch
from vk_provider.sessions import closing
from vk_provider.testing.builders import make_stamp
from vk_provider.testing.contract_money import MoneyContract
from vk_provider.testing.contract_rig import (
    CREATE_FAULTS,
    LIST_FAULTS,
    RETRY_AFTER_SECONDS,
    SECRET_VALUE,
    ContractBackend,
    ContractRig,
    CreateFailure,
    ListFailure,
)
from vk_provider.testing.contract_streams import CAPABILITY_CONTRACTS

__all__ = ["ContractBackend", "ContractRig", "CreateFailure", "ListFailure", "ProviderContract"]


class _Creating:
    """Making instances: the stamp, one try, every fault for its cause."""

    async def test_a_created_instance_is_listed_under_its_stamp(self, rig: ContractRig) -> None:
        """Within ``list_lag_seconds``, with the reference that create returned."""
        pod = rig.pod()

        ref = await rig.create(pod)

        assert (await rig.shown(ref)).stamp == pod.stamp

    async def test_a_cancelled_create_is_found_by_its_stamp(self, rig: ContractRig) -> None:
        """Cancelled after the service made it: the list alone tells whose it is."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        await rig.backend.hold_next_create()
        creating = asyncio.create_task(rig.provider.create_instance(pod, offer))
        await rig.backend.create_held()

        creating.cancel()
        with suppress(asyncio.CancelledError):
            await creating
        await rig.settle()

        assert [each.stamp for each in await rig.provider.list_instances()] == [pod.stamp]

    @pytest.mark.parametrize("failure", CreateFailure)
    async def test_a_failed_create_raises_the_fault_of_its_cause(
        self, rig: ContractRig, failure: CreateFailure
    ) -> None:
        """The core decides by the class alone whether money may be flowing."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        await rig.backend.fail_next_create(failure)

        with pytest.raises(ProviderError) as raised:
            await rig.provider.create_instance(pod, offer)

        assert isinstance(raised.value, CREATE_FAULTS[failure])
        assert SECRET_VALUE not in str(raised.value)
        made = 1 if failure is CreateFailure.OUTCOME_UNKNOWN else 0
        assert len(await rig.backend.instance_ids()) == made

    async def test_throttling_hands_the_wish_on(self, rig: ContractRig) -> None:
        """How long to wait is the service's to say."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        await rig.backend.fail_next_create(CreateFailure.THROTTLED)

        with pytest.raises(ThrottledError) as raised:
            await rig.provider.create_instance(pod, offer)

        assert raised.value.retry_after_seconds == pytest.approx(RETRY_AFTER_SECONDS, abs=1)

    async def test_a_failed_create_is_not_tried_again(self, rig: ContractRig) -> None:
        """Retrying is the core's: two tries in two places multiply."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        await rig.backend.fail_next_create(CreateFailure.OUTCOME_UNKNOWN)
        before = len(await rig.backend.create_requests())

        with pytest.raises(OutcomeUnknownError):
            await rig.provider.create_instance(pod, offer)

        assert len(await rig.backend.create_requests()) == before + 1

    async def test_a_lost_answer_leaves_an_instance_that_lists_show(self, rig: ContractRig) -> None:
        """That is how the core learns the outcome."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        await rig.backend.fail_next_create(CreateFailure.OUTCOME_UNKNOWN)

        with pytest.raises(OutcomeUnknownError):
            await rig.provider.create_instance(pod, offer)
        await rig.settle()

        assert [each.stamp for each in await rig.provider.list_instances()] == [pod.stamp]

    async def test_unsupported_fields_are_named_all_at_once(self, rig: ContractRig) -> None:
        """By explain and by create alike, and nothing is sent."""
        pod, paths = rig.unsupported
        offer = await rig.offer(rig.pod())

        with pytest.raises(UnsupportedFieldsError) as explained:
            rig.provider.explain(pod, offer)
        with pytest.raises(UnsupportedFieldsError) as created:
            await rig.provider.create_instance(pod, offer)

        assert {each.path for each in explained.value.problems} == set(paths)
        assert created.value.problems == explained.value.problems
        assert not await rig.backend.create_requests()

    async def test_what_could_not_be_filled_in_is_not_dropped(self, rig: ContractRig) -> None:
        """A variable that only the place where the pod runs could know is honoured or refused."""
        source = {"fieldRef": {"fieldPath": "status.podIP"}}
        pod = rig.pod("app-1", {"name": "OWN_ADDRESS", "valueFrom": source})
        offer = await rig.offer(pod)
        refusal = nullcontext() if rig.fills_in_addresses else pytest.raises(UnsupportedFieldsError)

        with refusal as raised:
            rig.provider.explain(pod, offer)

        if raised is not None:
            assert set(pod.unresolvable) <= set(raised.value.problems)

    async def test_creates_run_side_by_side(self, rig: ContractRig) -> None:
        """Each makes its own instance."""
        pods = [rig.pod(f"app-{number}") for number in range(8)]
        offer = await rig.offer(pods[0])

        refs = await asyncio.gather(*(rig.provider.create_instance(pod, offer) for pod in pods))
        await rig.settle()

        listed = {each.ref: each.stamp for each in await rig.provider.list_instances()}
        assert listed == dict(zip(refs, (pod.stamp for pod in pods), strict=True))

    async def test_a_create_leaves_the_pod_as_it_is(self, rig: ContractRig) -> None:
        """Pods are the watch cache's own objects."""
        pod = rig.pod()
        before = copy.deepcopy(pod)

        await rig.create(pod)

        assert pod == before


class _Deleting:
    """Ending instances."""

    async def test_a_deleted_instance_leaves_the_list(self, rig: ContractRig) -> None:
        """Within ``list_lag_seconds`` and the grace it was given."""
        ref = await rig.running(rig.pod())

        await rig.provider.delete_instance(ref, 1)
        await rig.backend.advance(1)
        await rig.settle()

        assert await rig.found(ref) is None
        assert ref.id not in await rig.backend.instance_ids()

    async def test_deleting_twice_succeeds(self, rig: ContractRig) -> None:
        """Whoever is not sure deletes again."""
        ref = await rig.create(rig.pod())

        await rig.provider.delete_instance(ref, 0)
        await rig.provider.delete_instance(ref, 0)

        await rig.settle()
        assert await rig.found(ref) is None

    async def test_deleting_what_never_was_succeeds(self, rig: ContractRig) -> None:
        """Already gone is what was wanted."""
        await rig.provider.delete_instance(InstanceRef("never-was"), 0)

    async def test_a_delete_touches_nothing_else(self, rig: ContractRig) -> None:
        """Neighbours of the same pod's name included."""
        kept, gone = await rig.create(rig.pod("app-1")), await rig.create(rig.pod("app-2"))

        await rig.provider.delete_instance(gone, 0)
        await rig.settle()

        assert list(await rig.backend.instance_ids()) == [kept.id]


class _Listing:
    """Seeing what is there: ours, all of it, truthfully."""

    async def test_nothing_there_is_an_empty_list(self, rig: ContractRig) -> None:
        """Not a fault."""
        assert list(await rig.provider.list_instances()) == []

    async def test_other_clusters_and_strangers_are_not_listed(self, rig: ContractRig) -> None:
        """What is not listed can't be deleted by mistake."""
        await rig.backend.add_instance(make_stamp(cluster_id="cluster-2"))
        await rig.backend.add_instance(None)
        await rig.settle()

        assert list(await rig.provider.list_instances()) == []

    async def test_other_nodes_of_the_cluster_are_listed(self, rig: ContractRig) -> None:
        """With their own stamp: the core sorts them out and reports those of no node."""
        sibling = make_stamp("app-9", node_name="node-2")
        await rig.backend.add_instance(sibling)
        await rig.settle()

        assert [each.stamp for each in await rig.provider.list_instances()] == [sibling]

    async def test_an_unchanged_instance_reads_the_same(self, rig: ContractRig) -> None:
        """However late: equal observations cost nothing, so no clock may leak into them."""
        ref = await rig.running(rig.pod())
        first = await rig.shown(ref)

        await rig.backend.advance(5)

        assert await rig.shown(ref) == first

    async def test_all_are_listed_however_many(self, rig: ContractRig) -> None:
        """Whatever the size of the service's pages."""
        stamps = {make_stamp(f"app-{number}") for number in range(120)}
        for stamp in stamps:
            await rig.backend.add_instance(stamp)
        await rig.settle()

        assert {each.stamp for each in await rig.provider.list_instances()} == stamps

    async def test_a_running_instance_reads_as_running(self, rig: ContractRig) -> None:
        """With every container by its name in the pod."""
        pod = rig.pod()
        ref = await rig.running(pod)

        seen = await rig.shown(ref)

        assert seen.phase is InstancePhase.RUNNING
        assert [each.name for each in seen.containers] == [each.name for each in pod.containers]

    @pytest.mark.parametrize("exit_code", [0, 3])
    async def test_an_end_is_told_truthfully_or_not_at_all(
        self, rig: ContractRig, exit_code: int
    ) -> None:
        """An exit code or a time that the service does not tell is absent, never made up."""
        ref = await rig.running(rig.pod())
        await rig.backend.end_instance(ref, exit_code)

        seen = await rig.found(ref)

        if seen is None:
            return
        assert seen.phase is InstancePhase.ENDED
        for state in (each.state for each in seen.containers):
            assert isinstance(state, Terminated)
            assert state.exit_code in (exit_code, None)
            if state.started_at and state.finished_at:
                assert state.started_at <= state.finished_at

    @pytest.mark.parametrize("failure", ListFailure)
    async def test_a_failed_list_raises_and_never_shortens(
        self, rig: ContractRig, failure: ListFailure
    ) -> None:
        """A list that lacks something would be read as deaths."""
        await rig.create(rig.pod())
        await rig.backend.fail_next_list(failure)

        with pytest.raises(ProviderError) as raised:
            await rig.provider.list_instances()

        assert isinstance(raised.value, LIST_FAULTS[failure])
        assert len(await rig.provider.list_instances()) == 1

    async def test_an_unreadable_instance_is_unknown(self, rig: ContractRig) -> None:
        """One odd record neither hides itself nor breaks the list."""
        odd, good = await rig.running(rig.pod("app-1")), await rig.running(rig.pod("app-2"))
        await rig.backend.garble_instance(odd)

        assert (await rig.shown(odd)).phase is InstancePhase.UNKNOWN
        assert (await rig.shown(good)).phase is InstancePhase.RUNNING


class _Explaining:
    """Showing what would be asked for, without asking and without secrets."""

    async def test_explain_is_what_create_sends(self, rig: ContractRig) -> None:
        """But for what is masked."""
        pod = rig.pod()
        offer = await rig.offer(pod)

        explained = rig.provider.explain(pod, offer).request
        await rig.provider.create_instance(pod, offer)

        (sent,) = await rig.backend.create_requests()
        assert list(_differences(explained, sent)) == []

    async def test_explain_sends_nothing_and_changes_nothing(self, rig: ContractRig) -> None:
        """The same question, the same answer."""
        pod = rig.pod()
        offer = await rig.offer(pod)
        before = copy.deepcopy(pod)

        first, second = rig.provider.explain(pod, offer), rig.provider.explain(pod, offer)

        assert first == second
        assert pod == before
        assert not await rig.backend.create_requests()

    async def test_explain_masks_secrets(self, rig: ContractRig) -> None:
        """Wherever in the request they stand; plain values stay readable."""
        pod = rig.pod()

        explanation = rig.provider.explain(pod, await rig.offer(pod))

        assert SECRET_VALUE not in repr(explanation)
        assert "plain" in repr(explanation)

    async def test_secrets_reach_the_service_and_nobody_else(
        self, rig: ContractRig, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Not a log at any level, not a repr, not an observation."""
        caplog.set_level(logging.DEBUG)
        pod = rig.pod()

        ref = await rig.running(pod)
        seen = await rig.shown(ref)

        assert SECRET_VALUE in repr(await rig.backend.create_requests())
        shown = [caplog.text, *map(repr, (pod, ref, seen, rig.provider, rig.provider.traits))]
        assert [text for text in shown if SECRET_VALUE in text] == []


class _Capabilities:
    """What is offered beyond the least really works."""

    async def test_capacity_is_a_map_of_quantities(self, rig: ContractRig) -> None:
        """Texts, as Kubernetes writes them."""
        resources = (await rig.provider.capacity()).resources

        assert all(isinstance(value, str) for value in resources.values())

    async def test_offers_have_ids_that_stay(self, rig: ContractRig) -> None:
        """Cool-downs and placements are remembered by them."""
        if not isinstance(rig.provider, SupportsOffers):
            return
        first, second = await rig.provider.list_offers(0), await rig.provider.list_offers(0)
        with_gpu = await rig.provider.list_offers(1)

        ids = [each.id for each in first]
        assert ids == [each.id for each in second]
        assert len(set(ids)) == len(ids)
        assert all(each.gpu_count == 1 for each in with_gpu)

    async def test_logs_come_in_order_and_honour_tail_and_since(self, rig: ContractRig) -> None:
        """The last lines, or those from a moment on."""
        if not isinstance(rig.provider, SupportsLogs):
            return
        ref = await rig.running(rig.pod())
        for number in range(5):
            await rig.backend.advance(2)
            await rig.backend.write_log(ref, "main", f"number {number}")

        lines = [each for each in await _logs(rig, ref) if each.text.startswith(b"number")]

        assert [each.text for each in lines] == [f"number {n}".encode() for n in range(5)]
        assert [each.timestamp for each in lines] == sorted(each.timestamp for each in lines)
        assert (await _logs(rig, ref, tail_lines=2))[-2:] == lines[-2:]
        since = lines[3].timestamp - timedelta(milliseconds=1)
        assert (await _logs(rig, ref, since=since))[-2:] == lines[3:]

    async def test_followed_logs_end_with_their_container(self, rig: ContractRig) -> None:
        """After the last line has been read."""
        if not isinstance(rig.provider, SupportsLogs):
            return
        ref = await rig.running(rig.pod())
        following = asyncio.create_task(_logs(rig, ref, follow=True))
        await asyncio.sleep(0)

        await rig.backend.write_log(ref, "main", "the last words")
        await rig.backend.end_instance(ref, 0)

        async with asyncio.timeout(30):
            assert (await following)[-1].text == b"the last words"

    async def test_logs_of_what_is_not_there_say_so(self, rig: ContractRig) -> None:
        """With a fault of their own, which becomes a 404."""
        if not isinstance(rig.provider, SupportsLogs):
            return

        with pytest.raises((InstanceNotFoundError, NotSupportedError)):
            await _logs(rig, InstanceRef("never-was"))

    async def test_watches_show_what_lists_show(self, rig: ContractRig) -> None:
        """An observation that was pushed equals the one that is listed."""
        if not isinstance(rig.provider, SupportsWatch):
            return
        async with closing(rig.provider.watch_instances()) as changes:
            ref = await rig.running(rig.pod())

            async with asyncio.timeout(30):
                async for seen in changes:
                    if seen.phase is InstancePhase.RUNNING:
                        break

        assert seen == await rig.shown(ref)

    async def test_what_is_offered_is_tried(self, rig: ContractRig) -> None:
        """Streams and stats have contracts of their own: a class takes those of what is offered."""
        for protocol, contract in CAPABILITY_CONTRACTS:
            offered, tried = isinstance(rig.provider, protocol), isinstance(self, contract)
            remedy = "derive from" if offered else "do not derive from"
            assert offered == tried, f"{type(self).__name__} must {remedy} {contract.__name__}"

    async def test_closing_twice_is_harmless(self, rig: ContractRig) -> None:
        """A stop that fails half way closes again."""
        await rig.provider.__aexit__(None, None, None)


class ProviderContract(_Creating, _Deleting, _Listing, _Explaining, _Capabilities, MoneyContract):
    """Subclass it, and give it a provider and its service by overriding :meth:`rig`."""

    @pytest.fixture
    def rig(self) -> ContractRig:
        """The provider under test, entered, and the service behind it."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture `rig`")


async def _logs(rig: ContractRig, ref: InstanceRef, **options: Any) -> list[LogLine]:
    assert isinstance(rig.provider, SupportsLogs)
    async with closing(rig.provider.read_logs(ref, "main", LogOptions(**options))) as lines:
        return [line async for line in lines]


def _differences(explained: Any, sent: Any, path: str = "request") -> Iterator[str]:
    """Where two requests differ otherwise than by a secret that is masked in the first."""
    if isinstance(explained, Mapping) and isinstance(sent, Mapping):
        if explained.keys() != sent.keys():
            yield f"{path}: explained {sorted(explained)}, sent {sorted(sent)}"
        for key in explained.keys() & sent.keys():
            yield from _differences(explained[key], sent[key], f"{path}.{key}")
    elif isinstance(explained, list | tuple) and isinstance(sent, list | tuple):
        if len(explained) != len(sent):
            yield f"{path}: explained {len(explained)} entries, sent {len(sent)}"
        for index, pair in enumerate(zip(explained, sent, strict=False)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif explained != sent and SECRET_VALUE not in str(sent):
        yield f"{path}: explained {explained!r}, sent {sent!r}"
