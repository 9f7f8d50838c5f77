"""Conditions as a kubelet computes them; those of others stay as found."""

from datetime import UTC, datetime
from typing import Any

import pytest

from vk_provider.pods.conditions import RESIZING, ConditionInput, objects, render_conditions
from vk_provider.pods.types import Verdict

NOW = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)
RUNNING = {"name": "main", "state": {"running": {}}, "ready": True, "started": True}
WAITING = {"name": "main", "state": {"waiting": {}}, "ready": False, "started": False}
DONE = {"name": "init", "state": {"terminated": {"exitCode": 0}}, "ready": True}


def conditions(
    *containers: dict[str, Any],
    pod: dict[str, Any] | None = None,
    phase: str = "Running",
    **more: Any,
) -> dict[str, dict[str, Any]]:
    """The rendered conditions by type."""
    given = ConditionInput(pod or {}, phase, containers, **more)
    return {one["type"]: one for one in render_conditions(given, NOW)}


def having(*current: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod with these conditions."""
    return {"metadata": {"generation": 4}, "spec": spec, "status": {"conditions": list(current)}}


def said(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Status of each condition."""
    return {name: condition["status"] for name, condition in found.items()}


def test_a_running_pod_is_ready_in_every_respect() -> None:
    """In the kubelet's order."""
    found = conditions(RUNNING, has_instance=True)

    assert list(found) == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert set(said(found).values()) == {"True"}


def test_unready_containers_are_named() -> None:
    """In Ready as in ContainersReady, with the kubelet's words."""
    found = conditions(WAITING, {**WAITING, "name": "other"}, RUNNING | {"name": "fine"})

    assert said(found)["PodReadyToStartContainers"] == "False"
    for name in ("Ready", "ContainersReady"):
        assert found[name]["reason"] == "ContainersNotReady"
        assert found[name]["message"] == "containers with unready status: [main other]"


def test_a_pod_without_container_statuses_is_not_ready() -> None:
    """Nothing is known of it."""
    assert conditions()["Ready"]["reason"] == "UnknownContainerStatuses"


@pytest.mark.parametrize(
    ("phase", "reason", "initialized"),
    [("Succeeded", "PodCompleted", "PodCompleted"), ("Failed", "PodFailed", None)],
)
def test_a_terminal_phase_is_never_ready(phase: str, reason: str, initialized: str | None) -> None:
    """The endpoints controllers depend on it."""
    found = conditions(RUNNING, phase=phase, has_instance=True)

    assert said(found) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    assert found["Ready"]["reason"] == found["ContainersReady"]["reason"] == reason
    assert found["Initialized"].get("reason") == initialized


def test_initialized_waits_for_every_init_container_and_sidecar() -> None:
    """An unfinished one is named; a sidecar must have started."""
    pod = having(initContainers=[{"name": "init"}, {"name": "side", "restartPolicy": "Always"}])
    side = {"name": "side", "state": {"running": {}}, "started": False, "ready": False}

    early = conditions(WAITING, pod=pod, init_containers=[DONE, side])["Initialized"]
    late = conditions(WAITING, pod=pod, init_containers=[DONE, side | {"started": True}])

    assert (early["status"], early["reason"]) == ("False", "ContainersNotInitialized")
    assert early["message"] == "containers with incomplete status: [side]"
    assert late["Initialized"]["status"] == "True"
    assert late["ContainersReady"]["message"] == "containers with unready status: [side main]"


def test_initialized_stays_true_once_a_regular_container_has_started() -> None:
    """Whatever becomes of the init containers' statuses."""
    pod = having(initContainers=[{"name": "init"}])

    assert said(conditions(RUNNING, pod=pod))["Initialized"] == "True"
    assert said(conditions(WAITING, pod=pod))["Initialized"] == "False"


def test_readiness_gates_hold_ready_back() -> None:
    """ContainersReady does not wait for them."""
    gates = [{"conditionType": name} for name in ("lb", "dns", "ok")]
    current = ({"type": "lb", "status": "False"}, {"type": "ok", "status": "True"})
    found = conditions(RUNNING, pod=having(*current, readinessGates=gates))

    assert said(found)["ContainersReady"] == "True"
    assert found["Ready"]["reason"] == "ReadinessGatesNotReady"
    assert found["Ready"]["message"] == (
        'the status of pod readiness gate "lb" is not "True", but False, '
        'corresponding condition of pod readiness gate "dns" does not exist.'
    )


def test_open_readiness_gates_let_ready_be_true() -> None:
    """All of them are."""
    pod = having({"type": "lb", "status": "True"}, readinessGates=[{"conditionType": "lb"}])

    assert said(conditions(RUNNING, pod=pod))["Ready"] == "True"


def test_a_transition_time_moves_only_with_the_status() -> None:
    """And every condition of ours tells the generation it reflects."""
    old = {"lastTransitionTime": "2024-01-01T00:00:00Z"}
    pod = having({"type": "Ready", "status": "True"} | old, {"type": "Initialized", **old})
    found = conditions(RUNNING, pod=pod)

    assert found["Ready"]["lastTransitionTime"] == "2024-01-01T00:00:00Z"
    assert found["Initialized"]["lastTransitionTime"] == "2024-05-01T10:00:00Z"
    assert {condition["observedGeneration"] for condition in found.values()} == {4}
    assert "observedGeneration" not in conditions(RUNNING)["Ready"]


def test_foreign_conditions_come_first_and_untouched() -> None:
    """Those of gates, of resizes, of anybody; a nameless one is no condition."""
    foreign = {"type": "example.com/lb", "status": "Unknown", "note": 1}
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    found = conditions(RUNNING, pod=having(foreign, evicted, {"status": "True"}))

    assert list(found)[:2] == ["example.com/lb", "DisruptionTarget"]
    assert found["example.com/lb"] == foreign
    assert found["DisruptionTarget"] == evicted


@pytest.mark.parametrize("is_disruption", [True, False])
def test_a_verdict_of_ours_is_a_disruption_unless_the_container_ended_itself(
    is_disruption: bool,
) -> None:
    """So that a Job may ignore it."""
    verdict = Verdict("Failed", "ProviderLost", "gone", disruption=is_disruption)
    found = conditions(RUNNING, phase="Failed", verdict=verdict).get("DisruptionTarget")

    expected = ("True", "TerminationByKubelet", "gone")
    assert is_disruption is (found is not None)
    assert not found or (found["status"], found["reason"], found["message"]) == expected


def test_ready_to_start_is_remembered() -> None:
    """An instance that was there is not forgotten with a thin list."""
    pod = having({"type": "PodReadyToStartContainers", "status": "True"})

    assert said(conditions(WAITING, pod=pod))["PodReadyToStartContainers"] == "True"


def test_lists_of_something_else_are_empty() -> None:
    """Garbage never raises."""
    assert objects("conditions") == []
    assert objects([1, {"type": "a"}]) == [{"type": "a"}]


def test_what_a_backend_says_of_a_change_of_size_is_passed_on() -> None:
    """While it says so; where none can be made, such conditions are somebody else's."""
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    pod = having({"type": "PodResizeInProgress", "status": "True"})

    def names(resizing: list[dict[str, Any]] | None) -> set[str]:
        given = ConditionInput(pod, "Running", [RUNNING], resizing=resizing)
        return {one["type"] for one in render_conditions(given, NOW)} & set(RESIZING)

    assert names([pending]) == {"PodResizePending"}
    assert names([]) == set()
    assert names(None) == {"PodResizeInProgress"}
