"""A pod's status from what is observed: phases, ends, addresses, and what is never invented."""

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vk_provider.pods.status import StatusInput, render_status, status_patch
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    InstancePhase,
    InstanceRef,
    Observation,
    PodUID,
    Running,
    Stamp,
    Terminated,
    Verdict,
    Waiting,
)

NOW = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
STAMP = Stamp("c", "burst", "ns", "web", PodUID("u1"))
LOST = Verdict("Failed", "ProviderLost", "gone", disruption=True)
NOTHING = StatusInput(None, host_ip="10.0.0.9")


def pod(status: dict[str, Any] | None = None, *names: str, init: tuple[str, ...] = ()) -> Any:
    """A pod of one container ``main`` unless named otherwise."""
    return {
        "metadata": {"uid": "u1", "generation": 1},
        "spec": {
            "containers": [{"name": name, "image": "img"} for name in names or ("main",)],
            "initContainers": [{"name": name, "image": "img"} for name in init],
        },
        "status": status or {"phase": "Pending", "qosClass": "BestEffort"},
    }


def observed(phase: InstancePhase, state: ContainerState | None = None, **more: Any) -> StatusInput:
    """What is known of an instance whose container ``main`` is in that state."""
    containers = (ContainerObservation("main", state),) if state else ()
    fields: dict[str, Any] = {"containers": containers} | more
    seen = Observation(STAMP, InstanceRef("i1"), phase, **fields)
    return StatusInput(seen, host_ip="10.0.0.9", backend="runpod")


RUNNING = observed(InstancePhase.RUNNING, Running(NOW))


def after(given: StatusInput, start: Any = None) -> Any:
    """The pod once the API server holds what was rendered."""
    start = start or pod()
    return {**start, "status": render_status(start, given, NOW)}


def state_of(status: dict[str, Any], index: int = 0) -> Any:
    """One container's state."""
    return status["containerStatuses"][index]["state"]


def condition(status: dict[str, Any], name: str) -> str:
    """One condition's status."""
    return next(str(one["status"]) for one in status["conditions"] if one["type"] == name)


def test_a_pod_before_its_instance_waits() -> None:
    """Pending, the kubelet's default reason, the node's address, a start that never changes."""
    status = render_status(pod(), NOTHING, NOW)

    assert status["phase"] == "Pending"
    assert state_of(status) == {"waiting": {"reason": "ContainerCreating"}}
    assert (status["hostIP"], status["hostIPs"]) == ("10.0.0.9", [{"ip": "10.0.0.9"}])
    assert (status["startTime"], status["observedGeneration"]) == ("2024-05-01T10:00:00Z", 1)
    assert status["qosClass"] == "BestEffort"
    assert render_status(after(NOTHING), NOTHING, LATER)["startTime"] == status["startTime"]


def test_a_silent_start_costs_no_patch() -> None:
    """Two PATCHes to Running: one before the create, one when it runs."""
    waiting = after(NOTHING)
    starting = observed(InstancePhase.STARTING, Waiting())

    assert status_patch(waiting, render_status(waiting, starting, LATER)) is None


def test_an_unchanged_pod_costs_no_patch() -> None:
    """Whatever the time is."""
    running = after(RUNNING)

    assert status_patch(running, render_status(running, RUNNING, LATER)) is None


def test_waiting_tells_why() -> None:
    """Our reason before there is an instance, the backend's words once there is one."""
    held = replace(NOTHING, waiting=Waiting("CreateBackOff", "next try in 20 s"))
    starting = observed(InstancePhase.STARTING, reason="ImagePulling", message="layer 3 of 9")
    starting = replace(starting, waiting=Waiting("ProviderUnavailable"))

    assert state_of(render_status(pod(), held, NOW)) == {
        "waiting": {"reason": "CreateBackOff", "message": "next try in 20 s"}
    }
    assert state_of(render_status(pod(), starting, NOW)) == {
        "waiting": {"reason": "ImagePulling", "message": "layer 3 of 9"}
    }


def test_a_remote_that_waits_keeps_home_pending() -> None:
    """With its reason; the sandbox is there, as it has got as far as containers."""
    status = render_status(pod(), observed(InstancePhase.STARTING, Waiting("ErrImagePull")), NOW)

    assert status["phase"] == "Pending"
    assert state_of(status)["waiting"]["reason"] == "ErrImagePull"
    assert condition(status, "PodReadyToStartContainers") == "True"


def test_an_address_means_that_the_sandbox_is_there() -> None:
    """Even if no container has a reason yet."""
    status = render_status(pod(), observed(InstancePhase.STARTING, addresses=("10.1.0.1",)), NOW)

    assert condition(status, "PodReadyToStartContainers") == "True"


def test_running_needs_every_container_to_have_started() -> None:
    """Sorted by name; ids are unique among several."""
    status = render_status(pod(None, "main", "aux"), RUNNING, NOW)
    seen = (ContainerObservation("main", Running()), ContainerObservation("aux", Running()))
    both = render_status(
        pod(None, "main", "aux"), observed(InstancePhase.RUNNING, containers=seen), NOW
    )

    assert status["phase"] == "Pending"
    assert both["phase"] == "Running"
    assert [one["containerID"] for one in both["containerStatuses"]] == [
        "runpod://i1/aux",
        "runpod://i1/main",
    ]


def test_running_is_not_left_for_a_poorer_report() -> None:
    """Neither by a restart of ours nor by a list that shows the instance starting."""
    running = after(RUNNING)

    for given in (NOTHING, observed(InstancePhase.STARTING)):
        status = render_status(running, given, LATER)
        assert status["phase"] == "Running"
        assert "running" in state_of(status)
        assert condition(status, "Ready") == "True"


def test_an_unreadable_observation_changes_nothing() -> None:
    """The pod stays as it is, to the letter."""
    running = after(RUNNING)

    assert render_status(running, observed(InstancePhase.UNKNOWN), LATER) == running["status"]


def test_a_verdict_is_written_though_the_observation_is_unreadable() -> None:
    """On what the API remembers."""
    given = replace(observed(InstancePhase.UNKNOWN), verdict=LOST)

    assert state_of(render_status(after(RUNNING), given, LATER))["terminated"]["exitCode"] == 137


def test_an_end_without_a_verdict_shows_but_keeps_the_phase() -> None:
    """The terminal phase waits until nothing can be running."""
    ended = observed(InstancePhase.ENDED, Terminated(3))
    status = render_status(after(RUNNING), ended, LATER)

    assert status["phase"] == "Running"
    assert state_of(status)["terminated"]["exitCode"] == 3
    assert condition(status, "Ready") == "False"
    assert render_status(pod(), ended, NOW)["phase"] == "Pending"


@pytest.mark.parametrize(
    ("given", "ready"),
    [
        (observed(InstancePhase.ENDED, Running(NOW)), "False"),
        (observed(InstancePhase.DELETING, Running(NOW)), "False"),
        (replace(RUNNING, ending=True), "False"),
        (
            observed(
                InstancePhase.DELETING,
                containers=(ContainerObservation("main", Running(NOW), ready=True),),
            ),
            "True",
        ),
    ],
)
def test_nothing_on_its_way_out_is_ready(given: StatusInput, ready: str) -> None:
    """Unless the backend's own kubelet says so, which knows its grace period."""
    assert condition(render_status(after(RUNNING), given, LATER), "Ready") == ready


def test_what_waits_on_its_way_out_keeps_its_reason() -> None:
    """No patch to say something that helps nobody."""
    start = after(observed(InstancePhase.STARTING, Waiting("ErrImagePull", "no tag")))
    status = render_status(start, observed(InstancePhase.DELETING), LATER)

    assert state_of(status) == {"waiting": {"reason": "ErrImagePull", "message": "no tag"}}


def test_a_verdict_brings_reason_message_and_disruption_at_once() -> None:
    """In one patch with the phase and the container's end."""
    running = after(RUNNING)
    patch = status_patch(running, render_status(running, replace(NOTHING, verdict=LOST), LATER))

    assert patch is not None
    assert patch["metadata"] == {"uid": "u1"}
    assert patch["status"]["phase"] == "Failed"
    assert (patch["status"]["reason"], patch["status"]["message"]) == ("ProviderLost", "gone")
    assert state_of(patch["status"])["terminated"]["reason"] == "ContainerStatusUnknown"
    assert condition(patch["status"], "DisruptionTarget") == "True"
    assert condition(patch["status"], "Ready") == "False"


def test_a_pod_in_which_nothing_started_fails_without_container_statuses() -> None:
    """kubectl would print the waiting reason in place of the pod's."""
    waiting = after(NOTHING)
    patch = status_patch(waiting, render_status(waiting, replace(NOTHING, verdict=LOST), LATER))

    assert patch is not None
    assert patch["status"]["containerStatuses"] is None


def test_a_container_that_never_started_beside_one_that_did_keeps_waiting() -> None:
    """Its end is not invented."""
    start = after(RUNNING, pod(None, "main", "zeta"))
    status = render_status(start, replace(NOTHING, verdict=LOST), LATER)

    assert "terminated" in state_of(status, 0)
    assert "waiting" in state_of(status, 1)


def test_a_terminal_phase_is_never_left() -> None:
    """Neither for a running instance nor for another verdict; its words stay."""
    failed = after(replace(NOTHING, verdict=LOST), after(RUNNING))

    for given in (RUNNING, NOTHING, replace(NOTHING, verdict=Verdict("Succeeded"))):
        assert status_patch(failed, render_status(failed, given, LATER)) is None


def test_a_terminal_phase_that_others_wrote_is_completed() -> None:
    """Pod GC fails a pod without looking at its containers."""
    failed = after(RUNNING)
    failed["status"] |= {"phase": "Failed", "reason": "NodeLost"}
    status = render_status(failed, RUNNING, LATER)

    assert (status["phase"], status["reason"]) == ("Failed", "NodeLost")
    assert state_of(status)["terminated"]["exitCode"] == 137
    assert condition(status, "Ready") == "False"


def test_ready_is_restored_after_somebody_else_cleared_it() -> None:
    """A node that was thought dead has all its pods marked; the backend brings no news."""
    flapped = after(RUNNING)
    for one in flapped["status"]["conditions"]:
        if one["type"] == "Ready":
            one["status"] = "False"
    patch = status_patch(flapped, render_status(flapped, RUNNING, LATER))

    assert patch is not None
    assert list(patch["status"]) == ["conditions"]
    assert patch["status"]["conditions"][0]["type"] == "Ready"
    assert patch["status"]["conditions"][0]["lastTransitionTime"] == "2024-05-01T10:05:00Z"


def test_a_reason_of_somebody_else_is_cleared_while_the_pod_lives() -> None:
    """The node controller's NodeLost, for instance."""
    running = after(RUNNING)
    running["status"] |= {"reason": "NodeLost", "message": "unresponsive"}
    patch = status_patch(running, render_status(running, RUNNING, LATER))

    assert patch is not None
    assert patch["status"] == {"reason": None, "message": None}


def test_init_containers_hold_the_others_back() -> None:
    """In the spec's order, with the kubelet's default reason."""
    seen = (ContainerObservation("two", Running()), ContainerObservation("one", Terminated(0)))
    given = observed(InstancePhase.STARTING, init_containers=seen)
    status = render_status(pod(init=("one", "two")), given, NOW)

    assert [one["name"] for one in status["initContainerStatuses"]] == ["one", "two"]
    assert state_of(status) == {"waiting": {"reason": "PodInitializing"}}
    assert condition(status, "Initialized") == "False"


def test_finished_init_containers_are_ready_with_exit_0() -> None:
    """Also one that the backend never mentions; else kubectl prints Init."""
    told = observed(
        InstancePhase.RUNNING,
        Running(),
        init_containers=(ContainerObservation("one", Terminated(0)),),
    )
    status = render_status(pod(init=("one", "two")), told, NOW)

    assert [one["state"]["terminated"]["exitCode"] for one in status["initContainerStatuses"]] == [
        0,
        0,
    ]
    assert [one["ready"] for one in status["initContainerStatuses"]] == [True, True]
    assert condition(status, "Initialized") == "True"


def test_a_sidecar_that_the_backend_never_mentions_is_not_thought_complete() -> None:
    """It should run beside the others."""
    start = pod(init=("side",))
    start["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    status = render_status(start, RUNNING, NOW)

    assert "waiting" in status["initContainerStatuses"][0]["state"]


def test_direct_reach_reports_one_address_per_family() -> None:
    """Valid ones, and they stay when a later list has none."""
    addresses = ("nonsense", "10.1.0.1", "10.1.0.2", "fd00::1")
    given = replace(observed(InstancePhase.RUNNING, Running(), addresses=addresses), direct=True)
    direct = after(given)

    assert direct["status"]["podIP"] == "10.1.0.1"
    assert direct["status"]["podIPs"] == [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]
    silent = replace(NOTHING, direct=True)
    assert render_status(direct, silent, LATER)["podIP"] == "10.1.0.1"


def test_without_reach_a_pod_has_no_address_at_home() -> None:
    """Also one that had one before the configuration changed; an ended pod keeps its own."""
    given = replace(
        observed(InstancePhase.RUNNING, Running(), addresses=("10.1.0.1",)), direct=True
    )
    direct = after(given)

    assert "podIP" not in render_status(direct, RUNNING, LATER)
    assert render_status(direct, replace(NOTHING, verdict=LOST), LATER)["podIP"] == "10.1.0.1"


def test_the_host_address_follows_the_leader_but_not_for_ended_pods() -> None:
    """A take-over patches what runs."""
    moved = replace(RUNNING, host_ip="10.0.0.10")
    failed = after(replace(NOTHING, verdict=LOST))

    assert render_status(after(RUNNING), moved, LATER)["hostIP"] == "10.0.0.10"
    assert render_status(failed, moved, LATER)["hostIP"] == "10.0.0.9"
    assert "hostIP" not in render_status(pod(), StatusInput(None), NOW)


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"status": None, "spec": None, "metadata": None},
        {"status": [], "spec": "x", "metadata": 3},
        {"spec": {"containers": [None, {}, {"name": 4}]}, "status": {"containerStatuses": [1, {}]}},
        {"status": {"phase": "Unknown", "conditions": [{"type": 1}, "x"], "startTime": None}},
    ],
)
def test_a_malformed_pod_never_raises(garbage: dict[str, Any]) -> None:
    """Whatever is known of its instance, and the pod is not changed."""
    before = copy.deepcopy(garbage)

    for given in (NOTHING, RUNNING, replace(RUNNING, verdict=LOST)):
        wanted = render_status(garbage, given, NOW)
        assert wanted["phase"] in ("Pending", "Running", "Failed")
        assert status_patch(garbage, wanted) is not None
    assert garbage == before


def generation(pod_has: int, seen: int | None, before: int | None = None, **metadata: Any) -> Any:
    """What the status says of a pod of this generation."""
    own = pod({"observedGeneration": before} if before else None)
    own["metadata"] |= {"generation": pod_has, **metadata}
    given = observed(InstancePhase.RUNNING, Running(NOW), generation=seen)
    return render_status(own, given, NOW).get("observedGeneration")


def test_a_status_speaks_of_the_spec_that_the_backend_has_seen() -> None:
    """It never falls back, and where a backend follows nothing all is seen at once."""
    assert generation(3, None) == 3
    assert generation(3, 2) == 2
    assert generation(3, 0, before=2) == 2
    assert generation(3, 4) == 3
    assert generation(3, 0) is None


def test_the_spec_of_a_pod_that_ends_is_past() -> None:
    """Nobody brings over what changes now."""
    assert generation(3, 2, deletionTimestamp="2024-05-01T10:00:00Z") == 3


def test_a_change_of_size_is_shown() -> None:
    """As long as it is under way."""
    pending = {"type": "PodResizePending", "status": "True"}
    given = observed(InstancePhase.RUNNING, Running(NOW), generation=1, resizing=(pending,))

    assert condition(render_status(pod(), given, NOW), "PodResizePending") == "True"
