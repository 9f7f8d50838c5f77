"""What an instance holds a copy of follows its pod."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vk_provider.faults import (
    DeniedError,
    FieldProblem,
    ProviderError,
    RejectedError,
    UnavailableError,
    UnsupportedFieldsError,
)
from vk_provider.kube.references import NotWantedError
from vk_provider.loops.refreshing import Refresher
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import InstanceRef, Json, PodUID, ResolvedPod
from vk_provider.provider import ProviderTraits
from vk_provider.testing.builders import (
    make_container,
    make_observation,
    make_pod,
    make_resolved_pod,
    uid_of,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
UID = uid_of("app-1")
REF = InstanceRef("i-1")


@dataclass
class Copying:
    """A provider that holds copies."""

    traits: ProviderTraits = field(default_factory=lambda: ProviderTraits(0.0))
    refreshed: list[InstanceRef] = field(default_factory=list)
    faults: list[ProviderError] = field(default_factory=list)

    async def refresh_instance(self, ref: InstanceRef, pod: ResolvedPod) -> None:
        """Take them."""
        if self.faults:
            raise self.faults.pop()
        self.refreshed.append(ref)


@dataclass
class Backend:
    """A backend of this provider."""

    provider: Any
    name: str = "other"


@dataclass
class Workers:
    """The records of one pod."""

    records: dict[PodUID, Record] = field(default_factory=dict)


class Preparer:
    """Resolves every pod, unless something is missing."""

    missing = False
    due = False

    def __init__(self) -> None:
        self.goes: dict[PodUID, Record] | None = None
        self.held: set[PodUID] = set()

    def release(self, uid: PodUID) -> None:
        """It needs nothing any more."""
        self.held.discard(uid)

    def is_due(self, uid: PodUID) -> bool:
        """Whether a token grows old."""
        return self.due

    async def resolved(self, uid: PodUID, pod: Json) -> ResolvedPod | None:
        """The pod, or nothing; all pods may go meanwhile."""
        self.held.add(uid)
        if self.goes is not None:
            self.goes.clear()
            self.held.discard(uid)
            if self.missing:
                raise NotWantedError("nobody wants it")
            self.held.add(uid)
        return None if self.missing else make_resolved_pod()


class Clock:
    """It stands still."""

    def now(self) -> datetime:
        """The start."""
        return START


class Shell:
    """The part of it that is asked."""

    clock = Clock()

    def may_act(self) -> bool:
        """Always."""
        return True


class Bench:
    """One pod with an instance in one backend."""

    def __init__(self, provider: Any = None, *, made: bool = False, **record: Any) -> None:
        self.provider = provider or Copying()
        self.preparer = Preparer()
        self.workers = Workers()
        self.record = replace(
            Record(UID, START),
            pod=make_pod(),
            exists=Existence.PRESENT,
            backend="other",
            ref=REF,
            observation=make_observation(),
            **record,
        )
        self.workers.records[UID] = self.record
        self.events: list[tuple[str, str]] = []
        emit = lambda _, __, reason, message: self.events.append((reason, message))  # noqa: E731
        backends = {"other": Backend(self.provider)}
        parts: Any = (self.workers, self.preparer, backends, Shell(), emit)
        self.refresher = Refresher(*parts)
        if made:
            self.refresher.made(UID, make_pod())

    def put(self, **changes: Any) -> None:
        """Another version of the record."""
        self.record = replace(self.record, **changes)
        self.workers.records[UID] = self.record

    @property
    def refreshed(self) -> int:
        """How often it was."""
        return len(self.provider.refreshed)


async def test_what_this_process_made_has_all_of_it() -> None:
    """No call for nothing."""
    bench = Bench(made=True)

    await bench.refresher.once()

    assert bench.refreshed == 0


async def test_what_an_earlier_process_made_is_brought_up_to_date_once() -> None:
    """Nobody knows what it missed."""
    bench = Bench()

    await bench.refresher.once()
    await bench.refresher.once()

    assert bench.provider.refreshed == [REF]


async def test_a_create_whose_outcome_was_unknown_is_completed() -> None:
    """It may have broken off half way."""
    doubt: Any = object()
    bench = Bench(made=True, doubts=(doubt,))

    await bench.refresher.once()

    assert bench.refreshed == 1


async def test_a_changed_reference_is_brought_over() -> None:
    """Each time."""
    bench = Bench(made=True)
    await bench.refresher.once()

    bench.refresher.changed([UID])
    await bench.refresher.once()
    await bench.refresher.once()

    assert bench.refreshed == 1


async def test_changed_labels_are_brought_over_but_our_own_marks_are_not() -> None:
    """Those change as we work."""
    bench = Bench(made=True)
    await bench.refresher.once()

    bench.put(pod=make_pod(metadata={"annotations": {"vk-provider.dev/placement": "{}"}}))
    await bench.refresher.once()
    assert bench.refreshed == 0

    bench.put(pod=make_pod(metadata={"labels": {"x": "y"}}))
    await bench.refresher.once()
    assert bench.refreshed == 1


async def test_what_changed_before_the_instance_was_seen_is_not_missed() -> None:
    """It was made from an older version."""
    bench = Bench(made=True)
    bench.put(pod=make_pod(containers=[make_container(image="registry.example/app:2")]))

    await bench.refresher.once()
    await bench.refresher.once()

    assert bench.refreshed == 1


async def test_a_changed_spec_is_looked_at_at_once_and_the_same_one_is_not() -> None:
    """Whoever debugs a pod waits for it."""
    bench = Bench(made=True)
    await bench.refresher.once()

    bench.refresher.pod_changed(UID, make_pod(status={"phase": "Running"}))
    bench.refresher.pod_changed(UID, None)
    bench.refresher.pod_changed(uid_of("other"), make_pod("other"))
    assert not bench.refresher._changed.is_set()
    bench.refresher.pod_changed(UID, make_pod(ephemeralContainers=[make_container("debugger")]))

    assert bench.refresher._changed.is_set()


@pytest.mark.parametrize(
    "fault",
    [RejectedError("spec.x: no"), UnsupportedFieldsError([FieldProblem("spec.x", "no")])],
)
async def test_a_change_that_is_refused_is_told_and_not_tried_again(fault: ProviderError) -> None:
    """Until there is another one."""
    bench = Bench()
    bench.provider.faults.append(fault)

    await bench.refresher.once()
    await bench.refresher.once()

    assert bench.refreshed == 0
    ((reason, message),) = bench.events
    assert reason == "UpdateIgnored"
    assert message == "backend other refuses a change of a running pod: spec.x: no"


async def test_a_missing_right_is_told_once_and_tried_until_it_is_granted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever debugs the pod sees why nothing happens."""
    caplog.set_level(logging.WARNING)
    bench = Bench()
    bench.provider.faults += [DeniedError("pods/resize: no") for _ in range(3)]

    for _ in range(4):
        await bench.refresher.once()

    assert bench.refreshed == 1
    assert len(bench.events) == 1
    assert caplog.text.count("not up to date") == 1


async def test_a_refresh_that_failed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """With a word in the log."""
    caplog.set_level(logging.WARNING)
    bench = Bench()
    bench.provider.faults.append(UnavailableError("down"))

    await bench.refresher.once()
    assert "not up to date: down" in caplog.text

    await bench.refresher.once()
    assert bench.refreshed == 1


async def test_a_missing_reference_leaves_the_copy_as_it_is() -> None:
    """As a kubelet leaves the files; the watch tells when it is back."""
    bench = Bench()
    bench.preparer.missing = True

    await bench.refresher.once()

    assert bench.refreshed == 0


async def test_a_token_that_grows_old_is_replaced() -> None:
    """Long before it expires."""
    bench = Bench(made=True)
    await bench.refresher.once()

    bench.preparer.due = True
    await bench.refresher.once()

    assert bench.refreshed == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"exists": Existence.ABSENT, "ref": None},
        {"pod": None},
        {"backend": "elsewhere"},
        {"deleted_at": START},
        {"observation": None},
        {"pod": make_pod(status={"phase": "Failed"})},
        {"pod": make_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})},
    ],
)
async def test_what_is_not_there_or_on_its_way_out_is_left(changes: dict[str, Any]) -> None:
    """Nothing is made that somebody just ended."""
    bench = Bench()
    bench.put(**changes)

    await bench.refresher.once()

    assert bench.refreshed == 0


async def test_what_was_forgotten_leaves_nothing_behind() -> None:
    """A stale mark would wait for ever."""
    bench = Bench()
    bench.refresher.changed([UID])
    del bench.workers.records[UID]

    await bench.refresher.once()
    bench.workers.records[UID] = bench.record
    await bench.refresher.once()

    assert bench.refreshed == 1


async def test_without_a_backend_that_copies_there_is_nothing_to_do() -> None:
    """The loop ends at once."""
    bench = Bench(object(), made=True)

    bench.refresher.changed([UID])
    await bench.refresher.run()
    await bench.refresher.once()


@pytest.mark.parametrize("missing", [False, True])
async def test_pods_that_go_while_one_is_brought_up_to_date_leave_nothing(missing: bool) -> None:
    """Neither watches nor tokens are held for them again, and the loop goes on."""
    bench = Bench()
    other = uid_of("other")
    bench.workers.records[other] = replace(bench.record, uid=other)
    bench.preparer.missing, bench.preparer.goes = missing, bench.workers.records

    await bench.refresher.once()

    assert not bench.preparer.held
    assert bench.refreshed == (not missing)
