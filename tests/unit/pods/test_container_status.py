"""One container's status: observed facts on top of what the API remembers."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from vk_provider.pods import container_status as cs
from vk_provider.pods.container_facts import is_done
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    Running,
    Terminated,
    Waiting,
)

THEN = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)
SHOWN = "2024-05-01T10:00:00Z"


def render(
    state: ContainerState | None,
    before: dict[str, Any] | None = None,
    *,
    spec: dict[str, Any] | None = None,
    given: dict[str, Any] | None = None,
    **seen: Any,
) -> dict[str, Any]:
    """The status of container ``main`` on backend ``b``."""
    observed = ContainerObservation("main", state, **seen) if state is not None else None
    fields: dict[str, Any] = {"waiting": Waiting("ContainerCreating"), "container_id": "b://i1"}
    named = {"name": "main", "image": "img:1"} | (spec or {})
    return cs.render_container(
        cs.ContainerInput(named, observed, before or {}, **(fields | (given or {})))
    )


def test_a_container_that_has_not_started_waits_and_has_no_id() -> None:
    """The complete status, nothing invented."""
    assert render(None) == {
        "name": "main",
        "image": "img:1",
        "imageID": "",
        "state": {"waiting": {"reason": "ContainerCreating"}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "started": False,
    }


def test_the_backends_reason_for_waiting_wins() -> None:
    """Its words say more than ours."""
    seen = render(Waiting("ErrImagePull", "no such tag"))

    assert seen["state"] == {"waiting": {"reason": "ErrImagePull", "message": "no such tag"}}


def test_a_running_container_is_ready_and_started() -> None:
    """With its own image, id and start, where the backend tells them."""
    status = render(Running(THEN), image="img@sha256:1", image_id="sha256:1")

    assert status["state"] == {"running": {"startedAt": SHOWN}}
    assert (status["ready"], status["started"]) == (True, True)
    assert (status["image"], status["imageID"]) == ("img@sha256:1", "sha256:1")
    assert status["containerID"] == "b://i1"


def test_what_it_has_is_told_where_the_backend_can_resize_it() -> None:
    """It differs from the spec until the resize is done; a thin report changes nothing."""
    has = {"limits": {"cpu": "1"}}
    status = render(Running(THEN), resources=has)

    assert status["resources"] == has
    assert render(Running(THEN), status)["resources"] == has


def test_a_start_that_was_told_once_stays() -> None:
    """A later report without it does not erase it; other zones are written as UTC."""
    east = timezone(timedelta(hours=2))
    first = render(Running(datetime(2024, 5, 1, 12, tzinfo=east)))

    assert render(Running(), first)["state"] == {"running": {"startedAt": SHOWN}}
    assert render(Running())["state"] == {"running": {}}


@pytest.mark.parametrize(
    ("ready", "given", "spec", "expected"),
    [
        (None, {}, {"readinessProbe": {}}, True),
        (None, {"probes_run": True}, {"readinessProbe": {}}, False),
        (None, {"probes_run": True}, {}, True),
        (False, {}, {}, False),
        (True, {"probes_run": True}, {"readinessProbe": {}}, True),
        (True, {"serving": False}, {}, False),
        (None, {"serving": False}, {}, False),
    ],
)
def test_ready_follows_the_probes_or_the_running_state(
    ready: bool | None, given: dict[str, Any], spec: dict[str, Any], expected: bool
) -> None:
    """The backend's word first; nothing on its way out is ready."""
    assert render(Running(), ready=ready, given=given, spec=spec)["ready"] is expected


def test_started_waits_for_a_startup_probe_where_probes_run() -> None:
    """Ready proves it, and once started stays started."""
    probed: dict[str, Any] = {"spec": {"startupProbe": {}}, "given": {"probes_run": True}}

    assert render(Running(), ready=False, **probed)["started"] is False
    assert render(Running(), ready=True, **probed)["started"] is True
    assert render(Running(), {"started": True}, ready=False, **probed)["started"] is True
    assert render(Running(), ready=False, spec={"startupProbe": {}})["started"] is True


def test_a_running_container_that_is_not_listed_stays_as_it_was() -> None:
    """A thin list is no news, e.g. before the first one after our restart. On its way out it is
    not ready all the same."""
    before = render(Running(THEN))

    assert render(None, before) == before
    assert render(None, before, given={"serving": False}) == {**before, "ready": False}
    assert render(None, before, given={"container_id": None}) == before


def test_a_running_container_seen_waiting_runs_on_but_is_not_ready() -> None:
    """Without a restart it cannot be waiting for its first start again."""
    status = render(Waiting(), render(Running(THEN)))

    assert status["state"] == {"running": {"startedAt": SHOWN}}
    assert status["ready"] is False


def test_an_end_is_reported_with_everything_known() -> None:
    """Exit code, signal, times, message and the id of the container that ended."""
    end = Terminated(137, "OOMKilled", "too large", 9, finished_at=THEN + timedelta(seconds=5))
    status = render(end, render(Running(THEN)))

    assert status["state"]["terminated"] == {
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": "too large",
        "signal": 9,
        "startedAt": SHOWN,
        "finishedAt": "2024-05-01T10:00:05Z",
        "containerID": "b://i1",
    }
    assert (status["ready"], status["started"]) == (False, False)


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
def test_an_end_without_a_reason_has_the_kubelets(code: int, reason: str) -> None:
    """Completed for 0, Error for anything else."""
    assert render(Terminated(code))["state"]["terminated"]["reason"] == reason


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (Terminated(), "The container ended; the backend tells no exit code"),
        (Terminated(reason="EXITED"), "EXITED"),
        (Terminated(message="gone"), "gone"),
    ],
)
def test_an_end_without_an_exit_code_is_never_stored_as_success(
    end: Terminated, message: str
) -> None:
    """An absent exitCode would become 0."""
    ended = render(end)["state"]["terminated"]

    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    assert ended["message"] == message


def test_the_end_of_a_long_message_is_kept() -> None:
    """Cut by bytes, never inside a character."""
    ended = render(Terminated(1, message="ü" * 10 + "!"), given={"message_bytes": 4})

    assert ended["state"]["terminated"]["message"] == "ü!"


def test_messages_share_a_pods_allowance() -> None:
    """4 KiB each, 12 KiB together."""
    assert [cs.message_share(count) for count in (0, 1, 3, 6)] == [4096, 4096, 4096, 2048]


@pytest.mark.parametrize("state", [None, Waiting(), Running(), Terminated()])
def test_an_ended_container_stays_ended(state: ContainerState | None) -> None:
    """The first observed end is final until a restart is counted; the API server insists."""
    before = render(Terminated(3, finished_at=THEN))

    assert render(state, before)["state"] == before["state"]


def test_an_end_seen_again_keeps_what_was_known_of_it() -> None:
    """A poorer report of the same end takes nothing away."""
    before = render(Terminated(3, "Error", "why", started_at=THEN, finished_at=THEN))

    assert render(Terminated(3), before) == before


def test_a_restart_in_place_is_counted_and_remembered() -> None:
    """Another id, the last run in lastState, no start of the run before."""
    before = render(Terminated(3, started_at=THEN))
    status = render(Running(), before, restart_count=1)

    assert status["state"] == {"running": {}}
    assert status["lastState"] == before["state"]
    assert status["containerID"] == "b://i1/1"
    assert status["restartCount"] == 1


def test_crash_loop_back_off_shows_the_last_run() -> None:
    """Waiting after a run, before the next is counted."""
    last = Terminated(3, started_at=THEN)
    for before in (render(Running(THEN)), render(last)):
        status = render(Waiting("CrashLoopBackOff"), before, last_state=last)

        assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        assert status["lastState"]["terminated"]["exitCode"] == 3
        assert status["containerID"] == "b://i1"


def test_the_restart_count_never_falls() -> None:
    """It survives us, and a backend that forgot; nonsense counts as none."""
    before = render(Running(), restart_count=4, last_state=Terminated(1))

    assert render(Running(), before)["restartCount"] == 4
    assert render(Running(), before)["lastState"] == before["lastState"]
    assert render(Running(), {"restartCount": "many"})["restartCount"] == 0


@pytest.mark.parametrize(
    ("own", "shown"), [("c7", "b://c7"), ("containerd://c7", "containerd://c7")]
)
def test_the_backends_own_container_id_is_shown(own: str, shown: str) -> None:
    """With our scheme where it has none."""
    assert render(Running(), container_id=own)["containerID"] == shown


def test_fields_that_others_wrote_survive() -> None:
    """Resources and device health, for instance."""
    assert render(Running(), {"resources": {"limits": {}}})["resources"] == {"limits": {}}


def test_finishing_ends_what_ran_without_an_end() -> None:
    """137 and ContainerStatusUnknown, with what is known of the run."""
    finished = cs.finish(render(Running(THEN)))

    assert finished["state"]["terminated"] == {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": SHOWN,
        "containerID": "b://i1",
    }
    assert finished["ready"] is False


def test_finishing_takes_the_last_run_of_one_that_waits_for_the_next() -> None:
    """That end was seen; a later one never happened."""
    waiting = render(Waiting("CrashLoopBackOff"), last_state=Terminated(3), restart_count=2)
    finished = cs.finish(waiting)

    assert finished["state"]["terminated"]["exitCode"] == 3
    assert finished["lastState"] == {}


def test_finishing_a_restarted_container_ends_its_present_run() -> None:
    """What is known of the run before says nothing about this one."""
    running = render(Running(), last_state=Terminated(3), restart_count=1)
    forgotten = {"name": "main", "restartCount": 1, "state": {"waiting": {}}}

    assert cs.finish(running)["state"]["terminated"]["exitCode"] == 137
    assert cs.finish(running)["lastState"] == running["lastState"]
    assert "startedAt" not in cs.finish(forgotten)["state"]["terminated"]
    assert "containerID" not in cs.finish(forgotten)["state"]["terminated"]


def test_finishing_leaves_ends_and_those_that_never_started() -> None:
    """Nothing else is invented."""
    ended, waiting = render(Terminated(0)), render(None)

    assert cs.finish(ended) == ended
    assert cs.finish(waiting) == waiting


def test_an_init_container_that_nobody_mentions_must_have_completed() -> None:
    """As the kubelet writes it, once a regular container has started and not before."""
    past = cs.complete_init({}, render(None), is_past=True)
    early = cs.complete_init({}, render(None), is_past=False)

    assert is_done(past)
    assert past["ready"] is True
    assert not is_done(early)
    assert early["ready"] is False


def test_an_init_container_is_ready_when_it_is_done() -> None:
    """A failed or running one is not; a sidecar is as ready as any container."""
    sidecar = {"restartPolicy": "Always"}
    ready = [
        cs.complete_init(spec, render(state), is_past=False)["ready"]
        for spec, state in (
            ({}, Terminated(0)),
            ({}, Terminated(1)),
            ({}, Running()),
            (sidecar, Running()),
            (sidecar, None),
        )
    ]

    assert ready == [True, False, False, True, False]
