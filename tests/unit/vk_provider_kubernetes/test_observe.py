"""A remote pod as the core sees it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.observe import NODE, is_gated, observe, removed
from vk_provider_kubernetes.translate import GATE

from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    Observation,
    Running,
    Terminated,
    Waiting,
)
from vk_provider.testing.builders import make_stamp

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
STAMP = make_stamp()


def pod(phase: str, *, spec: Any = None, metadata: Any = None, **status: Any) -> dict[str, Any]:
    """A remote pod."""
    own = {"namespace": "vk", "name": "app", "uid": "u1", "annotations": marks.full(STAMP)}
    created = {"creationTimestamp": "2026-11-01T11:59:00Z"}
    return {
        "metadata": {**own, **created, **(metadata or {})},
        "spec": spec or {},
        "status": {"phase": phase, **status},
    }


def seen(phase: str, **fields: Any) -> Observation:
    """What is observed of it."""
    return observe(pod(phase, **fields), STAMP, NOW)


def container(**state: Any) -> dict[str, Any]:
    """A container's status."""
    return {"name": "main", "image": "i", "restartCount": 0, "ready": False, "state": state}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    """A condition of a pod."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def test_a_running_pod_is_told_in_full() -> None:
    """With its addresses, its node and its reference."""
    ready = {**container(running={"startedAt": "2026-11-01T11:59:30Z"}), "ready": True}
    identity = {"imageID": "sha", "containerID": "containerd://c1"}

    found = seen(
        "Running",
        spec={"nodeName": "real-1"},
        containerStatuses=[{**ready, **identity}],
        podIPs=[{"ip": "10.1.0.9"}, {"ip": "fd00::9"}],
    )

    started = Running(NOW - timedelta(seconds=30))
    assert found.phase is InstancePhase.RUNNING
    assert found.containers == (
        ContainerObservation(
            "main", started, ready=True, image="i", image_id="sha", container_id="containerd://c1"
        ),
    )
    assert (found.ref.id, found.stamp) == ("vk/app/u1", STAMP)
    assert found.addresses == ("10.1.0.9", "fd00::9")
    assert found.created_at == NOW - timedelta(minutes=1)
    assert found.annotations == {NODE: "real-1"}


def test_restarts_in_place_are_the_other_kubelets_word() -> None:
    """Count, last end and the wait for the next try."""
    ended = {"exitCode": 3, "reason": "Error", "signal": 9, "finishedAt": "2026-11-01T11:00:00Z"}
    waiting = container(waiting={"reason": "CrashLoopBackOff", "message": "back-off 10s"})
    status = {**waiting, "restartCount": 4, "lastState": {"terminated": ended}}

    (found,) = seen("Running", containerStatuses=[status]).containers

    assert found.state == Waiting("CrashLoopBackOff", "back-off 10s")
    assert found.restart_count == 4
    last = found.last_state
    assert isinstance(last, Terminated)
    assert (last.exit_code, last.signal, last.reason) == (3, 9, "Error")
    assert last.finished_at == NOW - timedelta(hours=1)


def test_init_containers_are_told_apart() -> None:
    """A sidecar is one of them."""
    found = seen("Pending", initContainerStatuses=[container(running={})])

    assert [each.name for each in found.init_containers] == ["main"]
    assert found.init_containers[0].state == Running()
    assert found.containers == ()


def test_what_waits_for_a_node_says_why() -> None:
    """In the other scheduler's words."""
    unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")

    found = seen("Pending", conditions=[unscheduled])

    assert found.phase is InstancePhase.STARTING
    assert (found.reason, found.message) == ("Unschedulable", "0/3 nodes are available")


def test_what_waits_for_a_queue_over_there_says_so() -> None:
    """A gate of the other cluster's own is why nothing happens; ours is no news."""
    gated = condition("PodScheduled", "False", "SchedulingGated", "non-empty scheduling gates")
    gates = [{"name": GATE}, {"name": "kueue.x-k8s.io/admission"}]

    found = seen("Pending", spec={"schedulingGates": gates}, conditions=[gated])

    assert found.reason == "SchedulingGated"
    assert found.message == "its gate kueue.x-k8s.io/admission is closed in the other cluster"


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [condition("PodScheduled", "True", "")],
        [condition("PodScheduled", "False", "SchedulingGated", "our gate")],
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(conditions: list[dict[str, str]]) -> None:
    """Our own gate is no news either."""
    found = seen("Pending", conditions=conditions)

    assert (found.reason, found.message) == (None, None)


def test_image_trouble_stays_in_its_container() -> None:
    """The core shows it as a kubelet does."""
    status = container(waiting={"reason": "ImagePullBackOff", "message": "no such image"})

    found = seen("Pending", containerStatuses=[status])

    assert found.phase is InstancePhase.STARTING
    assert found.containers[0].state == Waiting("ImagePullBackOff", "no such image")


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 3)])
def test_a_containers_own_end_has_no_other_cause(phase: str, code: int) -> None:
    """Its code says all."""
    found = seen(phase, containerStatuses=[container(terminated={"exitCode": code})])

    assert found.phase is InstancePhase.ENDED
    assert found.ended_by is None
    assert found.containers[0].state == Terminated(exit_code=code)


@pytest.mark.parametrize(
    ("status", "cause", "message"),
    [
        (
            {"reason": "Evicted", "message": "disk pressure"},
            EndCause.PREEMPTED,
            "Evicted: disk pressure",
        ),
        (
            {"conditions": [condition("DisruptionTarget", "True", "PreemptionByScheduler", "m")]},
            EndCause.PREEMPTED,
            "PreemptionByScheduler: m",
        ),
        (
            {"conditions": [condition("DisruptionTarget", "True", "DeletionByPodGC")]},
            EndCause.LOST,
            "DeletionByPodGC",
        ),
        (
            {"conditions": [condition("DisruptionTarget", "True", "TerminationByKubelet")]},
            EndCause.PREEMPTED,
            "TerminationByKubelet",
        ),
        (
            {
                "reason": "NodeAffinity",
                "conditions": [condition("DisruptionTarget", "True", "TerminationByKubelet", "m")],
            },
            EndCause.LOST,
            "NodeAffinity: m",
        ),
        ({"reason": "UnexpectedAdmissionError"}, EndCause.LOST, "UnexpectedAdmissionError"),
        ({"message": "no words but these"}, EndCause.LOST, "no words but these"),
        ({}, EndCause.LOST, None),
    ],
)
def test_what_the_other_cluster_did_is_its_doing(
    status: dict[str, Any], cause: EndCause, message: str | None
) -> None:
    """Taken back, or refused by its node."""
    found = seen("Failed", **status)

    assert (found.ended_by, found.message) == (cause, message)


def test_an_evicted_pod_was_taken_back_though_its_container_ended() -> None:
    """A kubelet kills it first."""
    ended = container(terminated={"exitCode": 137})

    found = seen("Failed", reason="Evicted", containerStatuses=[ended])

    assert found.ended_by is EndCause.PREEMPTED


def test_a_pod_on_its_way_out_is_deleting_until_it_has_ended() -> None:
    """An end that was observed is told."""
    leaving = {"deletionTimestamp": "2026-11-01T12:00:00Z"}

    assert seen("Running", metadata=leaving).phase is InstancePhase.DELETING
    assert seen("Succeeded", metadata=leaving).phase is InstancePhase.ENDED


def test_a_pod_of_a_dead_node_is_not_ready() -> None:
    """Nobody updates its containers there; the other node controller clears the pod's Ready."""
    up = {**container(running={}), "ready": True}
    ready, silent = condition("Ready", "True", ""), condition("Ready", "False", "")
    whole = condition("ContainersReady", "True", "")

    for conditions, expected in (([ready, whole], True), ([silent, whole], False)):
        found = seen("Running", conditions=conditions, containerStatuses=[up])
        assert [each.ready for each in found.containers] == [expected]


def test_an_unknown_phase_is_unknown() -> None:
    """The pod stays as it is."""
    assert seen("Hibernating").phase is InstancePhase.UNKNOWN


def test_a_half_made_pod_is_given_up_after_a_while() -> None:
    """Its create broke off before its copies were there."""
    gated = pod("Pending", spec={"schedulingGates": [{"name": GATE}]})

    young = observe(gated, STAMP, NOW)
    old = observe(gated, STAMP, NOW + timedelta(hours=1))

    assert is_gated(gated)
    assert young.phase is InstancePhase.STARTING
    assert (old.phase, old.ended_by) == (InstancePhase.ENDED, EndCause.LOST)


def test_odd_times_are_absent() -> None:
    """Never invented."""
    found = seen("Pending", metadata={"creationTimestamp": "2026-11-01T12:00:00"})

    assert found.created_at is None


def test_a_single_address_is_enough() -> None:
    """Old servers have no list."""
    assert seen("Running", podIP="10.1.0.1").addresses == ("10.1.0.1",)


@pytest.mark.parametrize(
    ("phase", "conditions", "cause"),
    [
        ("Running", [], EndCause.LOST),
        (
            "Running",
            [condition("DisruptionTarget", "True", "EvictionByEvictionAPI")],
            EndCause.PREEMPTED,
        ),
        ("Succeeded", [], None),
    ],
)
def test_a_removed_pod_has_ended(
    phase: str, conditions: list[dict[str, str]], cause: EndCause | None
) -> None:
    """As its last version says, else by somebody's hand."""
    last = pod(
        phase,
        conditions=conditions,
        containerStatuses=[container(terminated={"exitCode": 0})] if phase != "Running" else [],
    )

    found = removed(last, STAMP, NOW)

    assert (found.phase, found.ended_by) == (InstancePhase.ENDED, cause)


def test_debuggers_and_sizes_are_told_as_they_are() -> None:
    """The other cluster's kubelet starts and resizes them."""
    debugger = {**container(running={}), "name": "debugger"}
    has = {"limits": {"cpu": "1"}}

    found = seen(
        "Running",
        containerStatuses=[{**container(running={}), "resources": has}],
        ephemeralContainerStatuses=[debugger],
    )

    assert [each.name for each in found.ephemeral_containers] == ["debugger"]
    assert found.containers[0].resources == has
    assert found.ephemeral_containers[0].resources is None


def test_what_a_kubelet_does_not_take_for_its_spec_is_refused() -> None:
    """Another one would say the same; what it had no room for is lost, and comes again."""
    forbidden = seen("Failed", reason="SysctlForbidden", message="forbidden sysctl")

    assert forbidden.ended_by is EndCause.REFUSED
    assert (forbidden.reason, forbidden.message) == ("SysctlForbidden", "forbidden sysctl")
    assert seen("Failed", reason="OutOfcpu").ended_by is EndCause.LOST


def generations(brought: str, made: int, observed: int | None) -> int | None:
    """What is observed of an instance that was brought to a generation of the home pod."""
    metadata = {"generation": made, "annotations": {marks.GENERATION: brought}}
    return seen("Running", metadata=metadata, observedGeneration=observed).generation


def test_a_change_is_seen_when_the_other_kubelet_has_seen_it() -> None:
    """While it is on its way nothing new is; old servers and old instances tell nothing."""
    assert generations("7", 2, 2) == 7
    assert generations("7", 3, 2) == 0
    assert generations("7", 2, None) is None
    assert generations("", 2, 2) is None


def test_a_change_of_size_is_told_in_full() -> None:
    """What it has, what it was promised, and what is still to come."""
    has, promised = {"limits": {"cpu": "1"}}, {"cpu": "2"}
    status = {**container(running={}), "resources": has, "allocatedResources": promised}
    pending = condition("PodResizePending", "True", "Deferred", "no room")

    found = seen(
        "Running", containerStatuses=[status], conditions=[pending, condition("Ready", "True", "")]
    )

    assert (found.containers[0].resources, found.containers[0].allocated) == (has, promised)
    assert found.resizing == (pending,)


@pytest.mark.parametrize(
    ("finished", "phase", "cause"),
    [
        ("2026-11-01T12:00:02Z", "Failed", EndCause.LOST),
        ("2026-11-01T11:59:59Z", "Failed", EndCause.LOST),
        ("2026-11-01T11:58:00Z", "Failed", None),
        ("2026-11-01T12:00:02Z", "Succeeded", None),
    ],
)
def test_a_pod_that_was_deleted_while_it_ran_is_lost(
    finished: str, phase: str, cause: EndCause | None
) -> None:
    """Its exit code is of the signal; one that had ended before was its own, and success is."""
    deleted = {"deletionTimestamp": "2026-11-01T12:00:30Z", "deletionGracePeriodSeconds": 30}
    ended = container(terminated={"exitCode": 143, "finishedAt": finished})

    found = seen(phase, metadata=deleted, containerStatuses=[ended])

    assert (found.phase, found.ended_by) == (InstancePhase.ENDED, cause)
    assert (found.message == "its pod was deleted in the other cluster") == (cause is not None)
